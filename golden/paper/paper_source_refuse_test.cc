// SPDX-License-Identifier: Apache-2.0
//
// Sources of the paper's goldens that do not fit together are refused, with the
// place in the message.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "golden/paper/paper_source.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

fs::path CopyOfSources(const std::string& name) {
  const fs::path folder = FreshFolder(name);
  for (const auto& entry : fs::directory_iterator(
           RunfilePath("golden/paper/paper.toml").parent_path())) {
    if (entry.path().extension() != ".toml") continue;
    WriteFileAtomically(folder / entry.path().filename(),
                        ReadWholeFile(entry.path()));
  }
  return folder;
}

void ExpectSourceRefused(const std::string& name, const std::string& file,
                         const std::string& from, const std::string& to,
                         const std::string& message) {
  const fs::path folder = CopyOfSources("source_" + name);
  std::string text = ReadWholeFile(folder / file);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << name;
  text.replace(at, from.size(), to);
  WriteFileAtomically(folder / file, text);
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { BuildPaper(folder); }), message))
      << name;
}

TEST(BuildPaper, RefusesSourcesThatDoNotFitTogether) {
  ExpectSourceRefused("verdict", "claims.toml", "\"REFUTED\"", "\"HOLDS\"",
                      "'published' says HOLDS of star_lower_loss.6, but the "
                      "numbers give REFUTED: c4/softmoe_star/k2/a2:val_loss < "
                      "c4/sparse/k4:val_loss");
  ExpectSourceRefused("unknown_key", "paper.toml", "lane = \"exact\"",
                      "lame = \"exact\"",
                      "unknown key 'lame'; did you mean "
                      "'lane'?");
  ExpectSourceRefused("number", "main_results.toml", "107.74", "1O7.74",
                      "main_results.toml:4:3: '1O7.74' in column "
                      "'active_param_M' is not a number");
  ExpectSourceRefused("digits", "main_results.toml", "107.74",
                      "107.740000000000000",
                      "is not a number of at most 14 characters");
  ExpectSourceRefused(
      "not_a_text", "main_results.toml", "\"107.74\"", "107.74",
      "main_results.toml:3:8: 'rows' must be an array of arrays of strings");
  ExpectSourceRefused("short_row", "jitter.toml", ", \"2.99\"", "",
                      "jitter.toml:5:3: 5 cells, but there are 6 columns");
  ExpectSourceRefused("long_row", "jitter.toml", "\"2.99\"", "\"2.99\", \"3\"",
                      "jitter.toml:5:3: 7 cells, but there are 6 columns");
  ExpectSourceRefused("absent_column", "jitter.toml", "\"loss\"", "\"lass\"",
                      "jitter.toml:3:8: no column 'loss'; did you mean "
                      "'lass'?");
  ExpectSourceRefused("key_of_a_table", "jitter.toml",
                      "rows = ", "lines = 3\nrows = ", "unknown key 'lines'");
  ExpectSourceRefused("no_rows", "jitter.toml", "rows = [",
                      "rows = []\nold_rows = [", "'rows' is empty");
  ExpectSourceRefused("note_place", "notes.toml", "\"main_results/arc_e\"",
                      "\"main_results/arc_c\"",
                      "'main_results/arc_c', which "
                      "is not here");
  ExpectSourceRefused("column", "paper.toml", "\"arc_e\", \"val_loss\"]",
                      "\"arc_d\", \"val_loss\"]", "'columns' names 'arc_d'");
  ExpectSourceRefused("pattern", "paper.toml", "rows = [\"*/tau1.3\"]",
                      "rows = [\"*/tau1.4\"]",
                      "'rows' matches no row: */tau1.4");
  ExpectSourceRefused(
      "exception", "paper.toml", "row = \"unstated/sparse/k2/jitter0.05\"",
      "row = \"unstated/sparse/k2/jitter0.06\"",
      "'exceptions' names no cell: unstated/sparse/k2/jitter0.06 piqa");
  ExpectSourceRefused("margin", "paper.toml", "margin = 0.03\n", "",
                      "val_loss@margin' is missing");
  // As 32 bits: 2.
  ExpectSourceRefused("decimals", "paper.toml", "decimals = 1\n",
                      "decimals = 4294967298\n",
                      "@decimals' is 1000; use 0 to 12");
  ExpectSourceRefused("negative", "paper.toml", "decimals = 1\n",
                      "decimals = -5\n", "@decimals' is -1; use 0 to 12");
}

// Otherwise a misspelt margin, rounding or note would be silently lost.
TEST(BuildPaper, RefusesUnknownKeysInEveryTable) {
  const struct {
    const char *file, *from, *to;
  } kTables[] = {
      {"paper.toml", "[names]", "odd = 1\n[names]"},
      {"paper.toml", "[columns.val_loss]", "[columns.val_loss]\nodd = 1"},
      {"paper.toml", "[tables.own_columns.tau]",
       "[tables.own_columns.tau]\nodd = 1"},
      {"paper.toml", "[[tables]]", "[[tables]]\nodd = 1"},
      {"paper.toml", "row = \"unstated/sparse/k2/jitter0.05\"",
       "odd = 1, row = \"unstated/sparse/k2/jitter0.05\""},
      {"paper.toml", "[[fields]]", "[[fields]]\nodd = 1"},
      {"claims.toml", "[[claims]]", "odd = 1\n[[claims]]"},
      {"claims.toml", "[[claims]]", "[[claims]]\nodd = 1"},
      {"notes.toml", "[[notes]]", "odd = 1\n[[notes]]"},
      {"notes.toml", "[[notes]]", "[[notes]]\nodd = 1"}};
  for (const auto& [file, from, to] : kTables) {
    ExpectSourceRefused("odd", file, from, to, "unknown key 'odd'");
  }
}

TEST(BuildPaper, RefusesClaimsAndColumnsThatSayNothing) {
  ExpectSourceRefused("three_sides", "claims.toml",
                      "[\"owt/softmoe_star/k1/a4:val_loss\", "
                      "\"owt/sparse/k4:val_loss\"]",
                      "[\"owt/softmoe_star/k1/a4:val_loss\", "
                      "\"owt/sparse/k4:val_loss\", \"3\"]",
                      "'pairs' must be pairs [LEFT, RIGHT]");
  ExpectSourceRefused("too_few", "claims.toml", "\"HOLDS\",\n", "",
                      "'published' has 5 verdicts for 6 pairs");
  ExpectSourceRefused("quantifier", "claims.toml", "of_cases = \"every\"",
                      "of_cases = \"all\"",
                      "'of_cases' is 'all', but 'every' or 'most' is needed");
  ExpectSourceRefused("no_quantifier", "claims.toml", "of_cases = \"every\"\n",
                      "", "of_cases");
  ExpectSourceRefused("most", "claims.toml", "published_most = \"HOLDS\"",
                      "published_most = \"REFUTED\"",
                      "'published_most' says REFUTED of soft_piqa_not_lower, "
                      "but its pairs give HOLDS");
  ExpectSourceRefused("no_most", "claims.toml", "published_most = \"HOLDS\"\n",
                      "", "published_most");
  ExpectSourceRefused("not_most", "claims.toml", "of_cases = \"most\"",
                      "of_cases = \"every\"", "unknown key 'published_most'");
  ExpectSourceRefused("exact", "paper.toml", "exact = \"all\"",
                      "exact = \"every\"",
                      "'exact' must be 'all' or 'integers'");
}

}  // namespace
}  // namespace softmoe::golden
