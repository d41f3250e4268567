// SPDX-License-Identifier: Apache-2.0
//
// The model on the simulated device against the reference, by the tolerance of
// model_difference.h, and with the same bits in each schedule.
#include "optimized/simulated_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/config_enums.h"
#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/profile.h"
#include "core/testing/bits_test_util.h"
#include "core/testing/config_test_util.h"
#include "core/testing/message_test_util.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "optimized/allocation.h"
#include "optimized/memory_plan.h"
#include "optimized/model.h"
#include "optimized/testing/ranked_training.h"
#include "property_tests/testing/model_difference.h"
#include "property_tests/testing/small_training.h"

namespace softmoe::property_tests {
namespace {

Config SmallConfigOf(SmallKind kind) {
  return SmallConfig(kind.router, kind.precision);
}
Config TrainingConfigOf(SmallKind kind) {
  return SmallTrainingConfig(kind.router, kind.precision);
}

std::unique_ptr<kernels::Queue> MakeQueue() {
  return kernels::isa_shim::MakeQueue(kernels::isa_shim::DeviceStream(),
                                      /*workspace=*/1 << 16);
}

std::unique_ptr<optimized::Model> MakeSimulated(
    const Config& config, int64_t group_sequences, kernels::Queue& queue,
    Recompute recompute = Recompute::kNone) {
  return config.training.precision == Precision::kFp32
             ? optimized::backend_simulated::MakeBackendModel(
                   config, group_sequences, queue, recompute)
             : optimized::backend_simulated_bf16::MakeBackendModel(
                   config, group_sequences, queue, recompute);
}

class SimulatedModel : public ::testing::TestWithParam<SmallKind> {};

TEST_P(SimulatedModel, AgreesWithTheReference) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const auto queue = MakeQueue();
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const ModelCase model_case =
        MakeModelCase(SmallConfigOf(GetParam()), /*num_sequences=*/2, seed);
    const ModelDifference difference = CompareModels(
        model_case, [&](const Config& config, int64_t group_sequences) {
          return MakeSimulated(config, group_sequences, *queue);
        });
    EXPECT_TRUE(difference.ok()) << difference.Text();
    EXPECT_TRUE(difference.trusted()) << difference.Text();
  }
}

// If k_l >= E, every soft weight is 1 (SPEC.md 1.2), as on the CPU, and scores
// get a gradient from the z loss alone.
TEST(SimulatedEdge, AllocationsMayReachAndExceedTheExperts) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const auto queue = MakeQueue();
  for (const RouterKind kind :
       {RouterKind::kSoftFixed, RouterKind::kSoftLearned}) {
    Config config = SmallConfigOf({kind});
    config.model.num_experts = 3;
    config.router.mean_active_experts = 3;
    config.router.aux_loss_coeff = 0.25;
    config.router.z_loss_coeff = 0.125;
    ModelCase c = MakeModelCase(config, /*num_sequences=*/2, 8);
    c.tau = 0.5;
    const ModelDifference difference =
        CompareModels(c, [&](const Config& of, int64_t group_sequences) {
          return MakeSimulated(of, group_sequences, *queue);
        });
    EXPECT_TRUE(difference.ok()) << difference.Text();
    EXPECT_TRUE(difference.trusted()) << difference.Text();
  }
}

TEST_P(SimulatedModel, HasTheSameBitsInEachSchedule) {
  const ModelCase c =
      MakeModelCase(SmallConfigOf(GetParam()), /*num_sequences=*/2, 4);
  std::vector<std::vector<float>> gradients;
  std::vector<optimized::StepStats> stats;
  for (const simt::Schedule schedule :
       {simt::Schedule::kAscending, simt::Schedule::kDescending,
        simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 5);
    const auto queue = MakeQueue();
    const auto model = MakeSimulated(c.config, c.num_sequences, *queue);
    model->WriteParameters(c.parameters, 0);
    gradients.emplace_back(c.parameters.size());
    stats.push_back(model->ForwardBackward(
        {c.num_sequences, c.inputs, c.targets, c.first_token},
        {c.temperature, c.tau, c.noise, c.step}, 0.1, 0.5, gradients.back()));
    EXPECT_EQ(gradients.back(), gradients.front());
    EXPECT_TRUE(optimized::SameStats(stats.back(), stats.front()));
  }
}

