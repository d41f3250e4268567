// SPDX-License-Identifier: Apache-2.0
#include "core/config/config_toml.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/config/config_enums.h"
#include "core/config/toml.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

// Returns the message of the ConfigError for a file "a.toml" with this text and
// these options, or kNoError.
std::string ErrorOf(const std::string& text,
                    const std::vector<std::string>& overrides = {}) {
  return MessageOf<ConfigError>([&] {
    ConfigDraft draft;
    draft.Apply(ParseToml(text, "a.toml"));
    for (const auto& option : overrides) draft.ApplyOverride(option);
    draft.Resolve();
  });
}

TEST(ConfigToml, SetsWhatIsWrittenAndKeepsTheDefaultsOfTheRest) {
  ConfigDraft draft;
  draft.Apply(
      ParseToml("[model]\n"
                "d_model = 128\n"
                "num_heads = 4\n"
                "[router]\n"
                "kind = \"soft_learned\"\n"
                "mean_active_experts = 2   # integer for a real\n"
                "tau = 1.8\n"
                "[data]\n"
                "corpus = \"gcide\"\n"
                "[runtime]\n"
                "threads = 3\n"
                "recompute = \"layer\"\n",
                "a.toml"));
  draft.Resolve();
  EXPECT_EQ(draft.config.model.d_model, 128);
  EXPECT_EQ(draft.config.model.num_layers, 10);
  EXPECT_EQ(draft.config.router.kind, RouterKind::kSoftLearned);
  EXPECT_EQ(draft.config.router.mean_active_experts, 2.0);
  EXPECT_EQ(draft.config.router.tau, 1.8);
  EXPECT_EQ(draft.config.data.corpus, "gcide");
  EXPECT_EQ(draft.runtime.threads, 3);
  EXPECT_EQ(draft.runtime.recompute, Recompute::kLayer);
  EXPECT_EQ(draft.origins.at("router.tau"), "a.toml:7:7");
  EXPECT_FALSE(draft.origins.contains("router.noise"));
}

TEST(ConfigToml, TauIsANumberOrCalibrated) {
  EXPECT_EQ(ErrorOf("[router]\ntau = \"calibrated\""), kNoError);
  EXPECT_EQ(ErrorOf("[router]\ntau = 2"), kNoError);
  EXPECT_EQ(ErrorOf("[router]\ntau = \"auto\""),
            "a.toml:2:7: 'router.tau' is text, but must be a number or "
            "\"calibrated\"");
  ConfigDraft draft;  // "calibrated" also undoes a number
  draft.ApplyOverride("router.tau=1.5");
  draft.ApplyOverride("router.tau=calibrated");
  EXPECT_FALSE(draft.config.router.tau.has_value());
}

TEST(ConfigToml, MinusZeroIsZero) {
  const auto hash = [](const std::string& zero) {
    return ConfigHash(
        ParseConfig("[training]\nclip_norm = " + zero + "\n", "a.toml"));
  };
  EXPECT_EQ(hash("-0.0"), hash("0.0"));
}

TEST(ConfigToml, UnknownNamesAreErrorsWithPositionAndSuggestion) {
  EXPECT_EQ(ErrorOf("[router]\n  expansion = 2\n"),
            "a.toml:2:3: unknown key 'expansion'; did you mean "
            "'expansion_factor'?");
  EXPECT_EQ(ErrorOf("[modle]\nd_model = 1\n"),
            "a.toml:1:2: unknown section 'modle'; did you mean 'model'?");
  EXPECT_EQ(ErrorOf("\n[model]\ntau = 1.0\n"),
            "a.toml:3:1: unknown key 'tau'; it belongs to section [router]");
  EXPECT_EQ(ErrorOf("steps = 3\n"),
            "a.toml:1:1: unknown key 'steps'; it belongs to section "
            "[training]");
  EXPECT_EQ(ErrorOf("model = 3\n"),
            "a.toml:1:1: 'model' is an integer, but it is a section; write "
            "[model] and its keys below");
  EXPECT_TRUE(Says(ErrorOf("[data]\nzzzz = 1\n"),
                   "known are 'corpus', 'validation_fraction', 'max_bytes' and "
                   "'normalise'"));
}

