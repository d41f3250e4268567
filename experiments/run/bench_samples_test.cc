// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/bench_samples.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/benchmark_sizes.h"
#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::experiments {
namespace {

using Json = nlohmann::json;

std::string LabelOf(const std::string& size) {
  for (const BenchmarkSize& each : kBenchmarkSizes) {
    if (each.name == size) return each.Label();
  }
  return "";
}

// One line of Google Benchmark's JSON, with our counters; the speeds are made
// up.
Json Sample(const std::string& name, double active_experts, double speed) {
  return {{"name", name + "/real_time"},
          {"family_index", 0},
          {"per_family_instance_index", 0},
          {"run_name", name + "/real_time"},
          {"run_type", "iteration"},
          {"repetitions", 2},
          {"repetition_index", 0},
          {"threads", 2},
          {"iterations", 3},
          {"real_time", 300.0},
          {"cpu_time", 299.0},
          {"time_unit", "ms"},
          {"active_experts", active_experts},
          {"best_tokens/s", speed * 1.1},
          {"tokens/s", speed},
          {"label", LabelOf("mini")}};
}

Json ExampleBench() {
  Json json = {{"context", {{"isa", "v3"}, {"cores", "2"}}},
               {"benchmarks", Json::array()}};
  const auto add = [&](const std::string& name, double active, double speed) {
    json["benchmarks"].push_back(Sample(name, active, speed));
    json["benchmarks"].push_back(Sample(name, active, speed + 1));
    Json mean = Sample(name, active, speed + 0.5);
    mean["name"] = name + "/real_time_mean";
    mean["run_type"] = "aggregate";
    json["benchmarks"].push_back(mean);
  };
  add("mini/sparse1", 1, 9000);
  add("mini/soft_fixed2", 2.3, 5000);
  add("mini/soft_ae2", 2.001, 6000);
  add("mini/sparse4", 4, 4000);
  add("mini/random1.5", 1.4999, 8000);
  add("mini/sparse2", 2, 7000);
  add("mini/sparse3", 3, 5500);
  return json;
}

std::string Refusal(const std::string& text) {
  return MessageOf<DataError>([&] { ParseBenchSamples(text, "bench.json"); });
}

TEST(ParseBenchSamples, TakesTheRepetitionsOfEachNumberOfExperts) {
  const auto samples = ParseBenchSamples(ExampleBench().dump(2), "bench.json");
  ASSERT_EQ(samples.size(), 6u);
  const double experts[] = {1, 1.5, 2, 2, 3, 4};
  const double speeds[] = {9000, 8000, 6000, 7000, 5500, 4000};
  // The older name "random1.5" is a soft router, too.
  const char* const routers[] = {"sparse", "soft",   "soft",
                                 "sparse", "sparse", "sparse"};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(samples[i].active_experts, experts[i]);
    EXPECT_EQ(samples[i].router, routers[i]);
    EXPECT_EQ(samples[i].tokens_per_second,
              (std::vector<double>{speeds[i], speeds[i] + 1}));
  }
}

TEST(ParseBenchSamples, RefusesWhatIsNotOfTheMiniGrid) {
  const auto changed = [](const std::function<void(Json&)>& change) {
    Json json = ExampleBench();
    change(json["benchmarks"][0]);
    return json.dump();
  };
  const struct {
    std::string text;
    std::string says;
  } kCases[] = {
      {"", "not JSON from //:bench"},
      {ExampleBench().dump().substr(0, 500), "not JSON from //:bench"},
      {"{}", "not JSON from //:bench"},
      {R"({"benchmarks": []})", "has no benchmark mini/soft_ae1"},
      {changed([](Json& each) { each["label"] = LabelOf("smoke"); }),
       "mini/sparse1/real_time has the sizes layers=4"},
      {changed([](Json& each) { each["active_experts"] = 1.1; }),
       "mini/sparse1/real_time has 1.1 active experts"},
      {changed([](Json& each) { each["tokens/s"] = 0; }),
       "mini/sparse1/real_time has 0 tokens/s"},
      {changed([](Json& each) { each["tokens/s"] = -5.5; }),
       "mini/sparse1/real_time has -5.5 tokens/s"},
      {changed([](Json& each) { each.erase("tokens/s"); }), "tokens/s"},
      {changed([](Json& each) { each["tokens/s"] = "fast"; }),
       "not JSON from //:bench"}};
  for (const auto& [text, says] : kCases) {
    const std::string refusal = Refusal(text);
    EXPECT_TRUE(
        Says(refusal, "bench.json: ", says, "--benchmark_filter='^mini/"));
  }
  // Benchmarks with other sizes and kinds are ignored.
  const std::string other = changed([](Json& each) {
    each["name"] = "midi/sparse1/real_time";
    each["label"] = LabelOf("midi");
  });
  EXPECT_EQ(ParseBenchSamples(other, "b")[0].tokens_per_second,
            std::vector<double>{9001});
}

}  // namespace
}  // namespace softmoe::experiments
