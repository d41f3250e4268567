// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "core/errors.h"
#include "core/text/suggestion.h"
#include "kernels/isa.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {

#define SOFTMOE_CPU_OnStream(Name) \
  [&pool](const auto& args) { kernels::Name(args, pool); }
#define SOFTMOE_CPU_OnQueue(Name) SOFTMOE_CPU_OnStream(Name)
#define SOFTMOE_CPU_DeviceOnly(Name) nullptr
#define SOFTMOE_CPU_KERNEL(_, name, Name, where, ...) SOFTMOE_CPU_##where(Name),

RowKernels CpuKernels(ThreadPool& pool) {
  return {SOFTMOE_KERNELS(SOFTMOE_CPU_KERNEL, )};
}

namespace {

constexpr int kThreads[] = {1, 3, 4};

class CpuImplementation : public Implementation {
 public:
  CpuImplementation(kernels::Isa isa, const Adapters& adapters)
      : isa_(isa), adapters_(adapters) {}

  std::string name() const override {
    return std::string("cpu:") + kernels::IsaName(isa_);
  }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (!kernels::IsaAvailable(isa_)) {
      return std::string("this CPU lacks level ") + kernels::IsaName(isa_);
    }
    if (dtype != Dtype::kF32) return "the CPU kernels compute in f32";
    return adapters_.rows.contains(op.name()) ||
                   adapters_.cpu.contains(op.name())
               ? ""
               : "no CPU kernel implements it";
  }
  int schedules() const override { return std::size(kThreads); }
  bool stores_as_ours() const override { return true; }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    kernels::SelectIsa(kernels::IsaName(isa_));
    ThreadPool& pool = pools_[schedule];
    const auto whole = adapters_.cpu.find(op.name());
    return whole != adapters_.cpu.end()
               ? whole->second(c, inputs, pool)
               : adapters_.rows.at(op.name())(c, inputs, CpuKernels(pool));
  }

 private:
  kernels::Isa isa_;
  const Adapters& adapters_;
  ThreadPool pools_[3] = {ThreadPool(kThreads[0]), ThreadPool(kThreads[1]),
                          ThreadPool(kThreads[2])};
};

class DoubleImplementation : public Implementation {
 public:
  explicit DoubleImplementation(
      const std::map<std::string, DoubleAdapter>& adapters)
      : adapters_(adapters) {}

  std::string name() const override { return "cpu:double"; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (!adapters_.contains(op.name())) return "no kernel body implements it";
    return dtype == Dtype::kF64 ? "" : "the bodies run at f64 here";
  }
  bool stores_as_ours() const override { return true; }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    return adapters_.at(op.name())(c, inputs);
  }

 private:
  const std::map<std::string, DoubleAdapter>& adapters_;
};

}  // namespace

std::unique_ptr<Implementation> MakeCpuImplementation(
    const std::string& level, const Adapters& adapters) {
  if (level.empty()) {
    kernels::SelectIsa("");
    return std::make_unique<CpuImplementation>(kernels::ActiveIsa(), adapters);
  }
  if (level == "double") {
    return std::make_unique<DoubleImplementation>(adapters.at_double);
  }
  for (const kernels::Isa isa : {kernels::Isa::kV3, kernels::Isa::kV4}) {
    if (level == kernels::IsaName(isa)) {
      return std::make_unique<CpuImplementation>(isa, adapters);
    }
  }
  throw ConfigError(
      "unknown implementation 'cpu:" + level + "'; " +
      Suggestion("cpu:" + level, {"cpu:v3", "cpu:v4", "cpu:double"}));
}

}  // namespace softmoe::verify
