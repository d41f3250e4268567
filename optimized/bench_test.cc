// SPDX-License-Identifier: Apache-2.0
//
// The benchmark program lists what experiments/peers/README.md shows, runs it,
// and says what is wrong with a request. Speed is not tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/parallel_for.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"

namespace softmoe::optimized {
namespace {

ProgramResult RunBench(const std::string& arguments) {
  return RunTestProgram("optimized/bench", arguments);
}

// The program's report of the one benchmark of this name.
nlohmann::json RunOne(const std::string& name, const std::string& options) {
  const ProgramResult run =
      RunBench(options + " --benchmark_filter=^" + name +
               "/ --benchmark_min_time=0 --benchmark_format=json 2>/dev/null");
  EXPECT_TRUE(EndedWith(run, 0));
  nlohmann::json json = nlohmann::json::parse(run.output);
  EXPECT_EQ(json.at("benchmarks").size(), 1);
  return json;
}

constexpr char kMiniLabel[] =
    "layers=10 d_model=128 heads=4 d_ffn=256 experts=16 vocab=2048 length=128 "
    "sequences=16";

// How many benchmarks of `list` begin with `name`.
int Count(const std::string& list, const std::string& name) {
  return softmoe::Count(list, "\n" + name);
}

// With one thread, and with as many as the machine has, at most four.
TEST(Bench, ListsStepsProductsAndRouters) {
  const int threads = std::min(4, AvailableCores());
  const ProgramResult listed = RunBench("--benchmark_list_tests=true 2>&1");
  EXPECT_EQ(listed.exit_status, 0);
  const std::string list = "\n" + listed.output;
  for (const char* name :
       {"mini/sparse1/", "mini/soft_ae1/", "mini/soft_ae1.5/", "mini/soft_ae2/",
        "mini/soft_ae3/", "mini/soft_ae4/", "mini/sparse2/", "mini/sparse3/",
        "mini/sparse4/", "smoke/sparse1/", "smoke/sparse2/",
        "smoke/soft_fixed2/", "smoke/soft_learned2/", "midi/sparse1/",
        "midi/sparse2/", "midi/soft_fixed2/", "midi/soft_learned2/"}) {
    EXPECT_EQ(Count(list, name), 1) << name << " in\n" << list;
  }
  for (const std::string name :
       {"BM_FmaPeak/", "BM_ExpertForward/smoke/", "BM_ExpertForward/midi/",
        "BM_ExpertBackward/smoke/", "BM_ExpertBackward/midi/",
        "BM_RouterSoftForward/experts:32/k_tenths:20/",
        "BM_RouterSoftBackward/experts:32/k_tenths:20/",
        "BM_RouterSparseForward/"}) {
    for (const int count : {1, threads}) {
      EXPECT_EQ(Count(list, name + "threads:" + std::to_string(count) + "/"), 1)
          << name << " in\n"
          << list;
    }
    EXPECT_EQ(Count(list, name), threads == 1 ? 1 : 2) << name;
  }
  // compare.py asks for these.
  for (const char* experts : {"8", "16", "32"}) {
    EXPECT_EQ(
        Count(list, "BM_RouterSoftForward/experts:" + std::string(experts) +
                        "/k_tenths:20/threads:" + std::to_string(threads) +
                        "/"),
        1);
  }
  EXPECT_EQ(Count(list, "BM_Gemm/1024/1024/1024/" + std::to_string(threads)),
            1);
}

TEST(Bench, TimesWithOneThreadOnlyWhereThatIsAskedFor) {
  const ProgramResult list =
      RunBench("--threads=1 --benchmark_list_tests=true 2>&1");
  EXPECT_EQ(list.exit_status, 0);
  EXPECT_EQ(Count("\n" + list.output, "BM_FmaPeak/"), 1) << list.output;
  EXPECT_EQ(Count("\n" + list.output, "BM_Gemm/1024/1024/1024/1/"), 1);
  EXPECT_FALSE(Says(list.output, "threads:2"));
}

TEST(Bench, RunsATrainingStepAtTheSizeItNames) {
  const int threads = std::min(2, AvailableCores());
  const nlohmann::json json =
      RunOne("smoke/sparse2", "--isa=v3 --threads=" + std::to_string(threads));
  EXPECT_EQ(json.at("context").at("isa"), "v3");
  EXPECT_EQ(json.at("context").at("threads"), std::to_string(threads));
  EXPECT_EQ(json.at("context").at("cores"), std::to_string(AvailableCores()));
  EXPECT_NE(json.at("context").at("processor"), "");
  const auto& step = json.at("benchmarks").at(0);
  EXPECT_EQ(step.at("label"),
            "layers=4 d_model=64 heads=4 d_ffn=128 experts=8 vocab=1024 "
            "length=128 sequences=16");
  EXPECT_EQ(step.at("active_experts"), 2);
  EXPECT_EQ(step.at("threads"), threads);
  EXPECT_GT(step.at("tokens/s"), 0);
  EXPECT_GE(step.at("best_tokens/s"), step.at("tokens/s"));
}

// `grid record mini --bench` asks for this (experiments/run/bench_samples.h).
TEST(Bench, SoftRouterHasAsManyExpertsAsTheNameSays) {
  const nlohmann::json json = RunOne("mini/soft_ae1.5", "--threads=1");
  const auto& step = json.at("benchmarks").at(0);
  EXPECT_EQ(step.at("run_type"), "iteration");
  EXPECT_EQ(step.at("label"), kMiniLabel);
  // One of its 20,480 (token, layer) pairs more or less changes it by 0.00005.
  EXPECT_NEAR(step.at("active_experts"), 1.5, 0.001);
  EXPECT_GT(step.at("tokens/s"), 0);
}

// Two ranks beside two threads; what a rank sends is counted.
TEST(Bench, TimesTwoRanksBesideTwoThreads) {
  if (AvailableCores() < 2) {
    const ProgramResult list = RunBench("--benchmark_list_tests=true 2>&1");
    EXPECT_EQ(Count("\n" + list.output, "mini/ranks2/"), 0) << list.output;
    return;
  }
  const nlohmann::json json = RunOne("mini/ranks2/sparse1", "--threads=2");
  const auto& step = json.at("benchmarks").at(0);
  EXPECT_EQ(step.at("label"), kMiniLabel);
  EXPECT_GT(step.at("tokens/s"), 0);
  // The ratio is of the same medians, to a few roundings.
  const double ratio = step.at("ratio");
  const double threads = step.at("threads_tokens/s");
  EXPECT_NEAR(ratio, step.at("tokens/s").get<double>() / threads,
              1e-12 * ratio);
  // Half of 16.9 million gradients, and as many parameters.
  EXPECT_EQ(step.at("sent_bytes"), step.at("planned_bytes"));
  EXPECT_GT(step.at("sent_bytes"), 60e6);
}

TEST(Bench, CountsTheProductsAgainstThePeak) {
  const nlohmann::json json = RunOne("BM_ExpertForward/smoke/threads:1", "");
  const auto& product = json.at("benchmarks").at(0);
  EXPECT_GT(product.at("GFLOPS"), 0);
  EXPECT_GT(product.at("percent_of_peak"), 0);
}

// Medians on the simulated device, as `gpu_check` asks for them.
TEST(Bench, TimesOperationsAndStepsOnADevice) {
  const ProgramResult run = RunTestProgram(
      "optimized/bench_simulated",
      "--device=cuda --benchmark_filter='^(time/add|step/sparse2)/' "
      "--benchmark_min_time=0 --benchmark_repetitions=3 "
      "--benchmark_report_aggregates_only=true --benchmark_format=json "
      "2>/dev/null");
  ASSERT_TRUE(EndedWith(run, 0));
  std::map<std::string, nlohmann::json> found;
  const nlohmann::json report = nlohmann::json::parse(run.output);
  for (const auto& entry : report.at("benchmarks")) {
    if (entry.value("aggregate_name", "median") != "median") continue;
    found[entry.at("run_name")] = entry;
  }
  ASSERT_EQ(found.size(), 4u) << run.output;
  EXPECT_EQ(found.at("time/add/fp32/+=/256/real_time").at("bytes"), 12 * 256);
  EXPECT_EQ(found.at("time/add/bf16/+=/256/real_time").at("bytes"), 8 * 256);
  const auto& step =
      found.at("step/sparse2/bf16/iterations:1/repeats:1/real_time");
  EXPECT_EQ(step.at("label"), "none");
  EXPECT_EQ(step.at("sequences"), 4);
  EXPECT_EQ(step.at("active_experts"), 2);
  EXPECT_NEAR(step.at("loss"), std::log(24), 0.5);  // of a vocabulary of 24
  EXPECT_GT(step.at("memory_bytes"), 0);
}

// One thread; the test of the table has several.
TEST(Bench, ProfilesAStep) {
  const ProgramResult run =
      RunBench("--isa=v3 --threads=1 --profile=smoke/sparse2 2>&1");
  ASSERT_TRUE(EndedWith(run, 0, ", v3\nsmoke/sparse2: layers=4 d_model=64",
                        "\n1 thread ", "\nexperts, backward ", "\nAdamW ",
                        "\nthe step ", " tokens/s with 1 thread\npeaks: "));
}

TEST(Bench, RefusesWhatItDoesNotKnow) {
  const std::string cores = std::to_string(AvailableCores());
  const std::string too_many = std::to_string(AvailableCores() + 1);
  const struct {
    std::string arguments;
    std::string says;
  } cases[] = {
      {"--threads=many",
       "--threads=many: expected a number of threads, 1 to " + cores},
      {"--threads=0", "--threads=0: expected a number of threads"},
      {"--threads=" + too_many, "use at most " + cores},
      {"--profile=midi/sparse9",
       "--profile=midi/sparse9: unknown name; choose one of smoke/sparse1 "},
      {"--profile=smoke/sparse2 --device=cuda",
       "--profile: a profile is one of the CPU; leave out --device"},
      {"--device=tpu", "--device=tpu: known are cpu and cuda"},
      {"--isa=v9", "v9"},
      {"--benchmark_filter=^nothing$", "--benchmark_list_tests=true lists"},
      {"--speed=full", "--speed=full"},
      {"--benchmark_format=xml",
       "--benchmark_format=xml: known are console, json and csv"},
      {"--benchmark_out_format=", "--benchmark_out_format=: known are"},
  };
  for (const auto& [arguments, says] : cases) {
    const ProgramResult run = RunBench(arguments + " 2>&1");
    EXPECT_TRUE(EndedWith(run, 2, says)) << arguments;
  }
  EXPECT_TRUE(EndedWith(
      RunBench("--benchmark_out=/nowhere/x --benchmark_filter=BM_FmaPeak 2>&1"),
      5, "--benchmark_out=/nowhere/x: No such file or directory; name a file"));
}

}  // namespace
}  // namespace softmoe::optimized