TEST(ConfigToml, WrongTypesAreErrorsWithPosition) {
  EXPECT_EQ(ErrorOf("[training]\nsteps = 1e3\n"),
            "a.toml:2:9: 'training.steps' is a real number, but must be an "
            "integer (without decimal point or exponent)");
  EXPECT_EQ(ErrorOf("[training]\nlearning_rate = \"high\"\n"),
            "a.toml:2:17: 'training.learning_rate' is text, but must be a "
            "number");
  EXPECT_EQ(ErrorOf("[data]\ncorpus = 7\n"),
            "a.toml:2:10: 'data.corpus' is an integer, but must be text in "
            "quotes");
  EXPECT_EQ(ErrorOf("[router]\nnoise = \"input_jiter\"\n"),
            "a.toml:2:9: 'router.noise' is 'input_jiter', but must be 'none', "
            "'input_jitter' or 'logit_gauss'; did you mean 'input_jitter'?");
  // Every kind of router, of which there may be more.
  for (const std::string& kind : EnumChoices<RouterKind>()) {
    EXPECT_TRUE(Says(ErrorOf("[router]\nkind = \"soft\"\n"),
                     "a.toml:2:8: 'router.kind' is 'soft', but must be '",
                     "'" + kind + "'", "; did you mean 'soft_fixed'?"));
  }
  // 2^53 + 1 is no double; with a point it is rounded.
  EXPECT_EQ(ErrorOf("[training]\nclip_norm = 9007199254740993\n"),
            "a.toml:2:13: 'training.clip_norm' is an integer beyond 2^53, but "
            "must be a number");
  EXPECT_EQ(ErrorOf("[router]\ntau = 9007199254740993\n"),
            "a.toml:2:7: 'router.tau' is an integer beyond 2^53, but must be a "
            "number or \"calibrated\"");
  // If no choice is near, the choices are listed only once.
  EXPECT_EQ(ErrorOf("[router]\nfallback = \"always\"\n"),
            "a.toml:2:12: 'router.fallback' is 'always', but must be 'none' or "
            "'top1'");
}

TEST(ConfigToml, OutOfRangeValuesAreErrorsWithPosition) {
  EXPECT_EQ(ErrorOf("[training]\nbeta1 = 1.5\n"),
            "a.toml:2:9: training.beta1 = 1.5 must be in [0, 0.9999]; the "
            "default is 0.9");
  EXPECT_EQ(ErrorOf("[router]\ntau = nan\n"),
            "a.toml:2:7: router.tau = nan must be > 0 and finite; the default "
            "is \"calibrated\"");
  // Two problems, two lines, each with its place.
  const std::string text =
      ErrorOf("[router]\nmean_active_experts = 40\n[training]\nsteps = 0\n");
  EXPECT_TRUE(Says(text, "a.toml:2:23: router.mean_active_experts = 40.0",
                   "a.toml:4:9: training.steps = 0"));
}

TEST(ConfigToml, SyntaxErrorsHaveAPosition) {
  const std::string text = ErrorOf("[model]\nd_model = = 3\n");
  EXPECT_EQ(text.find("a.toml:2:"), 0u) << text;
  EXPECT_TRUE(Says(text, "not valid TOML"));
}

// toml++ 3.3 declares these cases unreachable, which --config=ubsan sees, or
// asserts that they do not happen (toml.h).
TEST(ConfigToml, LettersAndBracketsInOddPlacesAreSyntaxErrors) {
  for (const char* text :
       {"x = \xC3\xA9", "x = 1 \xD0\x80", "x\xE3\x81\x82 = 1", "[)]", "[a.)]",
        "x = {\xC3\xA9 = 1}"}) {
    EXPECT_TRUE(Says(ErrorOf(text), "not valid TOML")) << text;
  }
}

// Each dot of a key nests a table, and their destructors recurse.
TEST(ConfigToml, DeepKeysAreRefusedBeforeTheStackEnds) {
  std::string key = "a";
  for (int i = 0; i < 1'000'000; ++i) key += ".a";
  for (const std::string& text :
       {key + " = 1", "[" + key + "]", "x = 1\ny = {" + key + " = 1}"}) {
    EXPECT_TRUE(Says(ErrorOf(text), "more than 64 dots"));
  }
  EXPECT_TRUE(Says(ErrorOf("", {"model.d_model={" + key + "=1}"}), "64 dots"));
  EXPECT_EQ(
      ErrorOf("x = 1\ny = \"" + std::string(65, '.') + '"').find("a.toml:2: "),
      0u);
}

TEST(ConfigOverride, TextThatAResultCouldNotHoldIsRefused) {
  EXPECT_EQ(ErrorOf("", {"data.corpus=path:caf\xE9"}),
            "--set data.corpus=path:caf\xE9: 'data.corpus' is not UTF-8 text; "
            "rename it");
}

