// SPDX-License-Identifier: Apache-2.0
//
// GRIDS.md agrees with the code: its example loads, and it knows every key. The
// same goes for METRICS.md and the columns of runs.csv.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/config_fields.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/grid_file.h"
#include "experiments/report/run_columns.h"

namespace softmoe::experiments {
namespace {

std::string Doc() { return ReadWholeFile(RunfilePath("experiments/GRIDS.md")); }

// The text between `begin` and the next `end`.
std::string Between(const std::string& text, const std::string& begin,
                    const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const size_t start = from + begin.size();
  return text.substr(start, text.find(end, start) - start);
}

Grid Load(const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(std::getenv("TEST_TMPDIR")) / "doc.toml";
  WriteFileAtomically(path, text);
  return LoadGrid(path, {});
}

TEST(GridsDoc, ExampleLoads) {
  const Grid grid = Load(Between(Doc(), "```toml\n", "```"));
  EXPECT_EQ(grid.name, "jitter");
  EXPECT_EQ(grid.runs.size(), 6u);
}

TEST(GridsDoc, KnowsEveryKeyOfAConfiguration) {
  const std::string keys = Between(Doc(), "### `[config.SECTION]`", "\n## ");
  ASSERT_FALSE(keys.empty());
  std::string section;
  int count = 0;
  const auto check = [&](const std::string& name, const std::string& key,
                         const auto&, const AllowedRange&) {
    const std::string row = Between(keys, "\n| `" + name + "` |", "\n");
    EXPECT_TRUE(Says(row, "`" + key + "`")) << name << key;
    ++count;
  };
  const Config config;
  VisitConfig(config, check);
  const RuntimeConfig runtime;
  VisitRuntime(runtime, check);
  EXPECT_GT(count, 40);
}

// The reader knows exactly the keys listed in the tables of [grid],
// [[corpora]], ...: an unknown key is refused with the list of known ones.
TEST(GridsDoc, KnowsEveryKeyOfAGrid) {
  const std::string example = Between(Doc(), "```toml\n", "```");
  for (const char* table : {"[grid]", "[[corpora]]", "[[rows]]", "[cluster]",
                            "[evaluations]", "[experiments.tau]"}) {
    std::string heading = table;
    if (heading == "[experiments.tau]") heading = "[experiments.NAME]";
    const std::string section =
        Between(Doc(), "### `" + heading + "`", "\n### ");
    ASSERT_FALSE(section.empty()) << table;
    std::string documented;
    for (size_t at = section.find("\n| `"); at != std::string::npos;
         at = section.find("\n| `", at + 1)) {
      documented += "'" + Between(section.substr(at), "| `", "`") + "' ";
    }
    std::string text = example;
    const size_t at = text.find(table);
    const std::string wrong = std::string(table) + "\nzzzzzzzz = 1\n";
    text = at == std::string::npos
               ? wrong + text
               : text.replace(at, std::string(table).size() + 1, wrong);
    const std::string refusal = MessageOf<ConfigError>([&] { Load(text); });
    // "...; known are 'a', 'b' and 'c'"
    const std::string list = refusal.substr(refusal.find("known are"));
    size_t known = 0;
    for (size_t quote = list.find('\''); quote != std::string::npos; ++known) {
      const size_t end = list.find('\'', quote + 1);
      const std::string key = list.substr(quote, end + 1 - quote);
      EXPECT_TRUE(Says(documented, key)) << table;
      quote = list.find('\'', end + 1);
    }
    EXPECT_EQ(static_cast<size_t>(
                  std::count(documented.begin(), documented.end(), '\'')) /
                  2,
              known)
        << table << ": " << documented << "\n"
        << refusal;
  }
}

TEST(MetricsDoc, HasTheColumnsOfRunsCsv) {
  std::string table = "| column | title | unit | what |\n|-|-|-|-|\n";
  for (const RunColumn& column : RunColumns()) {
    const trainer::Metric& metric = column.metric;
    table += fmt::format("| `{}` | {} | {} | {} |\n", metric.name, metric.title,
                         metric.unit, metric.definition);
  }
  const std::string doc = ReadWholeFile(RunfilePath("trainer/METRICS.md"));
  EXPECT_TRUE(Says(doc, "\n\n" + table + "\n")) << table;
}

}  // namespace
}  // namespace softmoe::experiments
