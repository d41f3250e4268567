// SPDX-License-Identifier: Apache-2.0
#include "optimized/step_profile.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/errors.h"
#include "kernels/peaks.h"

namespace softmoe::optimized {
namespace {

constexpr int kMinSteps = 5;
constexpr double kMinSeconds = 1;

std::string Milliseconds(double seconds) {
  return fmt::format("{:.3f}", 1e3 * seconds);
}

// Rate and its share of the peak; empty for an operation without work.
struct Rate {
  std::string rate, share;
};

Rate RateOf(const OperationTime& operation, const StepProfile& step) {
  const OperationWork& work = operation.work;
  const bool products = work.flops > 0;
  const double amount = products ? work.flops : work.bytes;
  if (amount == 0 || operation.seconds == 0) return {};
  const double rate = 1e-9 * amount / operation.seconds;
  const double peak = products ? step.peak_gflops : step.copy_gigabytes;
  return {fmt::format("{:.1f} {}", rate, products ? "GFLOP/s" : "GB/s"),
          fmt::format("{:.0f}%", 100 * rate / peak)};
}

const OperationTime* Find(const std::vector<OperationTime>& operations,
                          const std::string& name) {
  for (const OperationTime& operation : operations) {
    if (operation.name == name) return &operation;
  }
  return nullptr;
}

// All operations together; the rate is that of the products.
OperationTime Sum(const StepProfile& step) {
  OperationTime sum{.name = "the step"};
  for (const OperationTime& operation : step.operations) {
    sum.calls += operation.calls;
    sum.work.flops += operation.work.flops;
    sum.seconds += operation.seconds;
    sum.job_seconds += operation.job_seconds;
    sum.task_seconds += operation.task_seconds;
  }
  return sum;
}

// One line of the table; `one` is null where there is nothing to compare with.
std::string Line(const OperationTime& operation, const StepProfile& all,
                 const OperationTime* one, const StepProfile& one_step,
                 double step_seconds) {
  const Rate rate = RateOf(operation, all);
  std::string line = fmt::format(
      "{:<25} {:>5} {:>9} {:>4.0f}% {:>14} {:>5}", operation.name,
      operation.calls, Milliseconds(operation.seconds),
      100 * operation.seconds / step_seconds, rate.rate, rate.share);
  if (all.threads > 1) {
    line += fmt::format(
        " {:>8} {:>8}", Milliseconds(operation.SerialSeconds()),
        Milliseconds(operation.WaitSeconds(all.threads) / all.threads));
  }
  if (one != nullptr) {
    const Rate alone = RateOf(*one, one_step);
    const std::string times =
        operation.seconds == 0
            ? ""
            : fmt::format("{:.2f}", one->seconds / operation.seconds);
    line +=
        fmt::format(" | {:>9} {:>14} {:>5} {:>5}", Milliseconds(one->seconds),
                    alone.rate, alone.share, times);
  }
  return line + "\n";
}

}  // namespace

double StepProfile::Seconds() const { return Sum(*this).seconds; }

StepProfile ProfileStep(ThreadPool& pool, const std::function<void()>& step) {
  step();  // touches all memory
  Profile profile;
  std::vector<StepProfile> steps;
  for (double seconds = 0; steps.size() < kMinSteps || seconds < kMinSeconds;) {
    profile.Take();
    step();
    steps.push_back({.threads = pool.threads(), .operations = profile.Take()});
    SOFTMOE_CHECK(!steps.back().operations.empty()) << "nothing was profiled";
    seconds += steps.back().Seconds();
  }
  const auto median = steps.begin() + static_cast<int64_t>(steps.size() / 2);
  std::ranges::nth_element(steps, median, {}, &StepProfile::Seconds);
  StepProfile result = *median;
  result.peak_gflops = kernels::PeakGflops(pool);
  result.copy_gigabytes = kernels::CopyGigabytes(pool);
  return result;
}

std::string StepProfileTable(const StepProfile& all, const StepProfile& one,
                             int64_t tokens) {
  SOFTMOE_CHECK(one.threads == 1) << one.threads << " threads";
  const bool both = all.threads > 1;
  const std::string threads =
      fmt::format("{} thread{}", all.threads, both ? "s" : "");
  std::string text = fmt::format("{:<25} {:>5} {:>9} {:>5} {:>14} {:>5}",
                                 threads, "calls", "ms", "", "rate", "peak");
  if (both) {
    text += fmt::format(" {:>8} {:>8} | {:>9} {:>14} {:>5} {:>5}", "serial",
                        "waits", "1: ms", "rate", "peak", "times");
  }
  text += "\n";
  std::vector<OperationTime> operations = all.operations;
  std::ranges::stable_sort(operations, std::ranges::greater{},
                           &OperationTime::seconds);
  const double seconds = all.Seconds();
  for (const OperationTime& operation : operations) {
    const OperationTime* alone =
        both ? Find(one.operations, operation.name) : nullptr;
    text += Line(operation, all, alone, one, seconds);
  }
  const OperationTime alone = Sum(one);
  text += Line(Sum(all), all, both ? &alone : nullptr, one, seconds);
  const double count = static_cast<double>(tokens);
  text += fmt::format("{:.0f} tokens/s with {}", count / seconds, threads);
  if (both) {
    text += fmt::format(", {:.0f} with 1", count / alone.seconds);
  }
  text += fmt::format("\npeaks: {:.1f} GFLOP/s and {:.1f} GB/s with {}",
                      all.peak_gflops, all.copy_gigabytes, threads);
  if (both) {
    text += fmt::format(", {:.1f} and {:.1f} with 1", one.peak_gflops,
                        one.copy_gigabytes);
  }
  return text + "\n";
}

}  // namespace softmoe::optimized
