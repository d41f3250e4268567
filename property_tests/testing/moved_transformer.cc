// SPDX-License-Identifier: Apache-2.0
#include "property_tests/testing/moved_transformer.h"

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "reference/budget.h"
#include "reference/decoder_block.h"
#include "reference/embedding.h"
#include "reference/flat_parameters.h"
#include "reference/lm_head.h"
#include "reference/moe_layer.h"
#include "reference/noise.h"
#include "reference/router.h"
#include "reference/scalar.h"

namespace softmoe::property_tests {
namespace {

// How numbers are moved during this object's lifetime.
class Moves {
 public:
  Moves(double unit, uint64_t seed) : unit_(unit), draws_(seed) {
    SOFTMOE_CHECK(current_ == nullptr);
    current_ = this;
  }
  ~Moves() { current_ = nullptr; }
  Moves(const Moves&) = delete;
  Moves& operator=(const Moves&) = delete;

  static double Moved(double x) { return current_->Move(x); }

 private:
  double Move(double x) {
    // 53 bits, in [-1, 1).
    const double draw = static_cast<double>(draws_() >> 11) * 0x1p-52 - 1;
    return x * (1 + unit_ * draw);
  }

  static thread_local Moves* current_;
  double unit_;
  std::mt19937_64 draws_;
};
thread_local Moves* Moves::current_ = nullptr;

struct MovedNumber {
  double value = 0;

  MovedNumber() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a constant of a formula
  MovedNumber(double v) : value(v) {}
};
using Number = MovedNumber;
Number Moved(double x) { return Moves::Moved(x); }

Number operator-(Number a) { return -a.value; }
Number operator+(Number a, Number b) { return Moved(a.value + b.value); }
Number operator-(Number a, Number b) { return Moved(a.value - b.value); }
Number operator*(Number a, Number b) { return Moved(a.value * b.value); }
Number operator/(Number a, Number b) { return Moved(a.value / b.value); }
Number sqrt(Number x) { return Moved(std::sqrt(x.value)); }
Number exp(Number x) { return Moved(std::exp(x.value)); }
double ValueOf(Number x) { return x.value; }
Number Constant(Number x) { return x; }
bool PositiveForm(Number z) { return z.value >= 0; }

}  // namespace
}  // namespace softmoe::property_tests

namespace softmoe::reference {

template <>
class Sum<property_tests::MovedNumber> {
 public:
  using Number = property_tests::MovedNumber;

  void Add(Number term) { total_ += term.value; }
  void AddProduct(Number a, Number b) { total_ += a.value * b.value; }
  Number Get() const { return property_tests::Moved(total_); }

 private:
  double total_ = 0;
};

}  // namespace softmoe::reference

namespace softmoe::property_tests {
namespace {

namespace formula = reference::formula;
using reference::Matrix;
using reference::Vector;
using Numbers = reference::MatrixOf<Number>;
using NumberVector = reference::VectorOf<Number>;

// fp32 numbers, which are not moved.
NumberVector AsNumbers(const Vector& x) {
  return x.unaryExpr([](double v) { return Number(v); });
}
Numbers AsNumbers(const Matrix& x) {
  return x.unaryExpr([](double v) { return Number(v); });
}
Numbers Stored(const Matrix& x) {
  Numbers stored(x.rows(), x.cols());
  for (int64_t i = 0; i < x.size(); ++i) stored.data()[i] = Moved(x.data()[i]);
  return stored;
}
Matrix Values(const Numbers& x) {
  return x.unaryExpr([](const Number& v) { return v.value; });
}

struct BlockWeights {
  explicit BlockWeights(const reference::DecoderBlockWeights& fp32)
      : attention_norm(AsNumbers(fp32.attention_norm)),
        moe_norm(AsNumbers(fp32.moe_norm)),
        qkv(Stored(fp32.qkv_weight)),
        output(Stored(fp32.output_weight)) {
    for (size_t e = 0; e < fp32.moe.gate_up_weight.size(); ++e) {
      experts.gate_up_weight.push_back(Stored(fp32.moe.gate_up_weight[e]));
      experts.down_weight.push_back(Stored(fp32.moe.down_weight[e]));
    }
  }
  NumberVector attention_norm, moe_norm;
  Numbers qkv, output;
  reference::ExpertWeightsOf<Number> experts;
};

// One block; the constructor runs its forward pass.
class Block {
 public:
  Block(const reference::DecoderBlockSettings& settings,
        reference::DecoderBlockWeights fp32, const Numbers& hidden,
        const reference::RoutingReplay* replay)
      : settings_(settings),
        fp32_(std::move(fp32)),
        weights_(fp32_),
        hidden_(hidden),
        attention_(settings.num_sequences, settings.num_heads,
                   settings.rope_base, settings.norm_epsilon,
                   weights_.attention_norm, weights_.qkv, weights_.output,
                   hidden),
        moe_input_(formula::RmsNormForward<Number>(
            attention_.middle, weights_.moe_norm, settings.norm_epsilon)),
        // Only its router is used; the experts' output is not.
        moe_(reference::MoeLayerForward(settings.moe, fp32_.moe,
                                        Values(moe_input_), replay)
                 .saved) {}

