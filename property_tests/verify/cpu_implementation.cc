// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/cpu_implementation.h"

#include <map>

#include "core/errors.h"
#include "core/text/suggestion.h"
#include "kernels/isa.h"
#include "property_tests/verify/double_implementation.h"
#include "property_tests/verify/row_kernels.h"

namespace softmoe::verify {
namespace {

const std::map<std::string, CpuRunner>& Runners() {
  static const std::map<std::string, CpuRunner> runners = {
      {"embedding", RunEmbeddingOnCpu},
      {"lm_head", RunLmHeadOnCpu},
      {"attention", RunAttentionOnCpu},
      {"experts", RunExpertsOnCpu},
      {"budget", RunBudgetOnCpu},
      {"adamw", RunAdamWOnCpu},
      {"sum_of_squares", RunSumOfSquaresOnCpu},
      {"gemm", RunGemmOnCpu},
  };
  return runners;
}

RowKernels KernelsOn(ThreadPool& pool) {
  return {
      [&pool](const auto& args) { kernels::RouterForward(args, pool); },
      [&pool](const auto& args) { kernels::RouterBackward(args, pool); },
      [&pool](const auto& args) { kernels::RmsNormForward(args, pool); },
      [&pool](const auto& args) { kernels::RmsNormBackward(args, pool); },
      [&pool](const auto& args) { kernels::AdamW(args, pool); },
  };
}

constexpr int kThreads[] = {1, 3};

class CpuImplementation : public Implementation {
 public:
  explicit CpuImplementation(kernels::Isa isa) : isa_(isa) {}

  std::string name() const override {
    return std::string("cpu:") + kernels::IsaName(isa_);
  }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (!kernels::IsaAvailable(isa_)) {
      return std::string("this CPU lacks level ") + kernels::IsaName(isa_);
    }
    if (dtype != Dtype::kF32) return "the CPU kernels compute in f32";
    return FindRowRunner(op.name()) != nullptr || Runners().contains(op.name())
               ? ""
               : "no CPU kernel for it";
  }
  int schedules() const override { return std::size(kThreads); }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    kernels::SelectIsa(kernels::IsaName(isa_));
    ThreadPool& pool = pools_[schedule];
    const auto whole = Runners().find(op.name());
    return whole != Runners().end()
               ? whole->second(c, inputs, pool)
               : FindRowRunner(op.name())(c, inputs, KernelsOn(pool));
  }

 private:
  kernels::Isa isa_;
  ThreadPool pools_[2] = {ThreadPool(kThreads[0]), ThreadPool(kThreads[1])};
};

}  // namespace

std::unique_ptr<Implementation> MakeCpuImplementation(
    const std::string& level) {
  if (level.empty()) {
    kernels::SelectIsa("");
    return std::make_unique<CpuImplementation>(kernels::ActiveIsa());
  }
  if (level == "double") return MakeDoubleImplementation();
  for (const kernels::Isa isa : {kernels::Isa::kV3, kernels::Isa::kV4}) {
    if (level == kernels::IsaName(isa)) {
      return std::make_unique<CpuImplementation>(isa);
    }
  }
  throw ConfigError(
      "unknown implementation 'cpu:" + level + "'; " +
      Suggestion("cpu:" + level, {"cpu:v3", "cpu:v4", "cpu:double"}));
}

}  // namespace softmoe::verify
