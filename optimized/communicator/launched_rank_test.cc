// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/launched_rank.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/errors.h"
#include "core/testing/file_test_util.h"

namespace softmoe::optimized {
namespace {

using Variables = std::map<std::string, std::string>;

Lookup In(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

LaunchedRank RankIn(const Variables& variables) {
  return RankFromEnvironment(In(variables));
}

template <typename Work>
std::string MessageOf(const Work& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

void ExpectRefused(const Variables& variables, const std::string& message) {
  const std::string text = MessageOf([&] { RankIn(variables); });
  EXPECT_NE(text.find(message), std::string::npos) << text;
}

const Variables kThirdOfFour = {{"RANK", "2"},
                                {"WORLD_SIZE", "4"},
                                {"LOCAL_RANK", "1"},
                                {"MASTER_ADDR", "10.0.0.7"},
                                {"MASTER_PORT", "29500"}};

// `variables` with another value of `name`.
Variables With(Variables variables, const std::string& name,
               const std::string& value) {
  variables[name] = value;
  return variables;
}
Variables Without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(RankFromEnvironment, ReadsWhatTorchrunSets) {
  const LaunchedRank launched = RankIn(kThirdOfFour);
  EXPECT_EQ(launched.rank, 2);
  EXPECT_EQ(launched.size, 4);
  EXPECT_EQ(launched.local_rank, 1);
  EXPECT_EQ(launched.address, "10.0.0.7");
  EXPECT_EQ(launched.port, 29500);
  EXPECT_EQ(RankIn(Without(kThirdOfFour, "LOCAL_RANK")).local_rank, 0);
}

TEST(RankFromEnvironment, NamesTheVariableThatIsMissingOrWrong) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    ExpectRefused(Without(kThirdOfFour, name),
                  std::string("variable ") + name + " is not set");
    ExpectRefused(With(kThirdOfFour, name, ""),
                  std::string("variable ") + name + " is not set");
  }
  for (const char* value : {"-1", "two", "2x", " 2", "99999999999", "1.0"}) {
    ExpectRefused(With(kThirdOfFour, "RANK", value),
                  std::string("RANK=") + value + ": not a number");
  }
  ExpectRefused(With(kThirdOfFour, "WORLD_SIZE", "0"), "WORLD_SIZE=0");
  ExpectRefused(With(kThirdOfFour, "WORLD_SIZE", "2"),
                "RANK=2 with WORLD_SIZE=2");
  ExpectRefused(With(kThirdOfFour, "LOCAL_RANK", "4"), "LOCAL_RANK=4");
  ExpectRefused(With(kThirdOfFour, "MASTER_PORT", "65536"),
                "MASTER_PORT=65536: not a number from 1 to 65535");
}

TEST(RankFromEnvironment, OnlyRankZeroMayTakeAFreePort) {
  const Variables free = With(kThirdOfFour, "MASTER_PORT", "0");
  ExpectRefused(free, "MASTER_PORT=0");
  EXPECT_EQ(RankIn(With(free, "RANK", "0")).port, 0);
}

const Variables kInSlurm = {{"SLURM_PROCID", "5"},
                            {"SLURM_NTASKS", "20"},
                            {"SLURM_LOCALID", "5"},
                            {"SLURM_JOB_ID", "4711"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_JOB_NODELIST", "login,node[01-03]"},
                            {"SLURM_STEP_NODELIST", "node[01-03,07]"},
                            {"SLURM_LAUNCH_NODE_IPADDR", "10.1.2.3"}};

TEST(RankFromEnvironment, ReadsWhatSrunSets) {
  const LaunchedRank launched = RankIn(kInSlurm);
  EXPECT_EQ(launched.rank, 5);
  EXPECT_EQ(launched.size, 20);
  EXPECT_EQ(launched.local_rank, 5);
  EXPECT_EQ(launched.address, "node01");
  EXPECT_EQ(launched.port, 20000 + 4711 * 7 % 10000);
  EXPECT_EQ(RankIn(With(kInSlurm, "SLURM_STEP_ID", "3")).port,
            launched.port + 3);

  const Variables whole_job = Without(kInSlurm, "SLURM_STEP_NODELIST");
  EXPECT_EQ(RankIn(whole_job).address, "login");
  EXPECT_EQ(RankIn(Without(whole_job, "SLURM_JOB_NODELIST")).address,
            "10.1.2.3");
  ExpectRefused(Without(kInSlurm, "SLURM_NTASKS"), "SLURM_NTASKS is not set");
}

TEST(RankFromEnvironment, WhatTheUserSetsCountsMoreThanSlurm) {
  Variables both = With(kInSlurm, "MASTER_ADDR", "here");
  both["MASTER_PORT"] = "1234";
  EXPECT_EQ(RankIn(both).rank, 5);
  EXPECT_EQ(RankIn(both).address, "here");
  EXPECT_EQ(RankIn(both).port, 1234);
  both.insert(kThirdOfFour.begin(), kThirdOfFour.end());
  EXPECT_EQ(RankIn(both).rank, 2);
}

TEST(FirstNode, IsTheFirstOfASlurmList) {
  EXPECT_EQ(FirstNode("node7"), "node7");
  EXPECT_EQ(FirstNode("a,b"), "a");
  EXPECT_EQ(FirstNode("gpu[007-012]"), "gpu007");
  EXPECT_EQ(FirstNode("gpu[3,5-9],cpu1"), "gpu3");
  EXPECT_EQ(FirstNode("rack2-n[4]"), "rack2-n4");
  EXPECT_EQ(FirstNode(""), "");
}

const std::string kSecret = "0123456789abcdef";

std::string SecretIn(const Variables& variables) {
  return SecretFromEnvironment(In(variables));
}

TEST(SecretFromEnvironment, IsTheVariableOrTheFirstLineOfAFile) {
  EXPECT_EQ(SecretIn({{"SOFTMOE_RANKS_SECRET", kSecret}}), kSecret);
  const auto file = FreshFolder("secret") / "secret";
  std::ofstream(file) << kSecret << "\nmore\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read |
                                         std::filesystem::perms::owner_write);
  EXPECT_EQ(SecretIn({{"SOFTMOE_RANKS_SECRET_FILE", file}}), kSecret);
}

TEST(SecretFromEnvironment, MustBeThereLongAndHiddenFromOthers) {
  const auto refused = [](const Variables& variables,
                          const std::string& message) {
    const std::string text = MessageOf([&] { SecretIn(variables); });
    EXPECT_NE(text.find(message), std::string::npos) << text;
  };
  refused({}, "needs a secret");
  refused({{"SOFTMOE_RANKS_SECRET", kSecret.substr(1)}}, "15 characters");
  const auto file = FreshFolder("open_secret") / "secret";
  std::ofstream(file) << kSecret;
  using std::filesystem::perms;
  for (const perms others : {perms::group_read, perms::others_read,
                             perms::group_write, perms::others_write}) {
    std::filesystem::permissions(
        file, perms::owner_read | perms::owner_write | others);
    refused({{"SOFTMOE_RANKS_SECRET_FILE", file}}, "chmod 600");
  }
  EXPECT_THROW(SecretIn({{"SOFTMOE_RANKS_SECRET_FILE", "/no/such/file"}}),
               EnvironmentError);
}

}  // namespace
}  // namespace softmoe::optimized
