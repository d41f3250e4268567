// SPDX-License-Identifier: Apache-2.0
#include "core/config/config.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "core/config/config_check.h"
#include "core/config/config_enums.h"
#include "core/config/config_fields.h"
#include "core/config/config_text.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/testing/config_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

TEST(ValidateConfig, AcceptsTheDefaults) {
  ValidateConfig(Config());
  EXPECT_TRUE(RuntimeProblems(RuntimeConfig()).empty());
}

RC_GTEST_PROP(ValidateConfig, AcceptsRandomValidConfigs, ()) {
  const Config config = RandomConfig(*rc::gen::arbitrary<uint64_t>());
  RC_CLASSIFY(config.router.kind == RouterKind::kSparse, "sparse");
  RC_CLASSIFY(config.router.tau.has_value(), "tau is a number");
  ValidateConfig(config);
}

struct BadCase {
  std::string key;      // must be named, with its value
  std::string message;  // must be in the text
  std::function<void(Config&)> change;
};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<BadCase> BadCases() {
  using C = Config;
  const std::string k = "router.mean_active_experts";
  return {
      {k + " = 0.5", "must be >= 1",
       [](C& c) { c.router.mean_active_experts = 0.5; }},
      {k + " = 33.0", "in [1, 32] (model.num_experts)",
       [](C& c) { c.router.mean_active_experts = 33; }},
      {k + " = 1.5", "must be an integer",
       [](C& c) { c.router.mean_active_experts = 1.5; }},
      {k + " = nan", "must be >= 1",
       [](C& c) { c.router.mean_active_experts = kNaN; }},
      // As floats these would be 0, 1 or infinite.
      {"model.norm_epsilon = 1e+300", "must be in [1e-30, 1e+30]",
       [](C& c) { c.model.norm_epsilon = 1e300; }},
      {"model.init_std = 1e-50", "must be in [1e-30, 1e+30]",
       [](C& c) { c.model.init_std = 1e-50; }},
      {"router.init_std = 1e+50", "must be in [0, 1e+30]",
       [](C& c) { c.router.init_std = 1e50; }},
      {"router.noise_amplitude = 1e+50", "must be in [0, 1e+30]",
       [](C& c) { c.router.noise_amplitude = 1e50; }},
      {"router.temperature_start = 1e-50", "must be in [1e-30, 1e+30]",
       [](C& c) { c.router.temperature_start = 1e-50; }},
      {"router.temperature_start = 0.0", "must be in [1e-30, 1e+30]",
       [](C& c) { c.router.temperature_start = 0; }},
      {"router.temperature_end = 1e+50", "must be in [1e-30, 1e+30];",
       [](C& c) { c.router.temperature_end = 1e50; }},
      {"router.temperature_end = inf", "must be in [1e-30, 1e+30];",
       [](C& c) { c.router.temperature_end = kInfinity; }},
      {"router.aux_loss_coeff = 1e+50", "must be in [0, 1e+30]",
       [](C& c) { c.router.aux_loss_coeff = 1e50; }},
      {"router.z_loss_coeff = 1e+50", "must be in [0, 1e+30]",
       [](C& c) { c.router.z_loss_coeff = 1e50; }},
      {"training.learning_rate = 1e+50", "must be in [1e-30, 1e+30]",
       [](C& c) { c.training.learning_rate = 1e50; }},
      {"training.beta1 = 0.99991", "must be in [0, 0.9999]",
       [](C& c) { c.training.beta1 = 0.99991; }},
      {"training.beta2 = 0.99991", "must be in [0, 0.9999]",
       [](C& c) { c.training.beta2 = 0.99991; }},
      {"training.adam_epsilon = 9e-16", "must be in [1e-15, 1e+30]",
       [](C& c) { c.training.adam_epsilon = 9e-16; }},
      {"training.weight_decay = 1e+50", "must be in [0, 1e+30]",
       [](C& c) { c.training.weight_decay = 1e50; }},
      {"router.expansion_factor = 0.99", "must be in [1, 4096]",
       [](C& c) { c.router.expansion_factor = 0.99; }},
      {"router.tau = 0.0", "must be > 0", [](C& c) { c.router.tau = 0; }},
      {"router.tau = nan", "must be > 0", [](C& c) { c.router.tau = kNaN; }},
      {"router.tau = inf", "must be > 0 and finite;",
       [](C& c) { c.router.tau = kInfinity; }},
      {"router.noise_amplitude = 0.1", "no effect",
       [](C& c) { c.router.noise_amplitude = 0.1; }},
      {"router.noise_amplitude = 1.0", "must be in [0, 1)",
       [](C& c) {
         c.router.noise = NoiseKind::kInputJitter;
         c.router.noise_amplitude = 1;
       }},
      {"router.noise_amplitude = 0.0",
       "means no noise, but router.noise = \"logit_gauss\"; set the amplitude",
       [](C& c) { c.router.noise = NoiseKind::kLogitGauss; }},
      {"model.num_experts = 257", "must be in [1, 256]",
       [](C& c) { c.model.num_experts = 257; }},
      {"model.num_heads = 7", "must divide model.d_model = 640",
       [](C& c) { c.model.num_heads = 7; }},
      {"model.num_heads = 128", "heads of width 5",
       [](C& c) { c.model.num_heads = 128; }},
      {"model.num_heads = 0", "must be in [1, 32768]",
       [](C& c) { c.model.num_heads = 0; }},
      {"training.micro_batch_sequences = 31", "must divide",
       [](C& c) { c.training.micro_batch_sequences = 31; }},
      {"training.micro_batch_sequences = 0", "must be in [1, 1048576]",
       [](C& c) { c.training.micro_batch_sequences = 0; }},
      {"training.balance_group_sequences = 20", "must divide",
       [](C& c) { c.training.balance_group_sequences = 20; }},
      {"training.balance_group_sequences = 60", "must divide",
       [](C& c) { c.training.balance_group_sequences = 60; }},
      // 2^31 rows, and one group less.
      {"training.balance_group_sequences = 1024",
       "more than 2^31 - 1 rows, with model.sequence_length = 65536 and up to "
       "32 experts for a token; write at most 1023",
       [](C& c) {
         c.router.kind = RouterKind::kSoftLearned;
         c.router.mean_active_experts = 4;
         c.model.sequence_length = 1 << 16;
         c.training.global_batch_sequences = 1024;
         c.training.micro_batch_sequences = 1024;
         c.training.balance_group_sequences = 1024;
       }},
      {"training.min_learning_rate = 0.01",
       "must be <= training.learning_rate = 0.001",
       [](C& c) { c.training.min_learning_rate = 0.01; }},
      {"training.warmup_fraction = 1.0", "must be in [0, 1)",
       [](C& c) { c.training.warmup_fraction = 1; }},
      {"training.beta2 = 1.0", "the default is 0.95",
       [](C& c) { c.training.beta2 = 1; }},
      {"data.validation_fraction = 1.0", "must be in (0, 1)",
       [](C& c) { c.data.validation_fraction = 1; }},
  };
}

