// SPDX-License-Identifier: Apache-2.0
#include "core/text/suggestion.h"

#include <gtest/gtest.h>

namespace softmoe {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("form", "from"), 1);  // swap of neighbours
  EXPECT_EQ(EditDistance("steps", "step"), 1);
}

TEST(Suggestion, FindsTyposPartsAndOtherSpellings) {
  const std::vector<std::string> known = {"kind", "expansion_factor", "tau",
                                          "temperature_end"};
  EXPECT_EQ(Suggestion("expansion", known), "did you mean 'expansion_factor'?");
  EXPECT_EQ(Suggestion("expansoin_factor", known),
            "did you mean 'expansion_factor'?");
  EXPECT_EQ(Suggestion("Temperature-End", known),
            "did you mean 'temperature_end'?");
  EXPECT_EQ(Suggestion("tua", known), "did you mean 'tau'?");
}

TEST(Suggestion, ListsWhatThereIsWhenNothingIsNear) {
  EXPECT_EQ(Suggestion("qqqqqq", {"kind", "tau", "noise"}),
            "known are 'kind', 'tau' and 'noise'");
  EXPECT_EQ(DidYouMean("qqqqqq", {"kind", "tau", "noise"}), "");
}

TEST(Listed, PutsTheWordBeforeTheLast) {
  EXPECT_EQ(Listed({}, "or"), "");
  EXPECT_EQ(Listed({"a"}, "or"), "'a'");
  EXPECT_EQ(Listed({"a", "b"}, "or"), "'a' or 'b'");
  EXPECT_EQ(Listed({"a", "b", "c"}, "and"), "'a', 'b' and 'c'");
}

}  // namespace
}  // namespace softmoe
