// SPDX-License-Identifier: Apache-2.0
//
// The benchmark program lists what README promises, runs it, and says what it
// was asked wrongly. How fast anything is, is not tested.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/program_test_util.h"

namespace softmoe::optimized {
namespace {

ProgramOutput RunBench(const std::string& arguments) {
  return RunTestProgram("optimized/bench", arguments);
}

TEST(Bench, ListsStepsProductsAndRouters) {
  const ProgramOutput list = RunBench("--benchmark_list_tests=true 2>&1");
  EXPECT_EQ(list.exit_code, 0);
  for (const char* name :
       {"smoke/sparse1/", "smoke/sparse2/", "smoke/soft_fixed2/",
        "smoke/soft_learned2/", "midi/sparse1/", "midi/sparse2/",
        "midi/soft_fixed2/", "midi/soft_learned2/", "BM_FmaPeak/threads:4/",
        "BM_ExpertForward/smoke/threads:4/", "BM_ExpertForward/midi/threads:4/",
        "BM_ExpertBackward/smoke/threads:4/",
        "BM_ExpertBackward/midi/threads:4/",
        "BM_RouterSoftForward/experts:8/k_tenths:20/threads:4/",
        "BM_RouterSoftBackward/experts:16/k_tenths:20/threads:4/",
        "BM_RouterSparseForward/threads:4/"}) {
    EXPECT_NE(("\n" + list.text).find("\n" + std::string(name)),
              std::string::npos)
        << name << " in\n"
        << list.text;
  }
}

TEST(Bench, RunsATrainingStepAtTheSizeItNames) {
  const ProgramOutput run = RunBench(
      "--threads=2 --isa=v3 --benchmark_filter=^smoke/sparse2/ "
      "--benchmark_min_time=0 --benchmark_format=json 2>/dev/null");
  ASSERT_EQ(run.exit_code, 0) << run.text;
  const auto json = nlohmann::json::parse(run.text);
  EXPECT_EQ(json.at("context").at("isa"), "v3");
  EXPECT_EQ(json.at("context").at("threads"), "2");
  EXPECT_NE(json.at("context").at("processor"), "");
  ASSERT_EQ(json.at("benchmarks").size(), 1);
  const auto& step = json.at("benchmarks")[0];
  EXPECT_EQ(step.at("label"),
            "layers=4 d_model=64 heads=4 d_ffn=128 experts=8 vocab=1024 "
            "length=128 sequences=16");
  EXPECT_EQ(step.at("active_experts"), 2);
  EXPECT_EQ(step.at("threads"), 2);
  EXPECT_GT(step.at("tokens/s"), 0);
  EXPECT_GE(step.at("best_tokens/s"), step.at("tokens/s"));
}

TEST(Bench, CountsTheProductsAgainstThePeak) {
  const ProgramOutput run = RunBench(
      "--benchmark_filter=^BM_ExpertForward/smoke/threads:1/ "
      "--benchmark_min_time=0 --benchmark_format=json 2>/dev/null");
  ASSERT_EQ(run.exit_code, 0) << run.text;
  const auto json = nlohmann::json::parse(run.text);
  ASSERT_EQ(json.at("benchmarks").size(), 1);
  const auto& product = json.at("benchmarks")[0];
  EXPECT_GT(product.at("GFLOPS"), 0);
  EXPECT_GT(product.at("percent_of_peak"), 0);
}

TEST(Bench, RefusesWhatItDoesNotKnow) {
  const struct {
    const char* arguments;
    const char* says;
  } cases[] = {
      {"--threads=many", "--threads=many: expected a number of threads"},
      {"--isa=v9", "v9"},
      {"--benchmark_filter=^nothing$", "--benchmark_list_tests=true lists"},
      {"--speed=full", "--speed=full"},
  };
  for (const auto& [arguments, says] : cases) {
    const ProgramOutput run = RunBench(std::string(arguments) + " 2>&1");
    EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.text;
    EXPECT_NE(run.text.find(says), std::string::npos) << run.text;
  }
}

}  // namespace
}  // namespace softmoe::optimized
