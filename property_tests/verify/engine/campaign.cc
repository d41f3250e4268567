// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/campaign.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "core/errors.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/shrink.h"

namespace softmoe::verify {
namespace {

using Clock = std::chrono::steady_clock;

// An operation of which an implementation takes none of so many cases, and had
// none before, is not offered: as many as `run` tries.
constexpr int64_t kDeclined = 100;

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options) : options_(options) {
    if (options.impls.empty()) throw ConfigError("no implementation is named");
    for (const std::string& name : options.impls) {
      impls_.push_back(MakeImplementation(name));
    }
    if (options.ops.empty()) {
      ops_ = Operations();
    }
    for (const std::string& name : options.ops) {
      ops_.push_back(&FindOperation(name));
    }
    // A key that no operation has is an error; a key that only some have
    // applies to those.
    for (const Operation* op : ops_) Draw(*op, *impls_.front(), 0);
  }

  CampaignResult Run() {
    for (int64_t i = 0; i < options_.cases; ++i) {
      for (const Operation* op : ops_) {
        for (const auto& impl : impls_) {
          if (Over() || unsupported_.contains({op->name(), impl->name()})) {
            continue;
          }
          try {
            if (i % impl->batch() == 0) Announce(*op, *impl, i);
            RunOne(*op, *impl, options_.first + static_cast<uint32_t>(i));
          } catch (const StoppedError&) {
            result_.stopped = true;  // during a call: this case is not judged
          }
        }
      }
      if (Over() || unsupported_.size() == ops_.size() * impls_.size()) {
        break;
      }
    }
    if (!result_.stopped) FinishAll();
    return std::move(result_);
  }

 private:
  bool Over() {
    if (options_.stop && options_.stop()) result_.stopped = true;
    const double passed =
        std::chrono::duration<double>(Clock::now() - start_).count();
    return result_.stopped || passed >= options_.seconds;
  }

  Case Draw(const Operation& op, Implementation& impl, uint32_t number) const {
    CasePattern pattern = options_.fixed;
    pattern["impl"] = impl.name();
    pattern.emplace("dtype", DtypeName(DtypeFor(op, impl)));
    using Edges = CampaignOptions::Edges;
    const size_t edges = op.edges().size();
    if (edges > 0 && (options_.edges == Edges::kAll ||
                      (options_.edges == Edges::kFirst &&
                       number - options_.first < 2 * edges))) {
      return DrawEdge(op, pattern, options_.seed, number);
    }
    Case c = DrawCase(op, pattern, options_.seed, number);
    for (auto& [name, window] : c.sizes) {
      if (pattern.contains(name)) continue;
      window.count =
          std::min(window.count,
                   std::max(options_.max_size, LeastSize(op, name, pattern)));
    }
    Repair(op, c);
    return c;
  }

  // Tells the implementation which cases come next, from the `i`th on.
  void Announce(const Operation& op, Implementation& impl, int64_t i) const {
    const int64_t count = std::min<int64_t>(impl.batch(), options_.cases - i);
    std::vector<Case> cases;
    for (int64_t next = i; count > 1 && next < i + count; ++next) {
      cases.push_back(
          Draw(op, impl, options_.first + static_cast<uint32_t>(next)));
    }
    if (cases.empty() ||
        !impl.WhyUnsupported(op, cases.front().dtype).empty()) {
      return;
    }
    impl.Prepare(op, cases);
  }

  void RunOne(const Operation& op, Implementation& impl, uint32_t number) {
    const CaseResult result = options_.check(Draw(op, impl, number), impl);
    result_.suite.Add(result);
    if (options_.on_result) options_.on_result(result);
    if (result.status == Status::kUnsupported) {
      GiveUpIfNotOffered(op, impl, result.c.dtype);
      return;
    }
    last_[&impl] = result;
    if (!result.failed()) return;
    int& shrunk = shrunk_[op.name() + " " + impl.name() + " " + result.output];
    if (!options_.shrink || shrunk++ >= options_.max_shrunk) {
      CountOnly(result);
      return;
    }
    const Shrunk smallest = Shrink(result, impl, options_.check);
    AddFailure({result, smallest.result, smallest.runs, 1});
  }

  // A reason that is known beforehand holds for all cases, and is said once;
  // an answer is about its case.
  void GiveUpIfNotOffered(const Operation& op, const Implementation& impl,
                          Dtype dtype) {
    const Unit unit = {op.name(), impl.name()};
    const UnitStatistics& seen = result_.suite.units().at(unit);
    if (!impl.WhyUnsupported(op, dtype).empty() ||
        (seen.ran() == 0 && seen.Count(Status::kUnsupported) >= kDeclined)) {
      unsupported_.insert({unit.op, unit.impl});
    }
  }

  void FinishAll() {
    for (const auto& impl : impls_) {
      const auto last = last_.find(impl.get());
      if (last == last_.end()) continue;  // it computed nothing
      const Status before = last->second.status;
      const CaseResult result = Finished(last->second, *impl);
      if (!result.failed() || before == Status::kFail) continue;
      result_.suite.Overturn(result, before);
      if (options_.on_result) options_.on_result(result);
      CountOnly(result);
    }
  }

  void CountOnly(const CaseResult& result) {
    const size_t before = result_.suite.failures().size();
    result_.suite.CountFailure(result);
    Report(before);
  }
  void AddFailure(Failure failure) {
    const size_t before = result_.suite.failures().size();
    result_.suite.AddFailure(std::move(failure));
    Report(before);
  }
  void Report(size_t before) {
    const std::vector<Failure>& failures = result_.suite.failures();
    if (failures.size() > before && options_.on_failure) {
      options_.on_failure(failures.back());
    }
  }

  const CampaignOptions& options_;
  Clock::time_point start_ = Clock::now();
  std::vector<const Operation*> ops_;
  std::vector<std::unique_ptr<Implementation>> impls_;
  std::set<std::pair<std::string, std::string>> unsupported_;
  std::map<std::string, int> shrunk_;
  // The last case of each that ran.
  std::map<const Implementation*, CaseResult> last_;
  CampaignResult result_;
};

}  // namespace

void CheckCampaign(const CampaignOptions& options) { Campaign{options}; }

CampaignResult RunCampaign(const CampaignOptions& options) {
  return Campaign(options).Run();
}

}  // namespace softmoe::verify
