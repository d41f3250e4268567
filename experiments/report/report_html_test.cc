// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_html.h"

#include <gtest/gtest.h>

#include <string>

#include "core/testing/message_test_util.h"

namespace softmoe::experiments {
namespace {

std::string HtmlOfItem(ReportItem item) {
  return HtmlOf({"<title>", "a & b", {{"Part", {std::move(item)}}}}, {});
}

TEST(HtmlText, TablesAlignNumbersAndEscape) {
  const std::string html = HtmlOfItem(
      {EvaluationTable{"A table",
                       "A <caption>",
                       {"name", "loss"},
                       {{"a<b", "1.5"}, {"", "2.5 ± 0.1"}, {"c", ""}}}});
  EXPECT_TRUE(Says(html, "<p class=\"caption\">A &lt;caption&gt;</p>",
                   "<h3>A table</h3>", "<th scope=\"col\">name</th>",
                   "<th scope=\"col\" class=\"number\">loss</th>",
                   "<tr><td>a&lt;b</td><td class=\"number\">1.5</td></tr>",
                   "<tr class=\"more\"><td></td>"
                   "<td class=\"number short\">2.5 ± 0.1</td></tr>"));
}

TEST(HtmlText, VerdictsHaveTheirColours) {
  const std::string html = HtmlOfItem(
      {EvaluationTable{"A table",
                       "",
                       {"verdict"},
                       {{"PASS"}, {"FAIL: Loss; else PASS"}, {"PASSING"}}}});
  EXPECT_TRUE(Says(html, "<td class=\"pass\">PASS</td>",
                   "<td class=\"fail short\">FAIL: Loss; else PASS</td>",
                   "<td>PASSING</td>"));
}

TEST(HtmlText, PagesLoadNothing) {
  const std::string page = HtmlOfItem({Paragraph{"x", true}, "a & b"});
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
  EXPECT_TRUE(Says(page, "<title>SoftMoE &lt;title&gt;</title>",
                   "<h1>&lt;title&gt;</h1>", "<summary>a &amp; b</summary>",
                   "<div class=\"box\"><p>x</p>"));
  for (const char* loads :
       {"http:", "https:", "<script", "<link", "src=", "@import", "url("}) {
    EXPECT_FALSE(Says(page, loads)) << loads;
  }
}

TEST(HtmlText, WithoutDrawingsFiguresHaveTheirCaptions) {
  const ReportPage page = {
      "t",
      "",
      {{"Part",
        {{Figure{"Loss, <x>", "A caption.", {{"loss_0", "x", "y", {}}}}}}}}};
  EXPECT_TRUE(Says(HtmlOf(page, {{}, "no gnuplot"}), "No plots: no gnuplot",
                   "<b>Loss, &lt;x&gt;.</b> A caption. Points: "
                   "plots/loss_0.csv."));
  EXPECT_TRUE(Says(HtmlOf(page, {{{"loss_0", "<svg></svg>"}}, ""}),
                   "<div><svg></svg></div>"));
}

}  // namespace
}  // namespace softmoe::experiments
