// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/self_check.h"

#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/gradients/gradient_check.h"

namespace softmoe::verify {
namespace {

// Throws unless `check` passes "faulty:none:..." among `names`, and no other.
void ExpectJudged(const Checker& check, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool healthy = name.starts_with("faulty:none");
    const auto implementation = MakeImplementation(name);
    const CaseResult result =
        check(ParseCase("op=lapsum fill=generic rows=5 num_experts=13 "
                        "mean_active=2.375 temperature=1.75 spread=1 impl=" +
                        name),
              *implementation);
    if ((result.status == Status::kPass) == healthy) continue;
    throw InternalError(
        "self-check: " + name + " was judged " + StatusName(result.status) +
        " " + result.reason +
        "; no verdict of this program can be trusted: report it as a bug");
  }
}

}  // namespace

void CheckSelf() {
  ExpectJudged(
      [](const Case& c, Implementation& i) { return CheckCase(c, i); },
      {"faulty:none:weights:reference_f32", "faulty:zero:weights:reference_f32",
       "faulty:one_nan:d_scores:reference_f32",
       "faulty:sign:d_scores:reference_f32"});
}

void CheckGradientSelf() {
  ExpectJudged(CheckGradients,
               {"faulty:none:d_scores:reference_f64",
                "faulty:one_nan:d_scores:reference_f64",
                "faulty:zero:d_mean_active:reference_f64",
                "faulty:one_part_in_1e4:d_scores:reference_f64"});
}

}  // namespace softmoe::verify
