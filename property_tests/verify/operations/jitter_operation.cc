// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/noise_parameters.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"
#include "reference/noise.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
namespace formula = reference::formula;
using reference::Matrix;

template <typename N>
struct JitterFormula {
  std::map<std::string, std::vector<N>> outputs;

  JitterFormula(const reference::RouterNoise& noise, int64_t first_token,
                const Matrix& hidden, const Matrix& d_router_input,
                const Matrix& before) {
    outputs["router_input"] = Flat<N>(
        formula::NoisyRouterInput<N>(noise, first_token, As<N>(hidden)));
    outputs["d_hidden"] = Flat<N>(formula::Plus<N>(
        As<N>(before), formula::NoisyRouterInput<N>(noise, first_token,
                                                    As<N>(d_router_input))));
  }
};

// The router's input with noise (SPEC.md 2.4).
// inputs   hidden, d_hidden_before [rows, d_model]; in float: d_router_input
//          [rows, d_model], amplitude []
// outputs  router_input [rows, d_model], in float; d_hidden
class Jitter : public Operation {
 public:
  Jitter() {
    name_ = "jitter";
    text_ =
        "hidden (1 - eps + 2 eps u), u uniform by Philox; d_hidden += "
        "d_router_input times the same";
    parameters_ = {
        {.name = "rows", .text = "tokens", .high = 140},
        {.name = "d_model", .text = "width", .high = 140},
        {.name = "amplitude",
         .kind = Kind::kReal,
         .text = "eps",
         .low = 0,
         .high = 0.99,
         .typical = {0, 0.01, 0.05, 0.9},
         .simple = 0.5},
        NoiseSeedParameter(),
        StepParameter(),
        LayerParameter(),
        FirstTokenParameter(),
        ScaleParameter("hidden"),
    };
    edges_ = {"rows=0", "d_model=600",
              std::string(kNoiseEdge) + " fill=generic amplitude=0.9"};
    fills_ = {"generic", "exact", "subnormal", "huge"};
    dtypes_ = {Dtype::kF32, Dtype::kBf16};
    outputs_ = {{.name = "router_input", .in_float = true}, {"d_hidden"}};
    differentiable_ = {"hidden"};
    derivations_ = WithStoredBf16({
        {kDerivation,
         "The factor is a double on both sides. One product, u |x|, and, for\n"
         "d_hidden, one addition, u |x|: float's, or double's rounded once.\n"
         "Fill exact has no noise: eps is 0."},
        ExactDerivation(),
    });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Filler in_float = filler.InFloat();
    const std::vector<Window> axes = {filler.Axis("rows"),
                                      filler.Axis("d_model")};
    return {
        {"hidden", filler.Data("hidden", axes, c.Real("scale"))},
        {"d_router_input", in_float.Cotangent("d_router_input", axes)},
        {"d_hidden_before", filler.Cotangent("d_hidden_before", axes)},
        {"amplitude",
         in_float.Scalar(c.fill.name == "exact" ? 0 : c.Real("amplitude"))}};
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    (void)c;
    const double amplitude = ScalarOf(inputs, "amplitude");
    return amplitude >= 0 && amplitude < 1
               ? ""
               : "amplitude must stay at least 0 and below 1";
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const reference::RouterNoise noise = NoiseIn(c, inputs);
    const int64_t first = FirstToken(c);
    const Matrix hidden = ToMatrix(At(inputs, "hidden"));
    const Matrix d_router_input = ToMatrix(At(inputs, "d_router_input"));
    const Matrix before = ToMatrix(At(inputs, "d_hidden_before"));
    const std::vector<int64_t> shape = {hidden.rows(), hidden.cols()};
    const Matrix d_hidden =
        before + reference::NoisyRouterInputVjp(noise, first, d_router_input);
    return StoredAsBf16(
        *this, c,
        ExpectInFloat<JitterFormula>(
            c,
            {{"router_input",
              ToTensor(reference::NoisyRouterInput(noise, first, hidden),
                       shape)},
             {"d_hidden", ToTensor(d_hidden, shape)}},
            kDerivation, /*exact=*/true, noise, first, hidden, d_router_input,
            before));
  }

  // d_hidden is accumulated, hence the gradient of <d_router_input,
  // router_input> + <d_hidden_before, hidden>.
  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)choice;
    const Tensor& hidden = At(inputs, "hidden");
    return {{"router_input",
             ToTensor(reference::NoisyRouterInput(
                          NoiseIn(c, inputs), FirstToken(c), ToMatrix(hidden)),
                      hidden.shape)},
            {"carried_on", hidden}};
  }
  TensorMap Cotangents(const TensorMap& inputs,
                       const TensorMap& outputs) const override {
    (void)outputs;
    return {{"router_input", At(inputs, "d_router_input")},
            {"carried_on", At(inputs, "d_hidden_before")}};
  }

 private:
  static constexpr char kDerivation[] = "jitter-f32/1";

  static reference::RouterNoise NoiseIn(const Case& c,
                                        const TensorMap& inputs) {
    return NoiseOf(c, NoiseKind::kInputJitter, ScalarOf(inputs, "amplitude"));
  }
};

}  // namespace

const Operation& JitterOperation() {
  static const Jitter operation;
  return operation;
}

}  // namespace softmoe::verify
