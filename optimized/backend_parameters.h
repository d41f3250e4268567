// SPDX-License-Identifier: Apache-2.0
//
// backend_parameters.h - a model's parameters on one backend: the fp32 masters,
// which updates change, and what passes read.
//
//   fp32                   the masters are whole, and passes read them
//   bf16                   the masters are whole; products read a copy in bf16,
//                          everything else the masters
//   bf16, one of several   the masters are this rank's shards; products read a
//   ranks                  copy in bf16, everything else an fp32 copy of the
//                          tensors that it reads (parameter_shards.h)
#ifndef SOFTMOE_OPTIMIZED_BACKEND_PARAMETERS_H_
#define SOFTMOE_OPTIMIZED_BACKEND_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/config/parameter_layout.h"
#include "optimized/backend.h"
#include "optimized/buffer.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/shards.h"
#include "optimized/parameter_shards.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

class BackendParameters {
 public:
  // Keeps references. All parameters start at 0.
  //
  //   communicator  of the ranks that train the model; nullptr if it is not
  //                 trained, or is trained by one process
  BackendParameters(const ParameterLayout& layout, Communicator* communicator,
                    Queue& queue);
  // Waits, since memory in use must not be freed.
  ~BackendParameters() { WaitFor(queue_); }
  BackendParameters(const BackendParameters&) = delete;
  BackendParameters& operator=(const BackendParameters&) = delete;

  // Whether the masters are divided among ranks.
  bool shared() const { return communicator_ != nullptr; }

  // Read returns a copy of all parameters; Write overwrites those from `first`
  // on. Where ranks share the masters, all call these, Write with the same
  // arguments. Both wait for what was enqueued before.
  std::vector<float> Read() const;
  void Write(std::span<const float> values, int64_t first);

  // The masters of `part` of all parameters, which must lie within one piece
  // that this rank holds. Whoever changes them must call CopyMasters.
  std::span<float> Masters(const Shard& part);
  // Enqueues updating the copies of `part` from the masters. The other ranks'
  // parts must then be gathered: of weights() the shards of a bucket, of
  // packed() its packed_shards().
  void CopyMasters(const Shard& part);

  // What products read [layout.total]: the masters in fp32, else the copy.
  std::span<Activation> weights();
  // The copy of what is read in fp32; empty if the masters are read instead.
  std::span<float> packed() { return packed_.span(); }
  const Shards& packed_shards(size_t bucket) const {
    return packed_shards_[bucket];
  }

  // What passes read in fp32, and the layout of that array.
  const float* fp32() const {
    return shared() ? packed_.data() : masters_.data();
  }
  const ParameterLayout& fp32_layout() const {
    return shared() ? tensors_.packed() : layout_;
  }

  int64_t bytes() const;

 private:
  // Sends the copy that products read, of parameters that the host has.
  void SendWeights(std::span<const float> values, int64_t first);

  const ParameterLayout& layout_;
  Queue& queue_;
  Communicator* communicator_;  // of the ranks that share the masters
  Fp32Tensors tensors_;
  std::vector<Bucket> buckets_;        // if the masters are shared
  std::vector<PackedPiece> held_;      // which masters are here
  std::vector<Shards> packed_shards_;  // each bucket's, in packed_
  Buffer<float> masters_;              // the pieces in held_
  Buffer<Activation> weights_;         // [layout.total] in bf16; else empty
  Buffer<float> packed_;               // if they are shared, like staged_
  Buffer<float> staged_;               // on the way to weights_
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_BACKEND_PARAMETERS_H_
