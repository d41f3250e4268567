// SPDX-License-Identifier: Apache-2.0
//
// plan_protocol.h - what `grid plan` says about a grid's protocol: how many
// experts its soft rows would activate if their scores kept their initial
// spread. `//:golden -- show paper --protocol` shows this for the paper.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_PROTOCOL_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_PROTOCOL_H_

#include <string>
#include <vector>

#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

// A table with one line per soft row, whatever its corpora, beside what the
// paper prints for the first of them; "" if no row is soft. Takes a second for
// a few rows.
std::string DescribeStillRuns(const std::vector<RowEstimate>& rows);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_PROTOCOL_H_