TEST(ValidateConfig, NamesKeyValueAndRange) {
  for (const BadCase& bad : BadCases()) {
    Config config;
    bad.change(config);
    EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { ValidateConfig(config); }),
                     bad.key + " ", bad.message))
        << bad.key;
  }
}

TEST(ValidateConfig, AcceptsAsManyRowsAsKernelsNumber) {
  Config config;
  config.router.mean_active_experts = 16;
  config.model.sequence_length = (1 << 16) - 1;
  config.training.balance_group_sequences = 1 << 11;
  config.training.micro_batch_sequences = 1 << 11;
  config.training.global_batch_sequences = 1 << 11;
  EXPECT_TRUE(ConfigProblems(config).empty());
  ++config.model.sequence_length;
  EXPECT_EQ(ConfigProblems(config).size(), 1u);
}

// The ends of the ranges, as the floats that kernels take.
TEST(ValidateConfig, RangesOfFloatsAreThoseOfFloats) {
  for (const double end : {kFloat.low, kFloat.high}) {
    const auto as_float = static_cast<float>(end);
    EXPECT_TRUE(std::isnormal(as_float)) << end;
    EXPECT_TRUE(std::isnormal(1.0f / as_float)) << end;
  }
  EXPECT_LE((0x1p-25 + 0x1p-26) / (1 - kBeta.high), 4.5e-4);
  EXPECT_LE(std::sqrt(0x1p-125 / (1 - kBeta.high)), 0.016 * kAdamEpsilon.low);
  EXPECT_TRUE(std::isnormal(1.0f / static_cast<float>(kAdamEpsilon.high)));
}