TEST(ConfigOverride, WinsOverTheFileAndNeedsNoQuotes) {
  ConfigDraft draft;
  draft.Apply(ParseToml("[router]\nkind = \"sparse\"\n", "a.toml"));
  draft.ApplyOverride("router.kind=soft_fixed");
  draft.ApplyOverride(" router.tau = 1.25 ");
  draft.ApplyOverride("data.corpus=path:my file.txt");
  draft.ApplyOverride("training.learning_rate=3e-4");
  EXPECT_EQ(draft.config.router.kind, RouterKind::kSoftFixed);
  EXPECT_EQ(draft.config.router.tau, 1.25);
  EXPECT_EQ(draft.config.data.corpus, "path:my file.txt");
  EXPECT_EQ(draft.config.training.learning_rate, 3e-4);
  draft.ApplyOverride("data.corpus=\"quoted\"");
  EXPECT_EQ(draft.config.data.corpus, "quoted");
  draft.ApplyOverride("data.corpus=2024");  // a name that looks like a number
  EXPECT_EQ(draft.config.data.corpus, "2024");
  draft.ApplyOverride("data.corpus=two\nmax_bytes = 7");
  EXPECT_EQ(draft.config.data.corpus, "two\nmax_bytes = 7");
  EXPECT_EQ(draft.config.data.max_bytes, 0);
}

TEST(ConfigOverride, IntegersThatTomlCannotReadAreNotCalledText) {
  for (const char* integer : {"99999999999999999999", "-007"}) {
    EXPECT_TRUE(Says(ErrorOf("", {std::string("training.steps=") + integer}),
                     "'training.steps' is an integer with leading zeros or "
                     "more than 64 bits, but must be"));
  }
  EXPECT_TRUE(Says(ErrorOf("", {"training.steps=-"}), "is text, but must be"));
}

TEST(ConfigOverride, ErrorsShowTheOption) {
  EXPECT_EQ(ErrorOf("", {"router.expansion=2"}),
            "--set router.expansion=2: unknown key 'expansion'; did you mean "
            "'expansion_factor'?");
  EXPECT_EQ(ErrorOf("", {"training.steps=many"}),
            "--set training.steps=many: 'training.steps' is text, but must be "
            "an integer (without decimal point or exponent)");
  EXPECT_EQ(ErrorOf("[training]\nsteps = 5", {"training.steps=0"}),
            "--set training.steps=0: training.steps = 0 must be in [1, "
            "2147483647]; the default is 18000");
  for (const char* option :
       {"steps=3", "training.steps", "=3", ".steps=1", "training.=1", ""}) {
    EXPECT_EQ(ErrorOf("", {option}),
              std::string("--set ") + option +
                  ": needs the form section.key=value, for example "
                  "router.tau=1.8");
  }
}

TEST(ConfigDraft, AppliesSubtreesOfAGridWithTheirPositions) {
  const toml::table grid =
      ParseToml("[[rows]]\nname = \"one\"\nset = { router = { tau = -1 } }\n",
                "grid.toml");
  const toml::table& row = *(*grid["rows"].as_array())[0].as_table();
  ConfigDraft draft;
  draft.Apply(*row["set"].as_table());
  EXPECT_EQ(TomlPosition(*row.get("name")), "grid.toml:2:8");
  const std::string message = MessageOf<ConfigError>([&] { draft.Resolve(); });
  EXPECT_EQ(message.find("grid.toml:3:26: router.tau = -1"), 0u) << message;
}

// Returns the sizes of batch, micro-batch and balance group for a file with
// these lines.
std::vector<int64_t> BatchSizes(
    const std::string& lines, const std::vector<std::string>& overrides = {}) {
  ConfigDraft draft;
  draft.Apply(ParseToml("[training]\n" + lines, "a.toml"));
  for (const std::string& option : overrides) draft.ApplyOverride(option);
  draft.Resolve();
  const TrainingConfig& t = draft.config.training;
  return {t.global_batch_sequences, t.micro_batch_sequences,
          t.balance_group_sequences};
}

TEST(BatchSizes, WhatIsLeftOutFollowsWhatIsSet) {
  using Sizes = std::vector<int64_t>;
  const std::string batch = "global_batch_sequences = ";
  const std::string micro = "micro_batch_sequences = ";
  const std::string group = "balance_group_sequences = ";
  EXPECT_EQ(BatchSizes(""), (Sizes{240, 30, 30}));
  EXPECT_EQ(BatchSizes(batch + "16"), (Sizes{16, 16, 16}));
  EXPECT_EQ(BatchSizes(batch + "1"), (Sizes{1, 1, 1}));
  EXPECT_EQ(BatchSizes(batch + "60"), (Sizes{60, 30, 30}));
  EXPECT_EQ(BatchSizes(batch + "256"), (Sizes{256, 32, 32}));
  EXPECT_EQ(BatchSizes(batch + "37"), (Sizes{37, 37, 37}));
  EXPECT_EQ(BatchSizes(micro + "60"), (Sizes{240, 60, 30}));
  EXPECT_EQ(BatchSizes(micro + "8"), (Sizes{240, 8, 8}));
  EXPECT_EQ(BatchSizes(group + "15"), (Sizes{240, 30, 15}));
  EXPECT_EQ(BatchSizes(group + "16"), (Sizes{240, 48, 16}));
  EXPECT_EQ(BatchSizes(group + "60"), (Sizes{240, 60, 60}));
  EXPECT_EQ(BatchSizes(batch + "16\n" + micro + "8"), (Sizes{16, 8, 8}));
  EXPECT_EQ(BatchSizes(batch + "16\n" + group + "4"), (Sizes{16, 16, 4}));
  EXPECT_EQ(BatchSizes(micro + "48\n" + group + "4"), (Sizes{240, 48, 4}));
  EXPECT_EQ(BatchSizes(batch + "16\n" + micro + "8\n" + group + "2"),
            (Sizes{16, 8, 2}));
  // An override counts as the file does, and dependent sizes follow it.
  EXPECT_EQ(BatchSizes("", {"training.global_batch_sequences=16"}),
            (Sizes{16, 16, 16}));
  EXPECT_EQ(BatchSizes(batch + "16", {"training.micro_batch_sequences=4"}),
            (Sizes{16, 4, 4}));
  EXPECT_EQ(BatchSizes(batch + "16", {"training.global_batch_sequences=64"}),
            (Sizes{64, 32, 32}));
}

