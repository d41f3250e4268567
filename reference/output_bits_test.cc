// SPDX-License-Identifier: Apache-2.0
//
// Hashes of the reference's bits on 1000 drawn inputs: of what is composed of
// other functions (a step's gradient, a layer, an update), and of every public
// function whose results do not show in these. A formula may be rewritten, or
// made more general, but what it computes in double stays the same, down to the
// order of its sums. If a change of the bits is intended, replace the hashes
// below by those that the failing test prints, in the same commit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/files/sha256.h"
#include "core/philox.h"
#include "reference/adamw.h"
#include "reference/budget.h"
#include "reference/calibration.h"
#include "reference/dual.h"
#include "reference/flat_parameters.h"
#include "reference/lapsum.h"
#include "reference/lapsum_root.h"
#include "reference/load_balance.h"
#include "reference/matrix.h"
#include "reference/metrics.h"
#include "reference/moe_layer.h"
#include "reference/rope.h"
#include "reference/router.h"
#include "reference/scalar.h"
#include "reference/schedules.h"
#include "reference/testing/random_matrix.h"
#include "reference/testing/routing_cases.h"
#include "reference/testing/tiny_model.h"
#include "reference/transformer.h"

namespace softmoe::reference {
namespace {

constexpr int kCases = 1000;

// The inputs of one case. A draw is addressed by the case and a name, so that
// the order in which a compiler evaluates arguments does not matter; only draws
// of the same name come one after the other.
class Draw {
 public:
  explicit Draw(int number) : seed_(static_cast<uint64_t>(number)) {}

  uint64_t seed() const { return seed_; }
  int64_t Whole(char name, int64_t low, int64_t high) {  // both ends included
    return low + Words(name)[0] % (high - low + 1);
  }
  double Real(char name, double low, double high) {
    return low + (high - low) * UniformFromWord(Words(name)[0]);
  }
  double Normal(char name, double scale = 1) {
    const auto words = Words(name);
    return scale * NormalsFromWords(words[0], words[1])[0];
  }
  bool Coin(char name) { return Whole(name, 0, 1) == 1; }
  Matrix Normals(char name, int64_t rows, int64_t columns, double scale = 1) {
    return testing::RandomMatrix(rows, columns, seed_, Next(name), scale);
  }
  Vector Row(char name, int64_t size, double scale = 1) {
    return testing::RandomVector(size, seed_, Next(name), scale);
  }
  // Scores of one token, or of several: plain, spread, tied, and with a gap.
  Matrix Scores(char name, int64_t rows, int64_t experts) {
    const double spreads[] = {1, 0.01, 30, 1};
    Matrix scores = Normals(name, rows, experts, spreads[Whole(name, 0, 3)]);
    const int64_t kind = Whole(name, 0, 5);
    if (kind == 0) scores = scores.array().round();  // ties
    if (kind == 1) scores.leftCols(experts / 2).array() += 40;
    return scores;
  }
  Vector ScoreRow(char name, int64_t experts) {
    return Scores(name, 1, experts).row(0);
  }
  BoolMatrix Set(char name, int64_t rows, int64_t columns) {
    BoolMatrix set(rows, columns);
    for (int64_t i = 0; i < set.size(); ++i) {
      set.data()[i] = Whole(name, 0, 2) == 0;
    }
    return set;
  }

 private:
  // The next of the draws called `name`.
  uint32_t Next(char name) {
    return 900000 + 128 * counts_[name]++ + static_cast<uint32_t>(name);
  }
  std::array<uint32_t, 4> Words(char name) {
    return PhiloxWords({seed_, RandomStream::kTestData, Next(name)}, 0);
  }

  uint64_t seed_;
  std::map<char, uint32_t> counts_;
};

// Hashes results: numbers by their bits, matrices by shape and elements,
// structures field by field.
class Bits {
 public:
  template <typename... Results>
  void Add(const Results&... results) {
    (Put(results), ...);
  }
  // 16 hex digits.
  std::string Hex() { return Sha256Hex(hash_.Finish()).substr(0, 16); }

