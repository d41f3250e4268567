// SPDX-License-Identifier: Apache-2.0
//
// draw.h - draws one case from a few fixed keys, a seed and a number.
//
// Every parameter is drawn from its own Philox stream, named by (seed, number,
// parameter), so fixing one leaves the others unchanged, except a size that
// would be too small for the fixed value, and what a fixed size limits.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_DRAW_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_DRAW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// Draws case `number` of `seed`, with the keys of `fixed` as given: "impl",
// "dtype", "fill", "simplify", and parameters of the operation; "op", "seed"
// and "case" are ignored. Throws ConfigError, with a suggestion, for an unknown
// key or an invalid value.
Case DrawCase(const Operation& op, const CasePattern& fixed, uint64_t seed,
              uint32_t number);

// The case that a text of KEY=VALUE words describes; "op=" is required. Missing
// keys are drawn from "seed=" and "case=", both 0 by default; "impl=" defaults
// to `default_impl`.
Case ParseCase(const std::string& text,
               const std::string& default_impl = "cpu:v3");

// The smallest that size `name` of `op` may be, given the values in `fixed` of
// the parameters that it limits; 0 if there are none.
int64_t LeastSize(const Operation& op, const std::string& name,
                  const CasePattern& fixed);

// Every key that a case of `op` may have.
std::vector<std::string> CaseKeys(const Operation& op);

// Clamps each parameter whose range depends on others, after those have
// changed.
void Repair(const Operation& op, Case& c);

// The range of a size or real parameter of `op`, given the parameters before
// it. Its edges (Operation::edges) are valid, too.
struct Range {
  double low, high;
};
Range RangeOf(const Operation& op, const Parameter& parameter, const Case& c);

// Case `number` of `seed` at one of the operation's edges, which take turns.
// Words of the edge that are not compatible with `fixed` are left out. Sizes
// that neither names are small. The operation must have an edge.
Case DrawEdge(const Operation& op, const CasePattern& fixed, uint64_t seed,
              uint32_t number);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_DRAW_H_
