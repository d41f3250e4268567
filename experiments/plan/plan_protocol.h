// SPDX-License-Identifier: Apache-2.0
//
// plan_protocol.h - what `grid plan` says about a grid's protocol: how many
// experts its soft rows would activate if their scores stayed as spread as they
// are drawn. `//:golden -- show paper --protocol` has the same for the paper.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_PROTOCOL_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_PROTOCOL_H_

#include <string>
#include <vector>

#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

// A table with a line for each soft row, whatever its corpora, beside what the
// paper prints for the first of these; "" if no row is soft. Takes a second for
// a few rows.
std::string DescribeStillRuns(const std::vector<RowEstimate>& rows);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_PROTOCOL_H_
