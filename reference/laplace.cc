// SPDX-License-Identifier: Apache-2.0
#include "reference/laplace.h"

#include <cmath>

namespace softmoe::reference {

double LaplaceCdf(double u) {
  return u <= 0 ? 0.5 * std::exp(u) : 1 - 0.5 * std::exp(-u);
}

double LaplacePdf(double u) { return 0.5 * std::exp(-std::abs(u)); }

}  // namespace softmoe::reference