// The host's allocation, from its own copy of the budget logits, must have the
// device's bits.
void ExpectTheDevicesAllocation(const optimized::Model& model) {
  const int64_t first = model.layout().budget_logits;
  std::vector<float> logits;
  if (first >= 0) {
    const std::vector<float> parameters = model.ReadParameters();
    logits.assign(parameters.begin() + first,
                  parameters.begin() + first + model.config().model.num_layers);
  }
  const auto expected =
      optimized::ComputeAllocations(model.config(), logits, 1.25);
  const auto allocations = model.Allocations(SmallRouting(0));
  ASSERT_EQ(allocations.size(), expected.size());
  for (size_t l = 0; l < expected.size(); ++l) {
    EXPECT_EQ(allocations[l].mean_active, expected[l].mean_active);
    EXPECT_EQ(allocations[l].max_active, expected[l].max_active);
  }
}

// Trains with noise.
TrainingState Train(const Config& config, bool interrupted, int64_t updates = 6,
                    Recompute recompute = Recompute::kNone) {
  const auto queue = MakeQueue();
  const auto make = [&] { return MakeSimulated(config, 1, *queue, recompute); };
  return TrainSmall(config, make, updates, interrupted,
                    ExpectTheDevicesAllocation);
}

TEST_P(SimulatedModel, RepeatsUpdatesBitForBitAlsoInterrupted) {
  const Config config = TrainingConfigOf(GetParam());
  simt::SetSchedule(simt::Schedule::kAscending);
  const TrainingState once = Train(config, /*interrupted=*/false);
  EXPECT_NE(once.parameters, SmallParameters(config));
  simt::SetSchedule(simt::Schedule::kRandom, 7);
  EXPECT_EQ(once, Train(config, /*interrupted=*/false));
  simt::SetSchedule(simt::Schedule::kDescending);
  EXPECT_EQ(once, Train(config, /*interrupted=*/true));
}

TEST_P(SimulatedModel, RecomputationChangesNoBit) {
  simt::SetSchedule(simt::Schedule::kAscending);
  for (const NoiseKind noise :
       {NoiseKind::kInputJitter, NoiseKind::kLogitGauss}) {
    Config config = TrainingConfigOf(GetParam());
    config.model.num_layers = 3;
    config.router.noise = noise;
    const TrainingState kept = Train(config, /*interrupted=*/false, 2);
    for (const Recompute recompute : {Recompute::kExperts, Recompute::kLayer}) {
      EXPECT_EQ(kept, Train(config, /*interrupted=*/false, 2, recompute));
    }
  }
}

TEST(CpuModel, RecomputationChangesNoBit) {
  for (const RouterKind router : kRouterKinds) {
    Config config = TrainingConfigOf({router});
    config.model.num_layers = 3;
    ModelCase c = MakeModelCase(config, /*num_sequences=*/2, 4);
    c.noise = true;
    ThreadPool pool(2);
    std::vector<float> kept;
    for (const Recompute recompute :
         {Recompute::kNone, Recompute::kExperts, Recompute::kLayer}) {
      const auto model = optimized::MakeModel(config, c.num_sequences, pool,
                                              optimized::Cpu(), recompute);
      model->WriteParameters(c.parameters, 0);
      std::vector<float> gradient(c.parameters.size());
      (void)model->ForwardBackward(
          {c.num_sequences, c.inputs, c.targets, c.first_token},
          {c.temperature, c.tau, c.noise, c.step}, 0.1, 0.5, gradient);
      if (recompute == Recompute::kNone) kept = gradient;
      EXPECT_EQ(gradient, kept);
    }
  }
}