 private:
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void Put(Number x) { hash_.Update(&x, sizeof x); }
  template <typename Derived>
  void Put(const Eigen::DenseBase<Derived>& x) {
    Put(static_cast<int64_t>(x.rows()));
    Put(static_cast<int64_t>(x.cols()));
    for (int64_t i = 0; i < x.rows(); ++i) {
      for (int64_t j = 0; j < x.cols(); ++j) Put(x(i, j));
    }
  }
  template <typename T>
  void Put(const std::vector<T>& values) {
    Put(values.size());
    for (const T& value : values) Put(value);
  }
  // Errors are bounds, not results.
  void Put(const Dual& x) { Add(x.value.value, x.slope.value); }
  template <typename Scalar>
  void Put(const LapSumRoot<Scalar>& x) {
    Add(x.anchor, x.offset, x.balanced, x.upper, x.lower, x.half_log_ratio);
  }
  void Put(const AdamWState& x) {
    Add(x.first_moment, x.second_moment, x.completed_updates);
  }
  void Put(const LapSumGradient& x) {
    Add(x.d_scores, x.d_mean_active, x.d_temperature);
  }
  void Put(const LoadBalance& x) { Add(x.loss, x.fractions, x.probabilities); }
  void Put(const LoadVariance& x) { Add(x.relative, x.cv, x.var_over_mean); }
  void Put(const RouterSaved& x) { Add(x.soft_weights, x.gates, x.active); }
  void Put(const MoeLayerWeights& x) {
    Add(x.router_weight, x.gate_up_weight, x.down_weight);
  }
  void Put(const MoeLayerSaved& x) {
    Add(x.router_input, x.scores, x.routing, x.balance, x.z_loss);
  }
  void Put(const MoeLayerResult& x) { Add(x.out, x.saved); }
  void Put(const MoeLayerGradients& x) {
    Add(x.d_hidden, x.d_weights, x.d_mean_active);
  }
  void Put(const LayerAllocation& x) {
    Add(x.mean_active, x.cutoff, x.max_active);
  }
  void Put(const LayerRouting& x) {
    Add(x.allocation, x.scores, x.routing, x.balance, x.z_loss);
  }
  void Put(const GroupResult& x) {
    Add(x.loss_sum, x.token_losses, x.layers, x.Objective(0.25, 0.5));
  }
  void Put(const GroupResultAndGradients& x) {
    Add(x.result, x.gradients, x.stream, x.d_stream, x.d_mean_active);
  }
  void Put(const ParameterTensor& x) { Add(x.offset, x.size); }

  Sha256 hash_;
};

// Draws k for one token's LapSum: inside, at a whole number, and now and then
// beyond the ends.
double MeanActive(Draw& draw, int64_t experts) {
  const double n = static_cast<double>(experts);
  const int64_t kind = draw.Whole('A', 0, 9);
  if (kind == 0) return draw.Coin('B') ? -1 : n + 1;
  if (kind <= 2) return static_cast<double>(draw.Whole('C', 1, experts));
  return draw.Real('D', 0.001, n - 0.001);
}
double DrawTemperature(Draw& draw) { return std::exp(draw.Real('E', -3, 3)); }

struct MoeCase {
  MoeLayerSettings settings;
  MoeLayerWeights weights;
  Matrix hidden, d_out;

