// SPDX-License-Identifier: Apache-2.0
#include "kernels/balance_loss.h"

#include "kernels/balance_loss_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {

void BalanceLoss(const BalanceLossArgs& args, ThreadPool& /*pool*/) {
  BalanceLossOfGroup(args);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
