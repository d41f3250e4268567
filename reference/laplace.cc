// SPDX-License-Identifier: Apache-2.0
#include "reference/laplace.h"

#include <cmath>

namespace softmoe::reference {

double LaplacePdf(double u) { return 0.5 * std::exp(-std::abs(u)); }

}  // namespace softmoe::reference
