// SPDX-License-Identifier: Apache-2.0
#include "core/profile.h"

#include <utility>

#include "core/errors.h"

namespace softmoe {

std::atomic<Profile*> Profile::active_{nullptr};

Profile::Profile() {
  Profile* nobody = nullptr;
  SOFTMOE_CHECK(active_.compare_exchange_strong(nobody, this))
      << "a second profile";
}

Profile::~Profile() { active_.store(nullptr); }

void Profile::Begin(const char* name, const OperationWork& work) {
  End();
  const auto [found, is_new] = index_.emplace(name, operations_.size());
  if (is_new) operations_.push_back({.name = name});
  current_ = static_cast<int64_t>(found->second);
  OperationTime& operation = operations_[found->second];
  ++operation.calls;
  operation.work.flops += work.flops;
  operation.work.bytes += work.bytes;
  job_nanoseconds_ = 0;
  task_nanoseconds_.store(0, std::memory_order_relaxed);
  start_ = Nanoseconds();
}

void Profile::End() {
  if (current_ < 0) return;
  const int64_t elapsed = Nanoseconds() - start_;
  OperationTime& operation = operations_[static_cast<size_t>(current_)];
  operation.seconds += 1e-9 * static_cast<double>(elapsed);
  operation.job_seconds += 1e-9 * static_cast<double>(job_nanoseconds_);
  operation.task_seconds +=
      1e-9 *
      static_cast<double>(task_nanoseconds_.load(std::memory_order_relaxed));
  current_ = -1;
}

std::vector<OperationTime> Profile::Take() {
  End();
  index_.clear();
  return std::exchange(operations_, {});
}

}  // namespace softmoe