  explicit MoeCase(Draw& draw) {
    const int64_t experts = draw.Whole('F', 1, 5), f = draw.Whole('G', 1, 4);
    const int64_t tokens = draw.Whole('H', 1, 6), d = draw.Whole('I', 1, 6);
    RouterSettings& router = settings.router;
    router.kind = static_cast<RouterKind>(draw.Whole('J', 0, 2));
    const bool sparse = router.kind == RouterKind::kSparse;
    router.max_active = draw.Whole('K', 1, experts);
    router.mean_active = sparse ? static_cast<double>(router.max_active)
                                : draw.Real('L', 0.25, experts);
    router.temperature = DrawTemperature(draw);
    router.cutoff = draw.Real('M', 0, 0.6);
    router.fallback = draw.Coin('N') ? Fallback::kTop1 : Fallback::kNone;
    settings.noise = {.kind = static_cast<NoiseKind>(draw.Whole('O', 0, 2)),
                      .amplitude = draw.Real('P', 0, 0.5),
                      .seed = draw.seed(),
                      .step = 3,
                      .layer = 1};
    settings.first_token = draw.Whole('Q', 0, 50);
    settings.load_balance =
        draw.Coin('R') ? LoadBalanceKind::kSoft : LoadBalanceKind::kMegatron;
    settings.aux_loss_coeff = draw.Real('S', 0, 1);
    settings.z_loss_coeff = draw.Real('T', 0, 1);
    weights.router_weight = draw.Normals('U', d, experts);
    for (int64_t e = 0; e < experts; ++e) {
      weights.gate_up_weight.push_back(draw.Normals('V', d, 2 * f));
      weights.down_weight.push_back(draw.Normals('W', f, d));
    }
    hidden = draw.Normals('X', tokens, d);
    d_out = draw.Normals('Y', tokens, d);
  }
  RoutingReplay Replay(Draw& draw) const {
    RoutingReplay replay;
    replay.active = draw.Set('Z', hidden.rows(), weights.router_weight.cols());
    replay.active(0, 0) = true;  // an empty set has no fractions
    if (draw.Coin('0')) {
      replay.balance_fractions =
          draw.Row('1', weights.router_weight.cols()).cwiseAbs();
    }
    return replay;
  }
};

testing::RoutingCase DrawRoutingCase(Draw& draw) {
  const std::vector<testing::RoutingCase> cases = testing::AllRoutingCases();
  return cases[draw.Whole('2', 0, static_cast<int64_t>(cases.size()) - 1)];
}

// A tiny model with one of its cases of routing.
struct ModelCase {
  Config config;
  RoutingState routing;
  Vector parameters;
  testing::TinyTokens tokens;

  explicit ModelCase(Draw& draw) : ModelCase(draw, DrawRoutingCase(draw)) {}

