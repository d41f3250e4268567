// SPDX-License-Identifier: Apache-2.0
//
// check.h - runs one case on one implementation and judges every output; and
// the result, for the code that prints, stores or counts it.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CHECK_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CHECK_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/comparator.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// What `verify grad` found along the directions that it tried (slope.h).
struct Convergence {
  int64_t smooth = 0;     // differences converge with an even order
  int64_t kinks = 0;      // from either side, to slopes that may differ
  int64_t undecided = 0;  // neither: nothing was compared
  // Observed orders of convergence of the smooth ones; NaN if none is observed.
  double lowest_order = NAN, highest_order = NAN;

  int64_t directions() const { return smooth + kinks + undecided; }
  void Add(const Convergence& other);
};

struct OutputResult {
  std::string output;
  Comparison comparison;
  std::string derivation;
  // Means over the elements, in units of their bounds: the errors upwards and
  // towards zero, both about 0 under rounding to nearest, and the value of
  // either if the output were truncated when stored.
  double mean_scaled = 0, towards_zero = 0, truncation = 0;
  Convergence convergence = {};
};

struct CaseResult {
  Case c;
  std::string command = "run";  // the command of verify that checks it again
  // FAIL if an output fails; otherwise PASS if one passes; otherwise MISTRUSTED
  // (the data could not tell right from wrong) or INCONCLUSIVE (some elements
  // have no bound). UNSUPPORTED if nothing was run.
  Status status = Status::kPass;
  std::string output;  // the output that failed, or ""
  std::string reason;  // one sentence; "" for PASS
  std::vector<OutputResult> outputs;
  std::vector<std::string> missing;  // optional outputs that were left out
  std::vector<std::string> hints;    // what the failure looks like
  int64_t decisions = 0, ambiguous = 0;
  double seconds = 0;  // taken by the implementation

  bool failed() const { return status == Status::kFail; }
  // Records the first failure as that of the case; ignores further ones.
  void Fail(const std::string& failing, const std::string& why);
  // Sets the status if no output is evidence: outputs that agree on data that
  // cannot tell right from wrong are none.
  void JudgeTrust();
  double utilisation() const;  // the largest of all outputs
  // "d_scores[17]": where (flat) the failing output is worst, or only its name.
  std::string Place() const;
};

// What a check saw, for diagnosis and replay bundles.
struct Evidence {
  TensorMap inputs, got;
  Expected expected;
};

// One way of checking a case: CheckCase below, CheckGradients
// (gradient_check.h).
using Checker = std::function<CaseResult(const Case&, Implementation&)>;

// Generates the data and checks the case. An odd-numbered case
// (IsCheckedAfterAnother) is checked after a call with other data of the same
// shape, which must leave no trace, unless the implementation remembers
// nothing. Throws EnvironmentError, StoppedError, and InternalError if the
// harness contradicts itself; anything else that the implementation throws is a
// FAIL (RunUnsupported: UNSUPPORTED).
CaseResult CheckCase(const Case& c, Implementation& implementation,
                     Evidence* evidence = nullptr);

// Does the same with given data (a replay bundle); the data for the call before
// an odd case is generated.
CaseResult CheckInputs(const Case& c, const TensorMap& inputs,
                       Implementation& implementation,
                       Evidence* evidence = nullptr);

// Replaces the bounds for everybody by the narrower ones of our kernels
// (Expected::of_ours) if `implementation` stores as our kernels do.
void TakeBoundsFor(const Implementation& implementation, Expected* expected);

// Tells `implementation` that no more cases come (Implementation::Finish). A
// failure then is a FAIL of `last`, a case that it ran before. Returns `last`.
CaseResult Finished(CaseResult last, Implementation& implementation);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CHECK_H_
