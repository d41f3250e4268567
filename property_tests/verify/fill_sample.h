// SPDX-License-Identifier: Apache-2.0
//
// fill_sample.h - a case with everything needed by the tests that count what
// data is drawn and what happens to it.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FILL_SAMPLE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FILL_SAMPLE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/operation.h"
#include "reference/lapsum.h"

namespace softmoe::verify {

// The data of a case, and what the reference computes from it.
struct Sample {
  const Operation& op;
  Case c;
  TensorMap inputs;
  Expected expected;

  Sample(const Operation& operation, const CasePattern& fixed, uint32_t number)
      : op(operation),
        c(DrawCase(operation, fixed, 20260120, number)),
        inputs(InputsOf(operation, c)),
        expected(ExpectOf(operation, c, inputs, {})) {}

  bool Has(const std::string& tensor) const { return inputs.contains(tensor); }
  double Scalar(const std::string& name) const {
    return ScalarOf(inputs, name);
  }
  int64_t rows() const { return At(inputs, "scores").shape[0]; }
  int64_t experts() const { return At(inputs, "scores").shape[1]; }
  double Score(int64_t t, int64_t e) const {
    return At(inputs, "scores").values[t * experts() + e];
  }
  // The scores of token `t` in descending order.
  std::vector<double> Sorted(int64_t t) const {
    std::vector<double> row;
    for (int64_t e = 0; e < experts(); ++e) row.push_back(Score(t, e));
    std::ranges::sort(row, std::greater<>());
    return row;
  }
  reference::LapSum Solve(int64_t t) const {
    return reference::SolveLapSum(ToMatrix(At(inputs, "scores")).row(t),
                                  Scalar("mean_active"), Scalar("temperature"));
  }
  // [rows, num_experts], 0 or 1: which row is routed to which expert. An input
  // of the experts, an output of the router.
  const Tensor& Active() const {
    return Has("active") ? At(inputs, "active")
                         : expected.outputs.at("active").values;
  }
  int64_t Load(int64_t expert) const {  // tokens
    int64_t load = 0;
    const Tensor& active = Active();
    for (int64_t t = 0; t < active.shape[0]; ++t) {
      load += active.values[t * active.shape[1] + expert] != 0;
    }
    return load;
  }
  bool Soft() const {
    return op.name() == "router" && c.Choice("kind") == "soft";
  }
  // Whether some numeric tensor has only elements for which `holds`, and not
  // only zeros.
  bool SomeTensor(const std::function<bool(double)>& holds) const {
    for (const auto& [name, tensor] : inputs) {
      if (tensor.dtype == Dtype::kI32 || tensor.shape.empty()) continue;
      if (std::ranges::all_of(tensor.values, holds) &&
          std::ranges::any_of(tensor.values, [](double x) { return x != 0; })) {
        return true;
      }
    }
    return false;
  }
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FILL_SAMPLE_H_
