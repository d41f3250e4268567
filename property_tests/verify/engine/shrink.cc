// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/shrink.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/errors.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/fill.h"

namespace softmoe::verify {
namespace {

using Clock = std::chrono::steady_clock;

class Shrinker {
 public:
  Shrinker(const CaseResult& failing, Implementation& implementation,
           const Checker& check)
      : check_(check),
        op_(FindOperation(failing.c.op)),
        implementation_(implementation),
        output_(failing.output),
        best_{failing, 0} {}

  Shrunk Run() {
    bool smaller = true;
    while (smaller && !Spent()) {
      smaller = ShrinkSizes();
      smaller = ShrinkParameters() || smaller;
    }
    ShrinkValues();
    ShrinkSizes();
    return best_;
  }

 private:
  bool Spent() const { return best_.runs >= max_runs_ || Clock::now() >= end_; }

  // Returns true if the same output fails; the candidate is then the new best.
  bool Try(Case candidate) {
    Repair(op_, candidate);
    if (candidate == best_.result.c || Spent()) return false;
    ++best_.runs;
    try {
      CaseResult result = check_(candidate, implementation_);
      if (!result.failed() || result.output != output_) return false;
      best_.result = std::move(result);
      return true;
    } catch (const ConfigError&) {
      return false;  // the simplified data is not valid for this operation
    } catch (const StoppedError&) {
      max_runs_ = 0;  // what was found is still reported
      return false;
    }
  }

  bool TrySize(const Parameter& p, int64_t count) {
    const Window now = best_.result.c.sizes.at(p.name);
    count = count / p.step * p.step;
    if (count >= now.count || count < static_cast<int64_t>(p.low)) return false;
    for (const int64_t first : {now.first, now.first + now.count - count}) {
      if (first > 0 && first > kMaxIndex - count) continue;  // no REPRO line
      Case candidate = best_.result.c;
      candidate.sizes[p.name] = {count, first};
      if (Try(candidate)) return true;
    }
    return false;
  }

  bool ShrinkSizes() {
    bool any = false;
    for (const Parameter& p : op_.parameters()) {
      if (p.kind != Parameter::Kind::kSize) continue;
      bool smaller = true;
      while (smaller) {
        const int64_t count = best_.result.c.sizes.at(p.name).count;
        smaller = TrySize(p, static_cast<int64_t>(p.low)) ||
                  TrySize(p, count / 2) || TrySize(p, count * 3 / 4) ||
                  TrySize(p, count - p.step);
        any = any || smaller;
      }
    }
    return any;
  }

  bool ShrinkParameters() {
    bool any = false;
    if (best_.result.c.fill.name != "generic") {
      Case candidate = best_.result.c;
      candidate.fill = {};
      any = Try(candidate);
      if (best_.result.c.fill.argument > 1) {
        candidate = best_.result.c;
        candidate.fill.argument = 1;
        any = Try(candidate) || any;
      }
    }
    for (const Parameter& p : op_.parameters()) {
      if (p.kind == Parameter::Kind::kChoice) {
        any = TryChoice(p, p.choices.front()) || any;
      } else if (p.kind == Parameter::Kind::kReal) {
        const double now = best_.result.c.reals.at(p.name);
        any = TryReal(p, p.simple) || TryReal(p, std::round(now)) ||
              TryReal(p, std::round(now * 4) / 4) || any;
      }
    }
    return any;
  }

  bool TryReal(const Parameter& p, double value) {
    // Once the simplest number is found, no other is tried.
    if (best_.result.c.reals.at(p.name) == p.simple) return false;
    Case candidate = best_.result.c;
    candidate.reals[p.name] = value;
    return Try(candidate);
  }

  bool TryChoice(const Parameter& p, const std::string& choice) {
    Case candidate = best_.result.c;
    candidate.choices[p.name] = choice;
    return Try(candidate);
  }

  bool TryValues(const std::string& tensor, Simplification::How how,
                 int64_t argument = 0) {
    Case candidate = best_.result.c;
    const TensorMap before = InputsOf(op_, candidate);
    candidate.simplify.push_back({tensor, how, argument});
    try {
      if (InputsOf(op_, candidate) == before) return false;
    } catch (const ConfigError&) {
      return false;  // no longer valid for this operation
    }
    return Try(candidate);
  }

  void ShrinkValues() {
    using How = Simplification::How;
    const TensorMap inputs = InputsOf(op_, best_.result.c);
    for (const auto& [name, tensor] : inputs) {
      if (tensor.shape.empty()) continue;  // a parameter: handled above
      if (tensor.dtype == Dtype::kI32) {
        TryValues(name, How::kZero);
        continue;
      }
      if (TryValues(name, How::kZero) || TryValues(name, How::kOne)) continue;
      for (int64_t i = 0; i < std::min<int64_t>(tensor.size(), 8); ++i) {
        if (tensor.size() > 1 && TryValues(name, How::kOnly, i)) break;
      }
      for (const int64_t bits : {1, 3, 8}) {
        if (TryValues(name, How::kBits, bits)) break;
      }
    }
  }

  const Checker& check_;
  const Operation& op_;
  Implementation& implementation_;
  std::string output_;
  int max_runs_ = 400;
  const Clock::time_point end_ = Clock::now() + std::chrono::seconds(20);
  Shrunk best_;
};

}  // namespace

Shrunk Shrink(const CaseResult& failing, Implementation& implementation,
              const Checker& check) {
  SOFTMOE_CHECK(failing.failed()) << CaseText(failing.c);
  return Shrinker(failing, implementation, check).Run();
}

}  // namespace softmoe::verify
