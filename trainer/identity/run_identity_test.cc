// SPDX-License-Identifier: Apache-2.0
#include "trainer/identity/run_identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "core/config/config_toml.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

// Returns a digest of one repeated digit, unlike all else in a message.
std::string Digest(char digit) { return std::string(64, digit); }

const TokenIdentity kThere = {Digest('1'), Digest('2'), Digest('3')};

// Each phrase must be in the message, and both digests if there are any.
void ExpectSays(const TokenIdentity& there, const TokenIdentity& here,
                const std::string& phrase, const std::string& digits) {
  const std::string message = DescribeTokenDifferences(there, here);
  EXPECT_TRUE(Says(message, phrase));
  for (const char digit : {'1', '2', '3', '4'}) {
    EXPECT_EQ(message.find(Digest(digit).substr(0, 16)) != std::string::npos,
              digits.find(digit) != std::string::npos)
        << digit << ": " << message;
  }
}

TEST(TokenIdentity, SameTokensHaveNoDifference) {
  EXPECT_EQ(CompareTokens(kThere, kThere), IdentityDifferences());
  EXPECT_EQ(DescribeTokenDifferences({}), "");
  // A result that lacks the index's hash.
  EXPECT_EQ(CompareTokens({Digest('1'), "", Digest('3')}, kThere),
            IdentityDifferences());
}

TEST(TokenIdentity, NamesTheFileThatDiffers) {
  TokenIdentity here = kThere;
  here.data_sha256 = Digest('4');
  ExpectSays(kThere, here, "other tokens", "14");
  here = kThere;
  here.index_sha256 = Digest('4');
  ExpectSays(kThere, here, "another split", "24");
  // The tokenizer is named whatever else differs, since with another vocabulary
  // everything does.
  here = {Digest('4'), Digest('4'), Digest('4')};
  ExpectSays(kThere, here, "another tokenizer", "34");
}

TEST(TokenIdentity, AMissingDescriptionIsNotAnotherTokenizer) {
  TokenIdentity without = kThere;
  without.tokenizer_sha256 = "";
  ExpectSays(kThere, without, "the tokens are the same", "");
  ExpectSays(kThere, without, "put back the .json file", "");
  ExpectSays(without, kThere, "move it away", "");
}

TEST(RunIdentity, ConfigurationsDifferInKeysWithBothValues) {
  Config there, here;
  EXPECT_EQ(CompareConfigs(there, here), IdentityDifferences());
  EXPECT_EQ(DescribeConfigDifferences({}), "");
  there.training.steps = 100;
  here.router.tau = 1.25;
  const IdentityDifferences differences = CompareConfigs(there, here);
  EXPECT_EQ(differences,
            (IdentityDifferences{
                {IdentityPart::kConfig, "router.tau", "\"calibrated\"", "1.25"},
                {IdentityPart::kConfig, "training.steps", "100", "18000"}}));
  EXPECT_EQ(DescribeConfigDifferences(differences),
            "router.tau is \"calibrated\" there and 1.25 here; training.steps "
            "is 100 there and 18000 here");
}

RunIdentity Identity() {
  return {.config = Config(), .tokens = kThere, .isa = "v3"};
}

TEST(RunIdentity, EveryPartIsCompared) {
  const RunIdentity there = Identity();
  RunIdentity here = there;
  int parts = 0;
  VisitIdentityTexts(
      here, [&](IdentityPart part, const char* name, std::string& text) {
        const std::string before = std::exchange(text, "other");
        EXPECT_EQ(CompareIdentities(there, here),
                  (IdentityDifferences{{part, name, before, "other"}}));
        text = before;
        ++parts;
      });
  EXPECT_EQ(parts, 8);
  here.config.training.seed = 7;
  EXPECT_TRUE(Differs(CompareIdentities(there, here), IdentityPart::kConfig));
  EXPECT_FALSE(Differs(CompareIdentities(there, here), IdentityPart::kIsa));
}

template <typename ErrorType>
std::string Refusal(const RunIdentity& here) {
  return MessageOf<ErrorType>([&] {
    RequireSameRun("run/result.h5", Identity(), here,
                   {.config = "CONFIG", .tokens = "TOKENS", .place = "PLACE"});
  });
}

RunIdentity OnADevice() {
  RunIdentity identity = Identity();
  identity.isa = "sm_90";
  identity.backend = "cuda";
  identity.device = "NVIDIA H100 80GB HBM3";
  identity.libraries = "driver 13.0, CUDA runtime 13.0, cuBLASLt 13.1.0";
  return identity;
}

