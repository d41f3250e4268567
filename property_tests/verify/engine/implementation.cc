// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

Dtype DtypeFor(const Operation& op, const Implementation& implementation) {
  for (const Dtype dtype : op.dtypes()) {
    if (implementation.WhyUnsupported(op, dtype).empty()) return dtype;
  }
  return op.dtypes().front();
}

}  // namespace softmoe::verify
