// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <bit>
#include <cstdint>
#include <utility>

#include "core/errors.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

// "12 of 64 elements, first [3]: 1.5, not 1.25".
std::string Difference(const Tensor& got, const Tensor& wanted) {
  if (got.shape != wanted.shape) {
    return fmt::format("shape {}, not {}", ShapeText(got.shape),
                       ShapeText(wanted.shape));
  }
  int64_t count = 0, first = 0;
  for (int64_t i = got.size() - 1; i >= 0; --i) {
    if (std::bit_cast<uint64_t>(got.values[i]) ==
        std::bit_cast<uint64_t>(wanted.values[i])) {
      continue;
    }
    ++count;
    first = i;
  }
  return fmt::format("{} of {} elements, first [{}]: {:.9g}, not {:.9g}", count,
                     got.size(), first, got.values[first],
                     wanted.values[first]);
}

class SameBitsImplementation : public Implementation {
 public:
  SameBitsImplementation(std::unique_ptr<Implementation> computes,
                         std::unique_ptr<Implementation> says)
      : computes_(std::move(computes)), says_(std::move(says)) {}

  std::string name() const override {
    return "same:" + computes_->name() + "," + says_->name();
  }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    const std::string why = computes_->WhyUnsupported(op, dtype);
    return why.empty() ? says_->WhyUnsupported(op, dtype) : why;
  }
  int schedules() const override { return computes_->schedules(); }
  bool stores_as_ours() const override { return computes_->stores_as_ours(); }
  void Finish() override {
    computes_->Finish();
    says_->Finish();
  }

  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    TensorMap got = computes_->Run(op, c, inputs, schedule);
    // check.h compares the schedules of the first with each other.
    if (schedule > 0) return got;
    for (const auto& [output, wanted] : says_->Run(op, c, inputs, 0)) {
      const auto found = got.find(output);
      if (found == got.end() || SameBits(found->second, wanted)) continue;
      throw RunFailure(
          fmt::format("{} has other bits than on {}: {}", output, says_->name(),
                      Difference(found->second, wanted)),
          output);
    }
    return got;
  }

 private:
  std::unique_ptr<Implementation> computes_, says_;
};

}  // namespace

std::unique_ptr<Implementation> MakeSameBitsImplementation(
    const std::string& argument) {
  const size_t comma = argument.find(',');
  if (comma == std::string::npos) {
    throw ConfigError("implementation 'same:" + argument +
                      "' must read same:IMPL,IMPL, such as same:cuda,shim");
  }
  return std::make_unique<SameBitsImplementation>(
      MakeImplementation(argument.substr(0, comma)),
      MakeImplementation(argument.substr(comma + 1)));
}

}  // namespace softmoe::verify