std::vector<float> WithBudget(const Config& config, float first, float second) {
  std::vector<float> parameters = SmallParameters(config);
  const int64_t logits = ParameterLayout(config).budget_logits;
  parameters[logits] = first;
  parameters[logits + 1] = second;
  return parameters;
}

// One layer gets nearly the whole budget: its cap rises from 3 to 4.
std::vector<float> WithUnevenBudget(const Config& config) {
  return WithBudget(config, 3, -3);
}

std::vector<optimized::LayerAllocation> UnevenAllocations(
    const Config& config) {
  const std::vector<float> logits = {3, -3};
  return optimized::ComputeAllocations(config, logits, 1.25);
}

// The device holds what was planned, array for array, even when more is needed
// than the first caps allow, and no bit depends on when memory was taken.
void ExpectTakesWhatWasPlanned(const Config& config) {
  for (const Recompute recompute :
       {Recompute::kNone, Recompute::kExperts, Recompute::kLayer}) {
    const auto queue = MakeQueue();
    const size_t before = simt::LiveBytes();
    const auto model = MakeSimulated(config, 1, *queue, recompute);
    const auto updater = model->MakeUpdater();
    const auto held = [&] {
      return static_cast<int64_t>(simt::LiveBytes() - before);
    };
    const auto plan = [&](const auto& allocations) {
      return optimized::PlanStep(config, allocations, 1, recompute,
                                 /*product_workspaces=*/0)
          .bytes();
    };
    const auto initial = optimized::InitialAllocations(config, 1.25);
    EXPECT_EQ(held(), plan(initial));
    model->WriteParameters(WithBudget(config, 0, 0), 0);
    updater->ComputeGradient(SmallRouting(0), SmallGroups(config, 0));
    EXPECT_EQ(held(), plan(initial));  // a step needs nothing more

    model->WriteParameters(WithUnevenBudget(config), 0);
    updater->ComputeGradient(SmallRouting(0), SmallGroups(config, 0));
    // Memory is never given back, so the larger of the two stays.
    auto sizes = optimized::SizesOf(initial, config.model.sequence_length);
    const auto uneven = optimized::SizesOf(UnevenAllocations(config),
                                           config.model.sequence_length);
    EXPECT_GT(uneven.rows, sizes.rows);
    const auto passes = [&](const optimized::PassSizes& pass) {
      return optimized::PlanPasses(config, pass, recompute,
                                   optimized::MemoryKind::kDevice)
          .bytes();
    };
    const int64_t before_growth = passes(sizes);
    sizes.rows = uneven.rows;
    sizes.pairs = std::max(sizes.pairs, uneven.pairs);
    EXPECT_GT(passes(sizes), before_growth);
    EXPECT_EQ(held() - plan(initial), passes(sizes) - before_growth);
    const std::vector<float> grown = updater->ReadGradient();

    const auto other = MakeSimulated(config, 1, *queue, recompute);
    const auto other_updater = other->MakeUpdater();
    other->WriteParameters(WithUnevenBudget(config), 0);
    other_updater->ComputeGradient(SmallRouting(0), SmallGroups(config, 0));
    EXPECT_EQ(other_updater->ReadGradient(), grown);
  }
}

TEST(SimulatedMemory, IsWhatWasPlanned) {
  simt::SetSchedule(simt::Schedule::kAscending);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    ExpectTakesWhatWasPlanned(
        TrainingConfigOf({RouterKind::kSoftLearned, precision}));
  }
}

// Restores the device's full memory.
struct LimitsGuard {
  ~LimitsGuard() { simt::SetDeviceLimits({}); }
};

