// SPDX-License-Identifier: Apache-2.0
//
// implementation.h - who computes: our CPU kernels, our CUDA source in the
// simulator, the reference rounded to float, and whoever else takes named
// tensors and returns named tensors.
//
// A name is a family and, behind a colon, what the family is told:
//   reference_f32   reference_bf16   cpu:v3   cpu:v4   cpu:double   shim   cuda
//   exec:PATH   serve:PATH   lib:PATH
// Those with a path are other people's (foreign/README.md). To add a family,
// write a class and name it in implementation_list.cc.
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

// What somebody's program did instead of answering, in one sentence that needs
// no "it threw" before it; of one output, or of none in particular.
class RunFailure : public std::runtime_error {
 public:
  explicit RunFailure(const std::string& sentence, std::string output = "")
      : std::runtime_error(sentence), output_(std::move(output)) {}
  const std::string& output() const { return output_; }

 private:
  std::string output_;
};

// Thrown by Run where only the answer shows that the operation is not offered.
struct RunUnsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Implementation {
 public:
  virtual ~Implementation() = default;
  virtual std::string name() const = 0;

  // Why this implementation cannot run `op` at `dtype`: not offered, or not on
  // this machine; "" if it can. The reason is reported, never hidden.
  virtual std::string WhyUnsupported(const Operation& op,
                                     Dtype dtype) const = 0;

  // Ways of running that must give the same bits: numbers of threads, orders
  // of the simulated threads of a block.
  virtual int schedules() const { return 1; }

  // Told which cases come next, so that a program that is slow to start can be
  // given many at once, and how many it likes. Run still asks for each.
  virtual void Prepare(const Operation& op, const std::vector<Case>& cases) {
    (void)op, (void)cases;
  }
  virtual int batch() const { return 1; }

  // Whether an earlier call could show in a later one: recorded outputs know
  // no calls.
  virtual bool remembers() const { return true; }

  // The outputs of one case under schedule 0 .. schedules()-1. An output left
  // out counts as not offered. What is thrown is a failure of this case,
  // except EnvironmentError, which ends the run.
  virtual TensorMap Run(const Operation& op, const Case& c,
                        const TensorMap& inputs, int schedule) = 0;
};

// What makes implementations sits above all that uses them (implementation_list.cc,
// linked with every program of the engine).

// Throws ConfigError with a suggestion for a name that is none, and
// EnvironmentError where this machine cannot run it at all.
std::unique_ptr<Implementation> MakeImplementation(const std::string& name);

// The first dtype of the operation that the implementation can run; the
// operation's first if there is none.
Dtype DtypeFor(const Operation& op, const Implementation& implementation);

// The names that can be made here without being told a path.
std::vector<std::string> ImplementationNames();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_IMPLEMENTATION_H_