TEST(RunIdentity, ThePlaceIsDeviceAndLibraries) {
  const RunIdentity cpu = Identity(), gpu = OnADevice();
  EXPECT_TRUE(SamePlace(gpu, gpu));
  EXPECT_FALSE(SamePlace(cpu, gpu));
  EXPECT_EQ(PlaceText(cpu), "v3");
  EXPECT_EQ(PlaceText(gpu),
            "cuda (NVIDIA H100 80GB HBM3, sm_90; driver 13.0, CUDA runtime "
            "13.0, cuBLASLt 13.1.0)");
  for (std::string RunIdentity::*part :
       {&RunIdentity::isa, &RunIdentity::backend, &RunIdentity::device,
        &RunIdentity::libraries}) {
    RunIdentity other = gpu;
    other.*part += "1";
    EXPECT_FALSE(SamePlace(gpu, other));
  }
}

TEST(RunIdentity, AnotherNumberOfRanksIsRefusedWhereItCounts) {
  RunIdentity three = Identity();
  three.ranks = "3";
  EXPECT_TRUE(SamePlace(three, Identity()));
  EXPECT_TRUE(
      Differs(CompareIdentities(Identity(), three), IdentityPart::kRanks));
  EXPECT_EQ(Refusal<ConfigError>(three).find(
                "run/result.h5: was trained by a number of ranks that gives "
                "the bits of one, this run has 3 ranks: "),
            0u)
      << Refusal<ConfigError>(three);
}

TEST(RunIdentity, AnotherDeviceIsRefused) {
  const RunIdentity cpu = Identity(), gpu = OnADevice();
  const auto refusal = [](const RunIdentity& there, const RunIdentity& here) {
    return MessageOf<ConfigError>([&] {
      RequireSameRun(
          "run/checkpoint.h5", there, here,
          {.config = {}, .tokens = {}, .place = HowToGoOn(there, here)});
    });
  };
  EXPECT_EQ(refusal(gpu, gpu), kNoError);
  EXPECT_EQ(refusal(gpu, cpu),
            "run/checkpoint.h5: was trained with " + PlaceText(gpu) +
                ", this run uses instruction set v3: the bits would differ. "
                "Continue with --device=cuda on a machine with that device and "
                "those libraries");
  EXPECT_EQ(refusal(cpu, gpu),
            "run/checkpoint.h5: was trained with instruction set v3, this run "
            "uses " +
                PlaceText(gpu) +
                ": the bits would differ. Continue with --device=cpu --isa v3");
  RunIdentity newer = gpu;
  newer.libraries = "driver 13.1, CUDA runtime 13.0, cuBLASLt 13.1.0";
  EXPECT_EQ(refusal(gpu, newer),
            "run/checkpoint.h5: was trained with " + PlaceText(gpu) +
                ", this run uses " + PlaceText(newer) +
                ": the bits would differ. Continue on a machine with that "
                "device and those libraries");
}

TEST(RunIdentity, AnotherRunIsRefusedWithTheRemedyOfWhatDiffers) {
  EXPECT_NO_THROW(RequireSameRun("run/result.h5", Identity(), Identity(), {}));
  RunIdentity here = Identity();
  here.isa = "v4";
  EXPECT_EQ(Refusal<ConfigError>(here),
            "run/result.h5: was trained with instruction set v3, this run uses "
            "v4: the bits would differ. PLACE");
  here.tokens.data_sha256 = "0123456789abcdef" + Digest('4').substr(16);
  EXPECT_EQ(Refusal<DataError>(here),
            "run/result.h5: was trained on other token files: other tokens: "
            "SHA-256 1111111111111111... there, 0123456789abcdef... here. "
            "TOKENS");
  here.config.training.seed = 7;
  EXPECT_EQ(Refusal<ConfigError>(here),
            "run/result.h5: belongs to another configuration: training.seed is "
            "1234 there and 7 here. CONFIG");
}

TEST(ConfigTable, MarksWhatIsNotTheDefaultAndEndsWithTheHash) {
  Config config;
  config.training.steps = 77;
  config.router.tau = 1.2;
  const std::string table = ConfigTable(config);
  // Keys have up to 32 characters (training.balance_group_sequences).
  EXPECT_TRUE(
      Says(table, "\n* training.steps" + std::string(20, ' ') + "77\n"));
  EXPECT_NE(table.find("* router.tau "), std::string::npos) << table;
  EXPECT_NE(table.find("  model.num_layers "), std::string::npos) << table;
  EXPECT_TRUE(Says(table, "\n  config hash" + std::string(23, ' ') +
                              ConfigHash(config) + "   (* differs"));
  // Two marked rows and the legend.
  EXPECT_EQ(std::count(table.begin(), table.end(), '*'), 3) << table;
}

// Runs are found by their hash, and a changed file would have another one.
TEST(ConfigTable, TheFilesThatShipKeepTheirHashes) {
  for (const auto& [name, hash] :
       {std::pair("tiny", "f3962f23dfffedb1"), {"small", "ce359fcbccc24559"}}) {
    const std::filesystem::path path =
        RunfilePath(std::string("trainer/configs/") + name + ".toml");
    EXPECT_EQ(ConfigHash(LoadConfig(path, {}).config), hash) << name;
  }
}

}  // namespace
}  // namespace softmoe::trainer