// The error message with memory for a model, its updates and `more` bytes.
std::string MemoryError(const Config& config, int64_t more) {
  const auto queue = MakeQueue();
  const auto initial = optimized::InitialAllocations(config, 1.25);
  const int64_t planned =
      optimized::PlanStep(config, initial, 1, Recompute::kNone, 0).bytes();
  const LimitsGuard guard;
  simt::SetDeviceLimits(
      {.memory = simt::LiveBytes() + static_cast<size_t>(planned + more)});
  return MessageOf<EnvironmentError>([&] {
    const auto model = MakeSimulated(config, 1, *queue);
    const auto updater = model->MakeUpdater();
    const std::vector<float> parameters = WithUnevenBudget(config);
    model->WriteParameters(parameters, 0);
    try {
      updater->ComputeGradient(SmallRouting(0), SmallGroups(config, 0));
    } catch (const EnvironmentError&) {
      EXPECT_EQ(model->ReadParameters(), parameters);
      throw;
    }
  });
}

TEST(SimulatedMemory, TooLittleIsAnErrorThatSaysWhatNeedsIt) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const Config config = TrainingConfigOf({RouterKind::kSoftLearned});
  EXPECT_EQ(MemoryError(config, 1 << 20), kNoError);
  // Not enough for the step's caps; for the first caps; for the updates.
  const int64_t updates = optimized::PlanUpdates(config).bytes();
  for (const int64_t more : {int64_t{0}, -updates / 2, -updates - 1024}) {
    const std::string text = MemoryError(config, more);
    EXPECT_TRUE(Says(text, "of memory left", "runtime.recompute",
                     "balance_group_sequences", "total"))
        << more;
    EXPECT_EQ(text.find("moments") != std::string::npos, more == -updates / 2)
        << text;
  }
}

// The number of calls that make the host wait on a device, or may do so.
int Waits() {
  int waits = simt::PageableCopies();
  for (const char* call : {"cudaStreamSynchronize", "cudaEventSynchronize",
                           "cudaDeviceSynchronize", "cudaMalloc", "cudaFree",
                           "cudaMallocHost", "cudaFreeHost"}) {
    waits += simt::CallsOf(call);
  }
  return waits;
}

// The host waits once for the offsets of each layer's experts in each group's
// forward pass, and once for all that it must know before parameters change.
TEST_P(SimulatedModel, WaitsOnceInAnUpdateButForOffsets) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const Config config = TrainingConfigOf(GetParam());
  const int offsets = static_cast<int>(config.model.num_layers);
  const auto queue = MakeQueue();
  const auto model = MakeSimulated(config, 1, *queue);
  const auto updater = model->MakeUpdater();
  model->WriteParameters(SmallParameters(config), 0);
  const auto update = [&](int64_t number) {
    updater->ComputeGradient(SmallRouting(number), SmallGroups(config, number));
    updater->Apply(1e-2, number);
  };
  update(0);  // allocates memory
  update(1);  // the second buffer for data that is sent once per update
  for (int64_t number = 2; number < 5; ++number) {
    const int before = Waits();
    update(number);
    EXPECT_EQ(Waits() - before, 1 + offsets * kSmallGroups);
  }
  SmallGroups batch(config, 9);
  for (int pass = 0; pass < 2; ++pass) {
    const int before = Waits();
    (void)model->Forward(batch(0), SmallRouting(9));
    EXPECT_EQ(Waits() - before, 1 + offsets);
  }
  // The count includes the host's wait for a read.
  const int before = Waits();
  const std::vector<float> parameters = model->ReadParameters();
  EXPECT_EQ(Waits() - before, 2);  // the copy itself, and waiting for it
}

// The error message of an update that ends early; its parameters stay
// unchanged.
std::string UpdateError(optimized::Model& model,
                        const std::vector<float>& parameters,
                        const std::vector<ModelCase>& groups) {
  const auto updater = model.MakeUpdater();
  model.WriteParameters(parameters, 0);
  const std::string text = MessageOf<NumericsError>([&] {
    updater->ComputeGradient(SmallRouting(0), [&](int64_t group) {
      return optimized::Batch{.num_sequences = 1,
                              .inputs = groups[group].inputs,
                              .targets = groups[group].targets,
                              .first_token = 1000 * group};
    });
  });
  EXPECT_TRUE(softmoe::SameBits(model.ReadParameters(), parameters));
  return text;
}