  Numbers Out() const {
    return formula::Plus<Number>(
        attention_.middle,
        formula::MixExperts<Number>(moe_.routing.active,
                                    AsNumbers(moe_.routing.gates),
                                    weights_.experts, moe_input_));
  }
  const reference::MoeLayerSaved& moe() const { return moe_; }

  struct Gradients {
    Numbers d_hidden;
    reference::DecoderBlockWeights d_weights;
    double d_mean_active = 0;
  };
  Gradients Backward(const Numbers& d_out, double auxiliary_scale) const {
    Gradients gradients;
    const formula::MixExpertsGradients<Number> experts =
        formula::MixExpertsBackward<Number>(
            moe_.routing.active, AsNumbers(moe_.routing.gates),
            weights_.experts, moe_input_, d_out);
    reference::MoeLayerWeights& d_moe = gradients.d_weights.moe;
    for (size_t e = 0; e < experts.d_weights.down_weight.size(); ++e) {
      d_moe.gate_up_weight.push_back(
          Values(experts.d_weights.gate_up_weight[e]));
      d_moe.down_weight.push_back(Values(experts.d_weights.down_weight[e]));
    }
    const Numbers d_moe_input = formula::Plus<Number>(
        experts.d_hidden, AsNumbers(RouterBackward(
                              Values(experts.d_gates), auxiliary_scale,
                              &d_moe.router_weight, &gradients.d_mean_active)));
    const auto moe_norm =
        formula::RmsNormBackward<Number>(attention_.middle, weights_.moe_norm,
                                         settings_.norm_epsilon, d_moe_input);
    gradients.d_weights.moe_norm = Values(moe_norm.d_weight);

    const Numbers d_middle = formula::Plus<Number>(d_out, moe_norm.d_hidden);
    const Numbers d_qkv = formula::RotateQueriesAndKeys<Number>(
        formula::MultiHeadAttentionBackward<Number>(
            attention_.rotated_qkv, settings_.num_sequences,
            settings_.num_heads,
            formula::Multiply<Number>(d_middle, weights_.output.transpose())),
        settings_.num_sequences, settings_.num_heads, settings_.rope_base, -1);
    const auto attention_norm = formula::RmsNormBackward<Number>(
        hidden_, weights_.attention_norm, settings_.norm_epsilon,
        formula::Multiply<Number>(d_qkv, weights_.qkv.transpose()));
    gradients.d_weights.attention_norm = Values(attention_norm.d_weight);
    gradients.d_weights.qkv_weight = reference::Multiply(
        Values(attention_.input).transpose(), Values(d_qkv));
    gradients.d_weights.output_weight = reference::Multiply(
        Values(attention_.attention_out).transpose(), Values(d_middle));
    gradients.d_hidden =
        formula::Plus<Number>(d_middle, attention_norm.d_hidden);
    return gradients;
  }

 private:
  // The gradient of the router's input, from the gates and the auxiliary
  // losses; from these alone if nothing comes from above.
  Matrix RouterBackward(const Matrix& d_gates, double auxiliary_scale,
                        Matrix* d_router_weight, double* d_mean_active) const {
    const reference::MoeLayerSettings& moe = settings_.moe;
    const Matrix input = Values(moe_input_);
    const reference::MoeLayerGradients auxiliary = reference::MoeLayerBackward(
        moe, fp32_.moe, input, moe_, Matrix::Zero(input.rows(), input.cols()),
        auxiliary_scale);
    const reference::RouterGradients gates = reference::RouterBackward(
        moe.router, moe_.scores, moe_.routing, d_gates);
    *d_mean_active = gates.d_mean_active;
    *d_router_weight =
        auxiliary.d_weights.router_weight +
        reference::Multiply(moe_.router_input.transpose(), gates.d_scores);
    return auxiliary.d_hidden +
           reference::NoisyRouterInputVjp(
               moe.noise, moe.first_token,
               reference::Multiply(gates.d_scores,
                                   fp32_.moe.router_weight.transpose()));
  }

