// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/noise_parameters.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

template <typename N>
struct LogitNoiseFormula {
  std::map<std::string, std::vector<N>> outputs;

  // `noise` is sigma z; |z| <= sqrt(-2 ln 2^-33) < 6.8.
  LogitNoiseFormula(const Matrix& before, const Matrix& noise, double sigma) {
    const double of_angles = 9 * sigma * 6.8;
    std::vector<N>& scores = outputs["scores"];
    for (int64_t i = 0; i < before.size(); ++i) {
      const double added = noise.data()[i];
      scores.push_back(
          N(before.data()[i]) +
          N(added, kDoubleUnit * (16 * std::abs(added) + of_angles)));
    }
  }
};

// Scores with normal noise (SPEC.md 2.4).
// inputs   scores_before [rows, num_experts], sigma []
// outputs  scores [rows, num_experts]
class LogitNoise : public Operation {
 public:
  LogitNoise() {
    name_ = "logit_noise";
    text_ = "scores += sigma z, z normal by Philox";
    parameters_ = {
        {.name = "rows", .text = "tokens", .high = 140},
        {.name = "num_experts", .text = "experts", .high = 140},
        {.name = "sigma",
         .kind = Kind::kReal,
         .text = "standard deviation of the noise, in score units",
         .low = 0,
         .high = 64,
         .typical = {0, 0.1, 0.5, 3},
         .simple = 0.5},
        NoiseSeedParameter(),
        StepParameter(),
        LayerParameter(),
        FirstTokenParameter(),
        SpreadParameter(),
    };
    edges_ = {"rows=0", "num_experts=256",
              std::string(kNoiseEdge) + " fill=generic sigma=3"};
    fills_ = {"generic", "exact", "subnormal", "huge"};
    outputs_ = {{"scores"}};
    derivations_ = {{kDerivation, RawLines(R"(
sigma z is computed in double: z = sqrt(-2 ln a) cos(2 pi b), a and b
exact; logarithm, sine and cosine are within 2 ulp, 2 units each, the
root, the products and those of the reference one: 16 units of double
for both. The angle may be rounded, and a multiple of a rounded 2 pi:
9 units, times sigma sqrt(-2 ln a) <= 6.8 sigma, however small the sine
or cosine. The sum is rounded to float once: u |x|. Fill exact has no
noise: sigma is 0.)")},
                    ExactDerivation()};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    return {
        {"scores_before",
         filler.Data("scores_before",
                     {filler.Axis("rows"), filler.Axis("num_experts")},
                     c.Real("spread"))},
        {"sigma", filler.Scalar(c.fill.name == "exact" ? 0 : c.Real("sigma"))}};
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    (void)c;
    return ScalarOf(inputs, "sigma") >= 0 ? "" : "sigma must stay at least 0";
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Tensor& before = At(inputs, "scores_before");
    const Matrix scores = ToMatrix(before);
    const reference::RouterNoise noise =
        NoiseOf(c, NoiseKind::kLogitGauss, ScalarOf(inputs, "sigma"));
    const Matrix added =
        noise.amplitude * reference::GaussDraws(noise, FirstToken(c),
                                                scores.rows(), scores.cols());
    return ExpectInFloat<LogitNoiseFormula>(
        c,
        {{"scores",
          ToTensor(reference::NoisyScores(noise, FirstToken(c), scores),
                   before.shape)}},
        kDerivation, /*exact=*/true, scores, added, noise.amplitude);
  }

 private:
  static constexpr char kDerivation[] = "logit-noise-f32/2";
};

}  // namespace

const Operation& LogitNoiseOperation() {
  static const LogitNoise operation;
  return operation;
}

}  // namespace softmoe::verify
