// SPDX-License-Identifier: Apache-2.0
//
// planted_bugs.h - small kernels, or programs, with one mistake each, and
// correct ones: what the simulator must, and must not, report
// (planted_bugs_test.cc).
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_PLANTED_BUGS_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_PLANTED_BUGS_H_

#include <span>

#include "kernels/simt/shim/variant.h"

namespace softmoe::simt {

enum class Outcome {
  kClean,
  kWrong,     // it ran, and the result is not what it should be
  kRefused,   // the simulator stopped it and said where
  kReported,  // the sanitizer stopped it and said where
  kDied,      // the process ended in some other way
};

// Which outcomes a build must show in at least one of the three schedules.
enum class Must {
  kStayClean,  // in all three
  kBeWrong,
  kRefuse,
  kReport,
  kDie,       // by a signal
  kAnything,  // this build cannot see it, or sees it by luck
};

struct PlantedBug {
  const char* name;
  Must must[kNumVariants];  // by Variant
  // Returns kClean, kWrong or kRefused.
  Outcome (*run)();
  // What the report must say; null: a line of PlantedBugsSource().
  const char* says = nullptr;
};

std::span<const PlantedBug> PlantedBugs();
const char* PlantedBugsSource();  // "planted_bugs.cu:"

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_PLANTED_BUGS_H_