// Names the first bad score over all groups, layers and tokens, with the CPU's
// message. (Which NaN a product gives is undefined.)
TEST_P(SimulatedModel, NamesTheFirstBadScoreOfAnyGroupAsTheCpuDoes) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const Config config = TrainingConfigOf(GetParam());
  Config on_cpu = config;
  on_cpu.training.precision = Precision::kFp32;
  const auto queue = MakeQueue();
  ThreadPool pool(1);
  std::vector<ModelCase> groups = {MakeModelCase(config, 1, 1),
                                   MakeModelCase(config, 1, 2)};
  for (ModelCase& group : groups) {
    for (int32_t& id : group.inputs) id %= 22;
  }
  groups[1].inputs[0] = 22;  // a token that group 0 does not have
  const ParameterLayout layout(config);
  const auto errors = [&](int64_t first, int64_t size, float value) {
    std::vector<float> parameters = SmallParameters(config);
    std::fill_n(parameters.begin() + first, size, value);
    const auto simulated = MakeSimulated(config, 1, *queue);
    const auto cpu = optimized::MakeModel(on_cpu, 1, pool);
    const std::string text = UpdateError(*simulated, parameters, groups);
    const std::string expected = UpdateError(*cpu, parameters, groups);
    const std::string value_of = "router score is ";
    EXPECT_EQ(text.substr(0, text.find(value_of)),
              expected.substr(0, expected.find(value_of)));
    return text;
  };
  const std::string in_group_1 =
      errors(layout.embedding + 22 * config.model.d_model, config.model.d_model,
             std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(Says(in_group_1,
                   "layer 0, token 1000 (sequence 0 of its group, "
                   "position 0), expert 0: router score is ",
                   "nan"));
  const std::string in_layer_1 = errors(layout.layers[1].router_weight + 2, 1,
                                        std::numeric_limits<float>::infinity());
  EXPECT_TRUE(Says(in_layer_1, "layer 1, token 0 ",
                   "expert 2: router score is ", "inf"));
  EXPECT_TRUE(Says(
      errors(layout.head_weight + 1, 1, std::numeric_limits<float>::infinity()),
      "the loss is "));
}

// In a model whose parameters are written in parts and updated, products read
// the current parameters: a new model that gets them all at once has the same
// loss to the last bit, and other parameters give another loss.
TEST(SimulatedBf16, ProductsReadTheParametersAsTheyAre) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const Config config =
      TrainingConfigOf({RouterKind::kSoftLearned, Precision::kBf16});
  const auto queue = MakeQueue();
  SmallGroups batch(config, 9);
  const auto loss = [&](optimized::Model& model) {
    return model.Forward(batch(0), SmallRouting(9)).loss_sum;
  };
  const auto fresh_loss = [&](const std::vector<float>& parameters) {
    const auto model = MakeSimulated(config, 1, *queue);
    model->WriteParameters(parameters, 0);
    return loss(*model);
  };
  const auto model = MakeSimulated(config, 1, *queue);
  const auto updater = model->MakeUpdater();
  const std::vector<float> first = SmallParameters(config);
  const int64_t half = static_cast<int64_t>(first.size()) / 2;
  model->WriteParameters(std::span(first).subspan(half), half);
  model->WriteParameters(std::span(first).first(half), 0);
  const double before = loss(*model);
  EXPECT_EQ(before, fresh_loss(first));
  for (int64_t number = 0; number < 2; ++number) {
    updater->ComputeGradient(SmallRouting(number), SmallGroups(config, number));
    updater->Apply(1e-1, number);
    EXPECT_EQ(loss(*model), fresh_loss(model->ReadParameters())) << number;
    EXPECT_NE(loss(*model), before);
  }
  // Parameters written later count as well: only a product reads head_weight.
  std::vector<float> other = model->ReadParameters();
  const int64_t head = model->layout().head_weight;
  other[head] += 1;
  model->WriteParameters(std::span(other).subspan(head, 1), head);
  EXPECT_EQ(loss(*model), fresh_loss(other));
}