TEST(AllowedRange, HoldsItsEndsUnlessTheyAreExcluded) {
  for (const bool excluded : {false, true}) {
    const AllowedRange range = {.low = 1,
                                .high = 2,
                                .low_excluded = excluded,
                                .high_excluded = excluded};
    EXPECT_EQ(range.Contains(1), !excluded);
    EXPECT_TRUE(range.Contains(1.5));
    EXPECT_EQ(range.Contains(2), !excluded);
    EXPECT_FALSE(range.Contains(0.5));
    EXPECT_FALSE(range.Contains(2.5));
  }
}

// Each size is the largest of its range, and fine without the others.
TEST(ValidateConfig, RefusesSizesWhoseProductsOverflow) {
  const auto problems = [](const Config& config) {
    std::string text;
    for (const auto& problem : ConfigProblems(config)) {
      text += problem.key + ": " + problem.message + "\n";
    }
    return text;
  };
  Config config;
  config.router.kind = RouterKind::kSoftFixed;
  config.model.num_layers = 2;
  config.model.sequence_length = 1 << 20;
  config.training.global_batch_sequences = 1 << 20;
  config.training.micro_batch_sequences = 1 << 8;
  config.training.balance_group_sequences = 1 << 8;
  config.router.calibration_batches = 1;
  EXPECT_EQ(problems(config), "");
  config.training.steps = (int64_t{1} << 31) - 1;
  EXPECT_TRUE(Says(problems(config),
                   "training.steps: training.steps = 2147483647 batches of "
                   "training.global_batch_sequences = 1048576 times "
                   "model.sequence_length = 1048576 tokens are more than can "
                   "be counted; take fewer steps"));
  config.training.steps = 1;
  config.router.calibration_batches = 1 << 20;
  EXPECT_TRUE(Says(problems(config),
                   "router.calibration_batches: router.calibration_batches = "
                   "1048576 batches of ",
                   "have more soft weights than can be counted; ",
                   "or set router.tau"));
  config.router.tau = 1;  // no calibration
  EXPECT_EQ(problems(config), "");
  config.router.tau.reset();
  config.router.kind = RouterKind::kSparse;
  EXPECT_EQ(problems(config), "");
}

// Tries every number of every section, so that no key lacks a range.
TEST(ValidateConfig, RefusesNaNInEveryRealKeyAndMinusOneInEveryInteger) {
  for (const auto& [key, value] : ExactFields(Config())) {
    Config config;
    bool changed = false;
    VisitConfig(
        config, [&, key = key](const std::string& section, const char* name,
                               auto& field, const AllowedRange&) {
          if (section + "." + name != key) return;
          using T = std::decay_t<decltype(field)>;
          if constexpr (std::is_same_v<T, int64_t>) {
            field = -1;
            changed = true;
          } else if constexpr (std::is_same_v<T, double> ||
                               std::is_same_v<T, std::optional<double>>) {
            field = kNaN;
            changed = true;
          }
        });
    if (!changed) continue;
    const auto problems = ConfigProblems(config);
    ASSERT_FALSE(problems.empty()) << key;
    bool named = false;
    for (const auto& problem : problems) named |= problem.key == key;
    EXPECT_TRUE(named) << key;
  }
}

