// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/self_check.h"

#include "core/errors.h"
#include "property_tests/verify/check.h"
#include "property_tests/verify/draw.h"
#include "property_tests/verify/implementation.h"

namespace softmoe::verify {

void CheckSelf() {
  const std::string text =
      "op=lapsum fill=generic rows=5 num_experts=13 mean_active=2.375 "
      "temperature=1.75 spread=1 impl=";
  for (const char* name : {"faulty:none:weights:reference_f32",
                           "faulty:zero:weights:reference_f32",
                           "faulty:one_nan:d_scores:reference_f32",
                           "faulty:sign:d_scores:reference_f32"}) {
    const bool healthy = std::string(name).starts_with("faulty:none");
    const auto implementation = MakeImplementation(name);
    const CaseResult result =
        CheckCase(ParseCase(text + name), *implementation);
    if ((result.status == Status::kPass) == healthy) continue;
    throw InternalError(
        std::string("self-check: ") + name + " was judged " +
        golden::StatusName(result.status) + " " + result.reason +
        "; no verdict of this program can be trusted: report it as a bug");
  }
}

}  // namespace softmoe::verify