// A step's memory traffic counts the sizes of the stored types.
TEST(SimulatedBf16, ProfilesCountBytesOfWhatIsStored) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const auto queue = MakeQueue();
  const auto bytes = [&](Precision precision) {
    // Same shape for both precisions.
    Config config = SmallTrainingConfig(RouterKind::kSoftFixed);
    config.model.d_model = config.model.d_ffn = config.model.vocab_size = 16;
    config.training.precision = precision;
    const auto model = MakeSimulated(config, 1, *queue);
    const auto updater = model->MakeUpdater();
    model->WriteParameters(SmallParameters(config), 0);
    Profile profile;
    updater->ComputeGradient(SmallRouting(0), SmallGroups(config, 0));
    std::map<std::string, double> all;
    for (const OperationTime& operation : profile.Take()) {
      all[operation.name] = operation.work.bytes;
    }
    return all;
  };
  const auto fp32 = bytes(Precision::kFp32), bf16 = bytes(Precision::kBf16);
  for (const char* name : {"norm", "norm, backward", "rope", "copy", "clear"}) {
    EXPECT_GT(bf16.at(name), 0) << name;
    EXPECT_EQ(bf16.at(name), fp32.at(name) / 2) << name;
  }
  for (const char* name :
       {"router", "router, backward", "route plan and counts"}) {
    EXPECT_GT(bf16.at(name), 0) << name;
    EXPECT_EQ(bf16.at(name), fp32.at(name)) << name;
  }
  // Reads from the table, which is fp32, and writes to its gradient.
  EXPECT_EQ(bf16.at("embedding"), fp32.at("embedding") * 3 / 4);
  const double tokens = 5, vocab = 16;
  EXPECT_DOUBLE_EQ(
      bf16.at("embedding, backward"),
      fp32.at("embedding, backward") * (tokens / 2 + vocab) / (tokens + vocab));
}

// Changes of the router's weight and input that are invisible in bf16.
TEST(SimulatedBf16, TheRouterReadsFloats) {
  simt::SetSchedule(simt::Schedule::kAscending);
  Config config = TrainingConfigOf({RouterKind::kSoftFixed, Precision::kBf16});
  config.router.noise_amplitude = 0x1p-14;  // the jitter's
  const auto queue = MakeQueue();
  const ModelCase c = MakeModelCase(config, 1, 8);
  const ParameterLayout layout(config);
  // Each weight of layer 0's router is the bf16 number +-1, times `factor`.
  const auto scores = [&](float factor, bool noise) {
    std::vector<float> parameters = c.parameters;
    const int64_t first = layout.layers[0].router_weight;
    for (int64_t i = 0; i < config.model.d_model * config.model.num_experts;
         ++i) {
      parameters[first + i] = std::copysign(factor, parameters[first + i]);
    }
    const auto model = MakeSimulated(config, 1, *queue);
    model->WriteParameters(parameters, 0);
    (void)model->Forward({1, c.inputs, c.targets, c.first_token},
                         {.temperature = 1.25, .tau = 1.25, .noise = noise});
    const auto view = model->LastRouting(0).scores;
    return std::vector<float>(view.begin(), view.end());
  };
  EXPECT_EQ(scores(1, false), scores(1, false));
  EXPECT_NE(scores(1 + 0x1p-12f, false), scores(1, false));
  EXPECT_NE(scores(1, true), scores(1, false));
}

INSTANTIATE_TEST_SUITE_P(Routers, SimulatedModel,
                         ::testing::ValuesIn(SmallKinds()),
                         [](const auto& info) {
                           return std::string(EnumName(info.param.router)) +
                                  "_" + EnumName(info.param.precision);
                         });

}  // namespace
}  // namespace softmoe::property_tests