TEST(ValidateConfig, ReportsAllProblemsAtOnce) {
  Config config;
  config.model.num_layers = 0;
  config.router.temperature_end = 0;
  config.training.steps = 0;
  EXPECT_EQ(ConfigProblems(config).size(), 3u);
}

TEST(RuntimeProblems, NamesTheKey) {
  RuntimeConfig runtime;
  runtime.threads = -1;
  runtime.isa = "v5";
  runtime.log_every = 0;
  const auto problems = RuntimeProblems(runtime);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].key, "runtime.threads");
  EXPECT_EQ(problems[1].key, "runtime.log_every");
  EXPECT_EQ(problems[2].key, "runtime.isa");
}

TEST(RuntimeProblems, OfTheDevice) {
  RuntimeConfig runtime;
  runtime.isa = "v3";
  for (const char* device : {"", "cpu"}) {
    runtime.device = device;
    EXPECT_TRUE(RuntimeProblems(runtime).empty()) << device;
  }
  runtime.device = "cuda";
  ASSERT_EQ(RuntimeProblems(runtime).size(), 1u);
  EXPECT_EQ(RuntimeProblems(runtime)[0].key, "runtime.isa");  // CPU only
  runtime.isa = "";
  EXPECT_TRUE(RuntimeProblems(runtime).empty());
  runtime.device = "simulated";  // in tests, and not by that name
  ASSERT_EQ(RuntimeProblems(runtime).size(), 1u);
  EXPECT_EQ(RuntimeProblems(runtime)[0].key, "runtime.device");
}

TEST(ConfigToToml, IsCanonical) {
  const std::string toml = ConfigToToml(Config());
  EXPECT_EQ(toml.substr(0, 30), "[model]\nnum_layers = 10\nd_mode");
  EXPECT_TRUE(Says(toml, "\nrope_base = 10000.0\n", "\nnorm_epsilon = 1e-05\n",
                   "\ninit_std = 0.02\n", "\n\n[router]\nkind = \"sparse\"\n",
                   "\ntau = \"calibrated\"\n", "\nnoise = \"none\"\n",
                   "\nseed = 1234\n", "\n\n[data]\ncorpus = \"\"\n"));
}

