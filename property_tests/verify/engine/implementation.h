// SPDX-License-Identifier: Apache-2.0
//
// implementation.h - whatever computes an operation: our CPU kernels, our CUDA
// source in the simulator, the reference rounded to float, and anything else
// that takes named tensors and returns named tensors.
//
// A name is a family and, after a colon, an argument for the family:
//   reference_f32   reference_f64   reference_bf16
//   cpu:v3   cpu:v4   cpu:double
//   shim   shim:bf16   ptx   ptx:bf16   cuda   cuda:bf16
//   same:IMPL,IMPL   faulty:FAULT:OUTPUT:IMPL
//   serve:PATH   lib:PATH   recorded:VECTORS,OUTPUTS
// Implementations with a path are other people's (foreign/README.md). To add a
// family, write a class and add it to implementation_list.cc.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_IMPLEMENTATION_H_

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

// Thrown when someone else's program failed to answer. The message is one
// sentence that needs no "it threw" before it. `output` names the output
// concerned, or is "".
class RunFailure : public std::runtime_error {
 public:
  explicit RunFailure(const std::string& sentence, std::string output = "")
      : std::runtime_error(sentence), output_(std::move(output)) {}
  const std::string& output() const { return output_; }

 private:
  std::string output_;
};

// Thrown by Run when only the answer shows that the operation is not offered.
struct RunUnsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Implementation {
 public:
  virtual ~Implementation() = default;
  virtual std::string name() const = 0;

  // Why this implementation cannot run `op` at `dtype` (not offered, or not on
  // this machine); "" if it can. The reason is reported, never hidden.
  virtual std::string WhyUnsupported(const Operation& op,
                                     Dtype dtype) const = 0;

  // The number of ways of running that must give the same bits, such as numbers
  // of threads or orders of the simulated threads of a block.
  virtual int schedules() const { return 1; }

  // Announces the next cases, so that a program that is slow to start can take
  // many at once; batch() is how many it wants. Run still asks for each.
  virtual void Prepare(const Operation& op, const std::vector<Case>& cases) {
    (void)op, (void)cases;
  }
  virtual int batch() const { return 1; }
  // Whether Prepare has left the answer to this case, so that Run only has to
  // return it.
  virtual bool Holds(const Case& c) const {
    (void)c;
    return false;
  }

  // No more cases come. Throws RunFailure if what ran them ends badly.
  virtual void Finish() {}

  // Whether an earlier call could affect a later one. Recorded outputs cannot
  // be affected; check_test shows that the reference cannot.
  virtual bool remembers() const { return true; }

  // Whether it stores bf16 (stored.h) and scales scores where our kernels do,
  // and is held to their bounds instead of those for plain programs.
  virtual bool stores_as_ours() const { return false; }

  // The outputs of one case under schedule 0 .. schedules()-1. An output that
  // is left out counts as not offered. An exception fails this case, except for
  // RunUnsupported, and EnvironmentError and StoppedError, which end the run.
  virtual TensorMap Run(const Operation& op, const Case& c,
                        const TensorMap& inputs, int schedule) = 0;
};

// The first dtype of the operation that the implementation can run, or the
// operation's first if it can run none.
inline Dtype DtypeFor(const Operation& op,
                      const Implementation& implementation) {
  for (const Dtype dtype : op.dtypes()) {
    if (implementation.WhyUnsupported(op, dtype).empty()) return dtype;
  }
  return op.dtypes().front();
}

// Defined in implementation_list.cc, which sits above everything that uses
// implementations and is linked with every program of the engine.

// Throws ConfigError, with a suggestion, for an unknown name, and
// EnvironmentError where this machine cannot run it at all.
std::unique_ptr<Implementation> MakeImplementation(const std::string& name);

// The names that need no path or other name, except for reference_f64
// (implementations.h).
std::vector<std::string> ImplementationNames();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_IMPLEMENTATION_H_
