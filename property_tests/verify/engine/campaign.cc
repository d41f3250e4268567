// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/campaign.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "core/errors.h"
#include "core/failure.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/shrink.h"

namespace softmoe::verify {
namespace {

using Clock = std::chrono::steady_clock;

// An implementation that has run no case of an operation and declined this
// many, as many as `run` tries, does not offer the operation.
constexpr int64_t kDeclined = 100;

class Campaign {
 public:
  // Fills in *suite as the campaign goes on.
  Campaign(const CampaignOptions& options, Suite* suite)
      : options_(options), suite_(*suite) {
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
    // A key that one of the operations does not have is an error.
    for (const Operation* op : ops_) Draw(*op, *impls_.front(), 0);
  }

  void Run() {
    try {
      if (RunAll()) return FinishAll();
      suite_.EndEarly(StoppedError("stopped between two cases"));
    } catch (const StoppedError& stopped) {
      // Stopped during a call: its case is not judged.
      suite_.EndEarly(stopped, in_flight_);
    } catch (...) {
      suite_.EndEarly(CurrentFailure(), in_flight_);
      throw;
    }
  }

 private:
  // Returns false if it was asked to stop.
  bool RunAll() {
    for (int64_t i = 0; i < options_.cases; ++i) {
      for (const Operation* op : ops_) {
        for (const auto& impl : impls_) {
          if (unsupported_.contains({op->name(), impl->name()})) continue;
          const bool over = Over();
          if (options_.stop && options_.stop()) return false;
          const uint32_t number = options_.first + static_cast<uint32_t>(i);
          // Answers already received are judged, however late it is.
          if (over && !impl->Holds(Draw(*op, *impl, number))) continue;
          if (!over && i % impl->batch() == 0) Announce(*op, *impl, i);
          RunOne(*op, *impl, number);
        }
      }
      if ((Over() && i + 1 >= announced_) ||
          unsupported_.size() == ops_.size() * impls_.size()) {
        break;
      }
    }
    return true;
  }

  bool Over() const {
    const double passed =
        std::chrono::duration<double>(Clock::now() - start_).count();
    return passed >= options_.seconds;
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

  // Tells the implementation which cases come next, starting with the `i`th.
  void Announce(const Operation& op, Implementation& impl, int64_t i) {
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
    announced_ = std::max(announced_, i + count);
    in_flight_ = ReproLine(
        cases.front(), options_.command,
        fmt::format("not judged: the first of {} cases in one call", count));
    impl.Prepare(op, cases);
    in_flight_.clear();
  }

  bool FailsAlone(const Case& c) const {
    const auto fresh = MakeImplementation(c.impl);
    return Finished(options_.check(c, *fresh), *fresh).failed();
  }

  // Keeps the case as it was found if only that one fails on a new
  // implementation; adds a hint if neither fails, since the REPRO line then
  // passes. A `lib:` keeps the state of its own globals.
  void PreferWhatFailsAlone(const CaseResult& found, Shrunk& smallest) const {
    try {
      if (FailsAlone(smallest.result.c)) return;
      if (FailsAlone(found.c)) {
        smallest.result = found;
        return;
      }
    } catch (const StoppedError&) {
      throw;
    } catch (const Error&) {
      return;  // the failure is reported in any case
    }
    smallest.result.hints.push_back(fmt::format(
        "passes alone: it fails only after earlier cases, or intermittently; "
        "rerun from case={} with the same arguments",
        options_.first));
  }

  void RunOne(const Operation& op, Implementation& impl, uint32_t number) {
    const Case c = Draw(op, impl, number);
    in_flight_ = ReproLine(c, options_.command, "not judged");
    const CaseResult result = options_.check(c, impl);
    in_flight_.clear();
    suite_.Add(result);
    if (result.status == Status::kUnsupported) {
      if (options_.on_result) options_.on_result(result);
      GiveUpIfNotOffered(op, impl, result.c.dtype);
      return;
    }
    last_[&impl] = result;
    std::optional<Shrunk> smallest;
    try {
      if (options_.on_result) options_.on_result(result);
      if (!result.failed()) return;
      int& shrunk =
          shrunk_[op.name() + " " + impl.name() + " " + result.output];
      if (options_.shrink && shrunk++ < options_.max_shrunk) {
        smallest = Shrink(result, impl, options_.check);
        PreferWhatFailsAlone(result, *smallest);
      }
    } catch (...) {
      // An error on the way must not leave a FAIL without its REPRO line, and
      // what on_failure throws must not replace that error.
      try {
        if (smallest) {
          AddFailure({result, smallest->result, smallest->runs, 1});
        } else if (result.failed()) {
          CountOnly(result);
        }
      } catch (...) {
      }
      throw;
    }
    if (!smallest) return CountOnly(result);
    AddFailure({result, smallest->result, smallest->runs, 1});
  }

  // A reason known beforehand holds for all cases and is reported once; an
  // answer concerns its own case only.
  void GiveUpIfNotOffered(const Operation& op, const Implementation& impl,
                          Dtype dtype) {
    const Unit unit = {op.name(), impl.name()};
    const UnitStatistics& seen = suite_.units().at(unit);
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
      suite_.Overturn(result, before);
      CountOnly(result);
      if (options_.on_result) options_.on_result(result);
    }
  }

  void CountOnly(const CaseResult& result) {
    const size_t before = suite_.failures().size();
    suite_.CountFailure(result);
    Report(before);
  }
  void AddFailure(Failure failure) {
    const size_t before = suite_.failures().size();
    suite_.AddFailure(std::move(failure));
    Report(before);
  }
  void Report(size_t before) {
    const std::vector<Failure>& failures = suite_.failures();
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
  // The last case that each implementation ran.
  std::map<const Implementation*, CaseResult> last_;
  // Cases of every operation, counted from the first, up to the end of the
  // furthest batch announced.
  int64_t announced_ = 0;
  // The REPRO line of the case that is being computed; "" between cases.
  std::string in_flight_;
  Suite& suite_;
};

}  // namespace

void CheckCampaign(const CampaignOptions& options) {
  Suite unused;
  Campaign{options, &unused};
}

Suite RunCampaign(const CampaignOptions& options) {
  Suite suite;
  RunCampaign(options, &suite);
  return suite;
}

void RunCampaign(const CampaignOptions& options, Suite* suite) {
  Campaign(options, suite).Run();
}

}  // namespace softmoe::verify