TEST(BatchSizes, WhereNoneFollowsTheErrorNamesTheKeyAndWhatToWrite) {
  const std::string micro = "[training]\nmicro_batch_sequences = ";
  const std::string group = "[training]\nbalance_group_sequences = ";
  EXPECT_EQ(ErrorOf(micro + "32"),
            "a.toml:2:25: training.micro_batch_sequences = 32 must divide "
            "training.global_batch_sequences = 240; write "
            "training.micro_batch_sequences = 30");
  EXPECT_EQ(ErrorOf(group + "7"),
            "a.toml:2:27: training.balance_group_sequences = 7 must divide "
            "training.micro_batch_sequences = 30; write "
            "training.balance_group_sequences = 6");
  EXPECT_EQ(ErrorOf(micro + "16", {"training.global_batch_sequences=8"}),
            "a.toml:2:25: training.micro_batch_sequences = 16 must divide "
            "training.global_batch_sequences = 8; write "
            "training.micro_batch_sequences = 8");
  // The suggestions correct both, down to the last one.
  const std::string both = ErrorOf(
      micro + "32\nbalance_group_sequences = 32\nglobal_batch_sequences = 100");
  EXPECT_TRUE(Says(both, "write training.micro_batch_sequences = 25\n",
                   "write training.balance_group_sequences = 25"));
  EXPECT_EQ(ErrorOf("[training]\nglobal_batch_sequences = 0"),
            "a.toml:2:26: training.global_batch_sequences = 0 must be in "
            "[1, 1048576]; the default is 240");
}

TEST(ConfigDraft, AFailedApplyChangesNothing) {
  ConfigDraft draft;
  const std::string before = ConfigToToml(draft.config);
  EXPECT_THROW(
      draft.Apply(ParseToml("[model]\nd_model = 64\nd_ffn = \"x\"\n", "a")),
      ConfigError);
  EXPECT_EQ(ConfigToToml(draft.config), before);
  EXPECT_TRUE(draft.origins.empty());
}

TEST(LoadConfig, ReadsFilesAndNamesMissingOnes) {
  const fs::path folder = FreshFolder("load");
  WriteFileAtomically(folder / "a.toml", "[training]\nsteps = 7\n");
  EXPECT_EQ(
      LoadConfig(folder / "a.toml", {"training.seed=8"}).config.training.steps,
      7);
  EXPECT_THROW(LoadConfig(folder / "absent.toml", {}), EnvironmentError);
  WriteFileAtomically(folder / "binary.toml", std::string("\0\xff\xfe", 3));
  EXPECT_THROW(LoadConfig(folder / "binary.toml", {}), ConfigError);
  EXPECT_TRUE(Says(MessageOf<DataError>([] { LoadConfig("/dev/zero", {}); }),
                   "/dev/zero: larger than 64 MiB, so it cannot be"));
}

// A stored configuration that this version refuses is no mistake of the user's.
TEST(ParseConfig, OfAnotherVersionIsRefusedWithTheRemedy) {
  for (const char* text : {"[training]\nsteps = -1\n", "[new]\nkey = 1\n"}) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { ParseConfig(text, "r.h5"); }),
                     "r.h5:", "; the file was written by another version",
                     ": delete it to begin anew"));
  }
}

RC_GTEST_PROP(ParseConfig, IsTheInverseOfConfigToToml, ()) {
  const Config config = RandomConfig(*rc::gen::arbitrary<uint64_t>());
  const Config read = ParseConfig(ConfigToToml(config), "stored");
  RC_ASSERT(ExactFields(read) == ExactFields(config));
  RC_ASSERT(ConfigHash(read) == ConfigHash(config));
}

}  // namespace
}  // namespace softmoe
