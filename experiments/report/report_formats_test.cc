// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/testing/message_test_util.h"

namespace softmoe::experiments {
namespace {

using Texts = std::vector<std::string>;

ReportPage ExamplePage() {
  const EvaluationTable table{
      "T1: a & b", "A|caption", {"row", "loss"}, {{"x|y, \"z\"", "1.5 ± 0.1"}}};
  Figure figure{"Loss", "Of a_b.", {{"loss_0", "step", "nat/token", {}}}};
  figure.plots[0].series = {{"s", {1, 2}, {0.1, std::nan("")}, {0, 0}, {1, 1}}};
  return {"Grid *g*",
          "A grid",
          {{"Results",
            {{Paragraph{"Not <b>.", true}},
             {TextList{{"one", "two"}}},
             {table},
             {Verbatim{"grid run g"}, "The command"},
             {figure}}},
           {"T1: a & b", {{table, "Folded"}}}}};
}

TEST(Markdown, HasEveryPartWithoutItsMarkup) {
  const std::string text =
      MarkdownOf(ExamplePage(), {{{"loss_0", "<svg></svg>"}}, ""});
  EXPECT_TRUE(Says(text, "# Grid \\*g\\*\n", "\n## Results\n",
                   "> Not \\<b\\>.\n", "- one\n- two\n",
                   "### T1: a & b\n\nA\\|caption\n\n| row | loss |\n|-|-|\n"
                   "| x\\|y, \"z\" | 1.5 ± 0.1 |\n",
                   "The command:\n\n```\ngrid run g\n```\n",
                   "(plots/loss_0.svg)", "**Loss.** Of a\\_b.\n"));
}

// There are no dead links.
TEST(Markdown, NamesThePointsOfWhatWasNotDrawn) {
  const std::string text = MarkdownOf(ExamplePage(), {{}, "no gnuplot"});
  EXPECT_TRUE(Says(text, "A grid\n\nNo plots: no gnuplot\n\n",
                   "**Loss.** Of a\\_b. Points: plots/loss\\_0.csv.\n"));
  EXPECT_FALSE(Says(text, ".svg"));
}

TEST(Json, HasTheTextsOfTheTablesAndTheNumbersOfTheFigures) {
  const auto json = nlohmann::json::parse(JsonOf(ExamplePage()));
  EXPECT_EQ(json["title"], "Grid *g*");
  ASSERT_EQ(json["tables"].size(), 2u);
  EXPECT_EQ(json["tables"][0]["id"], "t1_a_b");
  EXPECT_EQ(json["tables"][1]["id"], "t1_a_b_2");
  EXPECT_EQ(json["tables"][0]["rows"][0][1], "1.5 ± 0.1");
  const auto& series = json["figures"][0]["plots"][0]["series"][0];
  EXPECT_EQ(series["y"][0], 0.1);
  EXPECT_TRUE(series["y"][1].is_null());
  EXPECT_EQ(series["high"][1], 1);
}

// The problem of a run may name paths, which may hold any bytes.
TEST(Json, HasTheRestOfATextThatIsNotUtf8) {
  ReportPage page = ExamplePage();
  page.subtitle = "caf\xE9/result.h5: damaged";
  EXPECT_EQ(nlohmann::json::parse(JsonOf(page))["subtitle"],
            "caf\uFFFD/result.h5: damaged");
}

TEST(Csv, HasAFileForEveryTable) {
  const auto files = CsvTablesOf(ExamplePage());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files.at("t1_a_b"), "row,loss\n\"x|y, \"\"z\"\"\",1.5 ± 0.1\n");
}

}  // namespace
}  // namespace softmoe::experiments