 private:
  ModelCase(Draw& draw, const testing::RoutingCase& routing_case)
      : config(testing::CaseConfig(routing_case)),
        routing(testing::CaseRouting(routing_case)),
        parameters(testing::TinyParameters(config, draw.seed())),
        tokens(config, draw.Whole('3', 1, 2), draw.seed()) {}
};

TrainingConfig DrawTraining(Draw& draw) {
  TrainingConfig training;
  training.steps = draw.Whole('p', 1, 500);
  training.warmup_fraction = draw.Coin('q') ? 0 : draw.Real('r', 0, 0.3);
  training.learning_rate = draw.Real('s', 0, 0.1);
  training.min_learning_rate = draw.Real('t', 0, 0.01);
  training.beta1 = draw.Real('u', 0, 0.99);
  training.beta2 = draw.Real('v', 0, 0.999);
  training.adam_epsilon = draw.Coin('w') ? 1e-8 : 1e-3;
  training.weight_decay = draw.Real('x', 0, 0.3);
  training.clip_norm = draw.Coin('y') ? 0 : draw.Real('z', 0.1, 20);
  return training;
}

using Function = std::function<void(Draw&, Bits&)>;

// What is hashed, by the names of the functions.
const std::map<std::string, Function>& Functions() {
  static const std::map<std::string, Function> functions = {
      // adamw.h
      {"InitialAdamWState",
       [](Draw& draw, Bits& bits) {
         Config config = testing::TinyConfig(RouterKind::kSoftLearned);
         config.model.num_experts = draw.Whole('a', 1, 6);
         bits.Add(InitialAdamWState(ParameterLayout(config)));
       }},
      {"AdamWUpdate",
       [](Draw& draw, Bits& bits) {
         const TrainingConfig training = DrawTraining(draw);
         Config config = testing::TinyConfig(RouterKind::kSoftLearned);
         config.model.num_layers = config.model.num_experts = 1;
         config.model.d_model = 2;
         config.model.d_ffn = 1;
         const ParameterLayout layout(config);
         Vector parameters = draw.Row('a', layout.total);
         AdamWState state = {draw.Row('b', layout.total),
                             draw.Row('c', layout.total).cwiseAbs2(),
                             draw.Whole('d', 0, 100)};
         for (int step = 0; step < 2; ++step) {
           bits.Add(
               AdamWUpdate(training, layout, draw.Real('e', 0, 0.1),
                           draw.Row('f', layout.total), &parameters, &state),
               parameters, state);
         }
       }},
      // budget.h
      {"BudgetVjp",
       [](Draw& draw, Bits& bits) {
         const int64_t layers = draw.Whole('a', 1, 12);
         const double budget =
             static_cast<double>(layers) + draw.Real('b', 0, 30);
         bits.Add(BudgetVjp(budget,
                            AllocateBudget(budget, draw.Row('c', layers, 3)),
                            draw.Row('d', layers)));
       }},
      // calibration.h
      {"CalibrationRatios",
       [](Draw& draw, Bits& bits) {
         const MoeCase moe(draw);
         bits.Add(CalibrationRatios(
             moe.settings.router,
             draw.Scores('a', 3, moe.weights.router_weight.cols())));
       }},
      {"CalibrateTau",
       [](Draw& draw, Bits& bits) {
         const Vector drawn = draw.Row('a', draw.Whole('b', 2, 50));
         bits.Add(CalibrateTau({drawn.begin(), drawn.end()},
                               draw.Real('c', 0.5, 4), draw.Whole('d', 1, 20)));
       }},
      // dual.h: values and slopes of its operations
      {"Dual",
       [](Draw& draw, Bits& bits) {
         const Dual a(draw.Normal('a'), draw.Normal('b'));
         const Dual b(std::exp(draw.Normal('c')), draw.Normal('d'));
         CompensatedSum<Dual> sum;
         sum.Add(a);
         sum.Add(b);
         sum.Add(a * b);
         bits.Add(-a, a + b, a - b, a * b, a / b, abs(a), exp(a), log(b),
                  sqrt(b), hypot(a, b), sum.Get(), a < b, a <= b, a == a,
                  ValueOf(a));
       }},
      // flat_parameters.h
      {"TensorNamed and TensorElements",
       [](Draw& draw, Bits& bits) {
         const ModelCase model(draw);
         const ParameterLayout layout(model.config);
         const std::string name = layout.tensors[draw.Whole('a', 0, 8)].name;
         bits.Add(TensorNamed(layout, name),
                  TensorElements(TensorNamed(layout, name), model.parameters));
       }},
      // lapsum.h, lapsum_root.h
      {"LapSumVjp",
       [](Draw& draw, Bits& bits) {
         const int64_t n = draw.Whole('a', 1, 12);
         bits.Add(
             LapSumVjp(SolveLapSum(draw.ScoreRow('b', n), MeanActive(draw, n),
                                   DrawTemperature(draw)),
                       draw.Row('c', n)));
       }},
      {"LapSumJvp",
       [](Draw& draw, Bits& bits) {
         const int64_t n = draw.Whole('a', 1, 12);
         bits.Add(
             LapSumJvp(SolveLapSum(draw.ScoreRow('b', n), MeanActive(draw, n),
                                   DrawTemperature(draw)),
                       draw.Row('c', n), draw.Normal('d'), draw.Normal('e')));
       }},
      {"LapSumRootGradient",
       [](Draw& draw, Bits& bits) {
         const int64_t n = draw.Whole('a', 1, 12);
         bits.Add(LapSumRootGradient(SolveLapSum(draw.ScoreRow('b', n),
                                                 MeanActive(draw, n),
                                                 DrawTemperature(draw))));
       }},
      {"SolveLapSumRoot",
       [](Draw& draw, Bits& bits) {
         const int64_t n = draw.Whole('a', 1, 12);
         const Vector drawn = draw.ScoreRow('b', n);
         std::vector<double> sorted(drawn.begin(), drawn.end());
         std::sort(sorted.begin(), sorted.end(), std::greater<double>());
         std::vector<Dual> duals;
         for (const double score : sorted) {
           duals.emplace_back(score, draw.Normal('c'));
         }
         const double k = MeanActive(draw, n);
         const double temperature = DrawTemperature(draw);
         bits.Add(
             SolveLapSumRoot(sorted, k, temperature),
             SolveLapSumRoot(duals, Dual(k, 0.5), Dual(temperature, 0.25)));
       }},
      // metrics.h
      {"MeanActiveExperts",
       [](Draw& draw, Bits& bits) {
         const int64_t tokens = draw.Whole('a', 1, 9);
         bits.Add(MeanActiveExperts({draw.Set('b', tokens, 5),
                                     draw.Set('c', tokens, 5),
                                     draw.Set('d', tokens, 5)}));
       }},
      {"TrainActiveExperts",
       [](Draw& draw, Bits& bits) {
         const Vector drawn = draw.Row('a', draw.Whole('b', 1, 30));
         bits.Add(TrainActiveExperts({drawn.begin(), drawn.end()}));
       }},
      {"ZeroActiveFraction",
       [](Draw& draw, Bits& bits) {
         const int64_t tokens = draw.Whole('a', 1, 9);
         bits.Add(
             ZeroActiveFraction({draw.Normals('b', tokens, 3).cwiseAbs(),
                                 draw.Normals('c', tokens, 3).cwiseAbs()},
                                {draw.Real('d', 0, 2), draw.Real('e', 0, 2)}));
       }},
      {"LoadVarianceOf and MeanLoadVariance",
       [](Draw& draw, Bits& bits) {
         std::vector<LoadVariance> layers;
         for (int layer = 0; layer < 3; ++layer) {
           layers.push_back(LoadVarianceOf(
               TokensPerExpert(draw.Set('a', draw.Whole('b', 1, 9), 4))));
         }
         bits.Add(layers, MeanLoadVariance(layers));
       }},
      {"ActiveParameters",
       [](Draw& draw, Bits& bits) {
         ModelConfig model;
         model.num_layers = draw.Whole('a', 1, 20);
         model.d_model = draw.Whole('b', 1, 1000);
         bits.Add(ActiveParameters(model, draw.Real('c', 0, 8)));
       }},
      // moe_layer.h
      {"MoeLayerForward and MoeLayerBackward",
       [](Draw& draw, Bits& bits) {
         const MoeCase moe(draw);
         const RoutingReplay replay = moe.Replay(draw);
         const MoeLayerResult result =
             MoeLayerForward(moe.settings, moe.weights, moe.hidden,
                             draw.Coin('a') ? &replay : nullptr);
         bits.Add(result, MoeLayerBackward(moe.settings, moe.weights,
                                           moe.hidden, result.saved, moe.d_out,
                                           draw.Real('b', 0, 1)));
       }},
      // rope.h
      {"RopeAngle",
       [](Draw& draw, Bits& bits) {
         bits.Add(RopeAngle(draw.Whole('a', 0, 4000), draw.Whole('b', 0, 31),
                            64,
                            draw.Coin('c') ? 10000 : draw.Real('d', 2, 1e6)));
       }},
      // schedules.h
      {"LearningRate",
       [](Draw& draw, Bits& bits) {
         const TrainingConfig training = DrawTraining(draw);
         bits.Add(LearningRate(training, draw.Whole('a', 0, training.steps)));
       }},
      {"Temperature",
       [](Draw& draw, Bits& bits) {
         Config config = ModelCase(draw).config;
         config.training = DrawTraining(draw);
         bits.Add(
             Temperature(config, draw.Whole('a', 0, config.training.steps)));
       }},
      // transformer.h
      {"TransformerLossAndGradients",
       [](Draw& draw, Bits& bits) {
         const ModelCase model(draw);
         bits.Add(TransformerLossAndGradients(model.config, model.parameters,
                                              model.tokens.Group(),
                                              model.routing, 0.25, 0.5));
       }},
  };
  return functions;
}

// Exponentials, logarithms, powers and angles are the C library's, which may
// round the last bit differently in another version or on another processor.
std::string LibraryHash() {
  Bits bits;
  for (int i = 0; i < kCases; ++i) {
    Draw draw(i);
    const double x = draw.Normal('a', 20), y = draw.Real('b', 1e-6, 1e6);
    bits.Add(std::exp(x), std::expm1(x), std::log(y), std::pow(y, x / 20),
             std::sin(x), std::cos(x), std::hypot(x, y));
  }
  return bits.Hex();
}
constexpr char kLibraryHash[] = "7041fd0d24bf0969";

const std::map<std::string, std::string>& Golden() {
  static const std::map<std::string, std::string> golden = {
      {"ActiveParameters", "5c14c5dd4ee92fea"},
      {"AdamWUpdate", "9f270caddd0ea6af"},
      {"BudgetVjp", "349e79909e878ec6"},
      {"CalibrateTau", "0697aa32dbc9c473"},
      {"CalibrationRatios", "6a9946da90784c6c"},
      {"Dual", "02305693e48ac5e0"},
      {"InitialAdamWState", "c748e478730bdfe3"},
      {"LapSumJvp", "8b00af05e9b11ba0"},
      {"LapSumRootGradient", "d787d8295b810aff"},
      {"LapSumVjp", "ffdb5426ef8f9b9a"},
      {"LearningRate", "9a4ca8ab7e7f0251"},
      {"LoadVarianceOf and MeanLoadVariance", "668677438cc3260f"},
      {"MeanActiveExperts", "68aa4fc84e85afd8"},
      {"MoeLayerForward and MoeLayerBackward", "c75e0c741cbb75c9"},
      {"RopeAngle", "bd2b8f270836868f"},
      {"SolveLapSumRoot", "57d8326555a1f0dd"},
      {"Temperature", "4aa06298bb60b7e3"},
      {"TensorNamed and TensorElements", "33fa85550d9e94b5"},
      {"TrainActiveExperts", "77f19b41fb333379"},
      {"TransformerLossAndGradients", "1fcfc29b16a0f426"},
      {"ZeroActiveFraction", "0e26a7d4277a1f59"},
  };
  return golden;
}

class OutputBits : public ::testing::TestWithParam<std::string> {};

TEST_P(OutputBits, AreThoseOfBefore) {
  static const std::string library = LibraryHash();
  if (library != kLibraryHash) {
    GTEST_SKIP() << "the exponentials of this C library or processor have "
                    "other bits ("
                 << library << ")";
  }
  Bits bits;
  for (int i = 0; i < kCases; ++i) {
    Draw draw(i);
    Functions().at(GetParam())(draw, bits);
  }
  const auto golden = Golden().find(GetParam());
  ASSERT_NE(golden, Golden().end())
      << GetParam() << " is not pinned: " << bits.Hex();
  EXPECT_EQ(bits.Hex(), golden->second)
      << GetParam()
      << " has other bits than before: did a sum change its "
         "order, or an operation its form?";
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : Functions()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Functions, OutputBits, ::testing::ValuesIn(Names()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::erase_if(
                               name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

TEST(OutputBits, AreAllPinned) { EXPECT_EQ(Golden().size(), Names().size()); }

// A change in one last bit shows.
TEST(OutputBits, SeeTheLastBit) {
  Bits one, other;
  one.Add(Vector::Ones(3));
  other.Add(Vector{{1, 1, 1 + 0x1p-52}});
  EXPECT_NE(one.Hex(), other.Hex());
}

}  // namespace
}  // namespace softmoe::reference
