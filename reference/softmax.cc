// SPDX-License-Identifier: Apache-2.0
#include "reference/softmax.h"

#include "core/errors.h"

namespace softmoe::reference {

Vector Softmax(const Vector& scores) {
  return formula::Softmax<double>(scores);
}

Vector SoftmaxVjp(const Vector& softmax, const Vector& d_softmax) {
  SOFTMOE_CHECK(d_softmax.size() == softmax.size());
  return formula::SoftmaxVjp<double>(softmax, d_softmax);
}

double LogSumExp(const Vector& scores) {
  return formula::LogSumExp<double>(scores);
}

}  // namespace softmoe::reference
