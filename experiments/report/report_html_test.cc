// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_html.h"

#include <gtest/gtest.h>

namespace softmoe::experiments {
namespace {

TEST(HtmlText, TablesAlignNumbersAndEscape) {
  const std::string html =
      HtmlTable("A <caption>", {"name", "loss"},
                {{{"a<b", "fail"}, {"1.5"}}, {{"c"}, {""}}});
  EXPECT_NE(html.find("<caption>A &lt;caption&gt;</caption>"),
            std::string::npos);
  EXPECT_NE(html.find("<th scope=\"col\">name</th>"), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"col\" class=\"number\">loss</th>"),
            std::string::npos);
  EXPECT_NE(html.find("<td class=\"fail\">a&lt;b</td>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"number\">1.5</td>"), std::string::npos);
}

TEST(HtmlText, PagesLoadNothing) {
  const std::string page = HtmlPage("<title>", Details("a & b", "<p>x</p>"));
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
  EXPECT_NE(page.find("<title>&lt;title&gt;</title>"), std::string::npos);
  EXPECT_NE(page.find("<summary>a &amp; b</summary>"), std::string::npos);
  for (const char* loads :
       {"http:", "https:", "<script", "<link", "src=", "@import", "url("}) {
    EXPECT_EQ(page.find(loads), std::string::npos) << loads;
  }
}

}  // namespace
}  // namespace softmoe::experiments