TEST(TomlText, RealsAreTheShortestThatReadBack) {
  EXPECT_EQ(TomlText(0.1), "0.1");
  EXPECT_EQ(TomlText(1.0), "1.0");
  EXPECT_EQ(TomlText(1e300), "1e+300");
  EXPECT_EQ(TomlText(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(TomlText(-0.0), "-0.0");
}

TEST(ConfigHash, IsTheDocumentedFunctionOfTheToml) {
  const std::string hash = ConfigHash(Config());
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(hash, ConfigHash(Config()));
}

// Runs are found by their hash, so new keys must not change that of the
// defaults.
TEST(ConfigHash, IsTheOneOfEarlierVersions) {
  EXPECT_EQ(ConfigHash(Config()), "d61d6f881fbacac5");
  EXPECT_FALSE(Says(ConfigToToml(Config()), "precision"));
}

// Another precision gives other bits, so it is another run.
TEST(ConfigHash, HasThePrecision) {
  Config config;
  config.training.precision = Precision::kBf16;
  EXPECT_NE(ConfigHash(config), ConfigHash(Config()));
  EXPECT_TRUE(Says(ConfigToToml(config), "\nprecision = \"bf16\"\n"));
}

// 0, the default, means the model's own deviation.
TEST(ConfigHash, HasTheRoutersOwnInitialDeviation) {
  Config config;
  EXPECT_EQ(config.router_init_std(), config.model.init_std);
  EXPECT_FALSE(Says(ConfigToToml(config), "\ninit_std = 0.0\n"));
  config.router.init_std = 0.05;
  EXPECT_EQ(config.router_init_std(), 0.05);
  EXPECT_NE(ConfigHash(config), ConfigHash(Config()));
  EXPECT_TRUE(
      Says(ConfigToToml(config), "\nz_loss_coeff = 0.0\ninit_std = 0.05"));
}

struct Before {
  int64_t steps = 10;
};
struct After {
  int64_t steps = 10;
  std::string precision = "fp32";
  int64_t blocks = 1;
};
template <typename Visitor>
void VisitBefore(const Before& c, Visitor&& visit) {
  visit("training", "steps", c.steps, AtLeast(1));
}
template <typename Visitor>
void VisitAfter(const After& c, Visitor&& visit) {
  visit("numbers", "blocks", c.blocks, Later(AtLeast(1)));
  visit("training", "precision", c.precision, Later(kAnyText));
  visit("training", "steps", c.steps, AtLeast(1));
}

TEST(CanonicalToml, ALaterKeyIsLeftOutWhileItMeansWhatWasDoneBefore) {
  const auto before = [](const Before& c) {
    return CanonicalToml(
        c, [](const auto& b, auto&& visit) { VisitBefore(b, visit); });
  };
  const auto after = [](const After& c) {
    return CanonicalToml(
        c, [](const auto& a, auto&& visit) { VisitAfter(a, visit); });
  };
  EXPECT_EQ(before({.steps = 7}), "[training]\nsteps = 7\n");
  EXPECT_EQ(after({.steps = 7}), before({.steps = 7}));
  // An original key is printed even if it has its default.
  EXPECT_EQ(after({}), before({}));
  EXPECT_EQ(after({.steps = 7, .precision = "bf16"}),
            "[training]\nprecision = \"bf16\"\nsteps = 7\n");
  EXPECT_EQ(after({.steps = 7, .blocks = 2}),
            "[numbers]\nblocks = 2\n\n[training]\nsteps = 7\n");
}

// A later key has a range like any other.
TEST(CanonicalToml, ALaterKeyHasARange) {
  EXPECT_TRUE(Later(AtLeast(1)).Contains(1));
  EXPECT_FALSE(Later(AtLeast(1)).Contains(0));
}

TEST(NearestDivisor, IsTheNearestByRatio) {
  EXPECT_EQ(NearestDivisor(240, 30), 30);
  EXPECT_EQ(NearestDivisor(16, 30), 16);
  EXPECT_EQ(NearestDivisor(72, 30), 36);
  EXPECT_EQ(NearestDivisor(48, 30), 24);
  EXPECT_EQ(NearestDivisor(1 << 20, 30), 32);
  EXPECT_EQ(NearestDivisor(36, 6, 4), 4);  // of 4, 12 and 36
  EXPECT_EQ(NearestDivisor(36, 6, 5), 0);  // no divisor is a multiple of 5
  EXPECT_EQ(NearestDivisor(12, 6, 12), 12);
}

TEST(FollowBatchSizes, AcceptsWhatCanBeAndKeepsWhatWasAccepted) {
  const auto holds = [](const TrainingConfig& t) {
    return t.global_batch_sequences % t.micro_batch_sequences == 0 &&
           t.micro_batch_sequences % t.balance_group_sequences == 0;
  };
  int64_t kept = 0;
  for (int64_t batch = 1; batch <= 96; ++batch) {
    for (int64_t micro = 0; micro <= 64; ++micro) {  // 0: not set
      for (int64_t group = 0; group <= 64; ++group) {
        SCOPED_TRACE(testing::Message()
                     << batch << " " << micro << " " << group);
        TrainingConfig t;
        t.global_batch_sequences = batch;
        if (micro != 0) t.micro_batch_sequences = micro;
        if (group != 0) t.balance_group_sequences = group;
        const TrainingConfig before = t;
        FollowBatchSizes(micro != 0, group != 0, &t);
        ASSERT_EQ(t.global_batch_sequences, batch);
        // Sizes that fit are kept, whatever else was set.
        const bool same =
            t.micro_batch_sequences == before.micro_batch_sequences &&
            t.balance_group_sequences == before.balance_group_sequences;
        if (holds(before)) {
          ASSERT_TRUE(same);
          ++kept;
        }
        ASSERT_TRUE(micro == 0 || t.micro_batch_sequences == micro);
        ASSERT_TRUE(group == 0 || t.balance_group_sequences == group);
        const int64_t over_groups = micro == 0 ? batch : micro;
        ASSERT_EQ(holds(t), (micro == 0 || batch % micro == 0) &&
                                (group == 0 || over_groups % group == 0));
      }
    }
  }
  EXPECT_GT(kept, 100);
}

TEST(ConfigHash, DiffersWhenAnySingleFieldDiffers) {
  for (uint64_t seed : {1, 2, 3}) {
    const Config config = RandomConfig(seed);
    std::set<std::string> hashes = {ConfigHash(config)};
    for (const auto& [key, value] : ExactFields(config)) {
      const Config other = WithOtherValue(config, key);
      EXPECT_NE(ExactFields(other).at(key), value);
      EXPECT_TRUE(hashes.insert(ConfigHash(other)).second) << key;
    }
    EXPECT_EQ(hashes.size(), 45u);  // all fields and the original
  }
}

template <typename E>
void ExpectNamesRoundTrip() {
  EXPECT_EQ(EnumChoices<E>().size(), std::size(EnumNames<E>::kNames));
  for (const std::string& name : EnumChoices<E>()) {
    ASSERT_TRUE(ParseEnum<E>(name)) << name;
    EXPECT_EQ(EnumName(*ParseEnum<E>(name)), name);
  }
  EXPECT_FALSE(ParseEnum<E>("nonsense"));
  EXPECT_THROW(EnumName(static_cast<E>(99)), InternalError);
}

TEST(EnumNames, ParseAndPrintAreInverse) {
  ExpectNamesRoundTrip<RouterKind>();
  ExpectNamesRoundTrip<Fallback>();
  ExpectNamesRoundTrip<NoiseKind>();
  ExpectNamesRoundTrip<LoadBalanceKind>();
  ExpectNamesRoundTrip<Precision>();
  ExpectNamesRoundTrip<Normalise>();
  ExpectNamesRoundTrip<Recompute>();
  EXPECT_STREQ(RouterKindName(RouterKind::kSoftLearned), "soft_learned");
}

TEST(HasTrait, IsThatOfTheKind) {
  Config config;
  EXPECT_TRUE(HasTrait(config, &RouterTraits::exact_k));
  EXPECT_FALSE(HasTrait(config, &RouterTraits::cap));
  EXPECT_TRUE(HasTrait(config, nullptr));
  config.router.kind = RouterKind::kSoftFixed;
  EXPECT_TRUE(HasTrait(config, &RouterTraits::cap));
  EXPECT_FALSE(HasTrait(config, &RouterTraits::learned_budget));
}

TEST(WholeExperts, AreOneAtLeastAndAllAtMost) {
  EXPECT_EQ(WholeExperts(2.0000005, 8), 2);
  EXPECT_EQ(WholeExperts(2.000002, 8), 3);
  EXPECT_EQ(WholeExperts(1e-9, 8), 1);
  EXPECT_EQ(WholeExperts(1e300, 8), 8);
  EXPECT_EQ(WholeExperts(std::nan(""), 8), 1);
}

// It is k where there is no cap, whatever the expansion factor.
TEST(MaxActive, IsTheCapOrK) {
  Config config;
  config.router.expansion_factor = 4;
  EXPECT_EQ(MaxActive(config, 2), 2);
  config.router.kind = RouterKind::kSoftFixed;
  EXPECT_EQ(MaxActive(config, 2.5), 10);
}

}  // namespace
}  // namespace softmoe
