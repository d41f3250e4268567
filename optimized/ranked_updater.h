// SPDX-License-Identifier: Apache-2.0
//
// ranked_updater.h - updates of a model that several ranks train (SPEC.md 4):
//
//   own balance groups -> this rank's part of the gradient, along the tree
//   -> sum over ranks, for the own shards -> norm -> AdamW on the own shards
//   -> gather of what passes read: the parameters; in bf16 copies of them
//   (backend_parameters.h)
//
// A rank that has one group, and whose carrier runs beside the queue, sends the
// gradients of each layer as soon as its backward pass has them.
//
// So each rank holds the moments of its shards only, and in bf16 also the fp32
// parameters of its shards only (ZeRO-1: parameter_shards.h). Where ranks are
// subtrees (rank_groups.h), parameters, moments, norm and statistics have the
// bits of one process on such a device, whatever carries the arrays
// (carrier.h). All computing is done where the model computes.
#ifndef SOFTMOE_OPTIMIZED_RANKED_UPDATER_H_
#define SOFTMOE_OPTIMIZED_RANKED_UPDATER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/backend.h"
#include "optimized/backend_model.h"
#include "optimized/buffer.h"
#include "optimized/communicator/communicator.h"
#include "optimized/gradient_exchange.h"
#include "optimized/gradient_tree.h"
#include "optimized/optimizer.h"
#include "optimized/parameter_shards.h"
#include "optimized/rank_groups.h"
#include "optimized/step.h"
#include "optimized/updater.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// Updater (updater.h) documents the functions. All ranks must call each of
// them: those that read an array gather its shards; of the moments that are
// written, a rank keeps its own shards.
class RankedUpdater : public Updater {
 public:
  // Keeps references. The moments start at zero.
  // Errors   ConfigError if the groups do not divide among the ranks.
  //          EnvironmentError if NCCL is to carry and fails.
  RankedUpdater(BackendModel& model, Communicator& communicator,
                CarrierKind carrier);
  ~RankedUpdater() override { WaitFor(model_.queue()); }

  // Asks for this rank's groups only, and reports those of all ranks.
  UpdateGradient ComputeGradient(const RoutingState& routing,
                                 const GroupBatch& batch) override;
  void Apply(double learning_rate, int64_t completed_updates) override;
  std::vector<float> ReadGradient() const override;
  std::vector<float> ReadFirstMoment() const override;
  std::vector<float> ReadSecondMoment() const override;
  void WriteMoments(std::span<const float> first,
                    std::span<const float> second) override;
  int64_t num_groups() const override { return num_groups_; }

 private:
  // The blocks of the norm, rank by rank.
  struct RankedBlocks {
    explicit RankedBlocks(const std::vector<Bucket>& buckets);

    std::vector<int64_t> blocks;
    Shards of_rank;  // of `blocks`
  };

  // Enqueues the gradients of this rank's groups, and perhaps exchanges some of
  // them; returns the groups' statistics.
  std::vector<StepStats> StartOwnGroups(const RoutingState& routing,
                                        const GroupBatch& batch);
  // The norm of the whole gradient, on every rank.
  double GradientNorm();
  // Runs `work`, during which the queue may wait for other ranks; however
  // `work` ends, the queue does not wait for them afterwards.
  template <typename Work>
  void WithOthers(const Work& work);
  // Completes `sums` on all ranks, each of which has those of its own blocks.
  void GatherBlockSums(std::span<double> sums);
  // Gathers, through the communicator, an array of which each rank has its
  // shards, where the model computes, at at(piece).
  template <typename At>
  std::vector<float> Gathered(const At& at) const;

  BackendModel& model_;
  Communicator& communicator_;
  int64_t num_groups_;
  GroupRange own_groups_;
  GradientTree tree_;             // over this rank's groups
  Buffer<float> gradient_;        // [layout.total]: their sum; then, in the own
                                  // shards, the sum over ranks
  GradientExchange exchange_;     // over ranks
  std::vector<PackedPiece> own_;  // one per bucket, as in the moments
  RankedBlocks blocks_;           // of the norm
  Buffer<double> block_sums_;     // of all ranks
  Buffer<double> sum_of_squares_;  // [1]
  FetchedArray<double> fetched_;   // of either
  FetchedArray<float> budget_;     // the budget logits
  double norm_ = 0;                // of all ranks' gradient
  Optimizer optimizer_;            // of this rank's shards
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_RANKED_UPDATER_H_