  reference::DecoderBlockSettings settings_;
  reference::DecoderBlockWeights fp32_;
  BlockWeights weights_;
  Numbers hidden_;
  formula::AttentionHalf<Number> attention_;
  Numbers moe_input_;
  reference::MoeLayerSaved moe_;
};

}  // namespace

reference::GroupResultAndGradients MovedTransformer(
    const Config& config, const Vector& parameters,
    const reference::BalanceGroup& group,
    const reference::RoutingState& routing, double loss_scale,
    double group_scale, std::span<const reference::RoutingReplay> replay,
    double unit, uint64_t seed) {
  const Moves moves(unit, seed);
  const ModelConfig& model = config.model;
  const ParameterLayout layout(config);
  const std::vector<reference::LayerAllocation> allocations =
      reference::Allocations(config, parameters, routing);
  reference::GroupResultAndGradients all;
  all.gradients = Vector::Zero(layout.total);

  Numbers hidden = Stored(reference::EmbeddingForward(
      group.inputs, reference::ReadMatrix(parameters, layout.embedding,
                                          model.vocab_size, model.d_model)));
  std::vector<Block> blocks;
  for (int64_t l = 0; l < model.num_layers; ++l) {
    blocks.emplace_back(
        reference::BlockSettings(config, group, routing, allocations[l], l),
        reference::ReadBlock(model, layout, l, parameters), hidden,
        replay.empty() ? nullptr : &replay[l]);
    hidden = blocks.back().Out();
    const reference::MoeLayerSaved& moe = blocks.back().moe();
    all.result.layers.push_back({.allocation = allocations[l],
                                 .scores = moe.scores,
                                 .routing = moe.routing,
                                 .balance = moe.balance,
                                 .z_loss = moe.z_loss});
  }

  const NumberVector final_norm = AsNumbers(Vector(
      reference::ReadMatrix(parameters, layout.final_norm, model.d_model, 1)));
  const Numbers head_input =
      formula::RmsNormForward<Number>(hidden, final_norm, model.norm_epsilon);
  const Numbers head_weight = Stored(reference::ReadMatrix(
      parameters, layout.head_weight, model.vocab_size, model.d_model));
  const Matrix logits =
      reference::LmHeadLogits(Values(head_input), Values(head_weight));
  all.result.token_losses = reference::TokenLosses(logits, group.targets);
  all.result.loss_sum = all.result.token_losses.sum();
  const Numbers d_logits = Stored(reference::TokenLossesBackward(
      logits, group.targets,
      Vector::Constant(all.result.token_losses.size(), loss_scale)));
  reference::WriteMatrix(
      reference::Multiply(Values(d_logits).transpose(), Values(head_input)),
      layout.head_weight, &all.gradients);
  const auto d_norm = formula::RmsNormBackward<Number>(
      hidden, final_norm, model.norm_epsilon,
      formula::Multiply<Number>(d_logits, head_weight));
  reference::WriteMatrix(Values(d_norm.d_weight), layout.final_norm,
                         &all.gradients);

  Numbers d_hidden = d_norm.d_hidden;
  all.d_mean_active = Vector::Zero(model.num_layers);
  for (int64_t l = model.num_layers - 1; l >= 0; --l) {
    Block::Gradients block = blocks[l].Backward(d_hidden, group_scale);
    reference::WriteBlock(block.d_weights, layout, l, &all.gradients);
    all.d_mean_active[l] = block.d_mean_active;
    d_hidden = std::move(block.d_hidden);
  }
  reference::WriteMatrix(reference::EmbeddingBackward(
                             group.inputs, Values(d_hidden), model.vocab_size),
                         layout.embedding, &all.gradients);
  if (config.router.kind == RouterKind::kSoftLearned) {
    const double budget = config.router.mean_active_experts *
                          static_cast<double>(model.num_layers);
    const auto allocated = reference::AllocateBudget(
        budget, parameters.segment(layout.budget_logits, model.num_layers));
    reference::WriteMatrix(
        reference::BudgetVjp(budget, allocated, all.d_mean_active),
        layout.budget_logits, &all.gradients);
  }
  return all;
}

}  // namespace softmoe::property_tests
