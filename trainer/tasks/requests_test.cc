// SPDX-License-Identifier: Apache-2.0
//
// The harness's own cuts, by a tokenizer whose pieces cross spaces, are in
// property_tests/tasks_oracle_test.cc; here are bounds, and what it aborts on.
#include "trainer/tasks/requests.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kEnd = 1;

// A token for each byte, but one for each ": ".
Ids Encode(std::string_view text) {
  Ids ids;
  while (!text.empty()) {
    const bool pair = text.starts_with(": ");
    ids.push_back(pair ? 300 : static_cast<uint8_t>(text[0]));
    text.remove_prefix(pair ? 2 : 1);
  }
  return ids;
}

RequestTokens Tokenize(std::string_view context, std::string_view continuation,
                       int64_t window = 100) {
  return TokenizeRequest(context, continuation, Encode, kEnd, window);
}

TEST(Request, BeginsWithTheEndOfADocumentWhereThereIsNoContext) {
  EXPECT_EQ(Tokenize("", " b").ids, (Ids{kEnd, ' ', 'b'}));
  EXPECT_EQ(Tokenize("", " b").scored, 2);
  EXPECT_EQ(Tokenize(" ", " b").ids, (Ids{kEnd, ' ', ' ', 'b'}));
  EXPECT_EQ(Tokenize(" ", " b").scored, 3);
  // An end of document that is there is not put there again.
  EXPECT_EQ(Tokenize("", "\x01z").ids, (Ids{kEnd, 'z'}));
  EXPECT_EQ(Tokenize("", "\x01z").scored, 1);
}

TEST(Request, MustHaveATokenOfItsOwn) {
  EXPECT_TRUE(Says(MessageOf<DataError>([] { Tokenize("a:", " "); }),
                   "no token of its own"));
  // Nothing but an end of document.
  EXPECT_THROW(Tokenize("", "\x01"), DataError);
}

RC_GTEST_PROP(Request, HasTheContextsTokensAndTheRestOfTheWhole, ()) {
  const auto text = rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("ab: \n")));
  const std::string context = *text, continuation = *text + "x";
  const int64_t window = *rc::gen::inRange<int64_t>(1, 20);
  const RequestTokens request = Tokenize(context, continuation, window);
  const std::string stripped =
      context.substr(0, context.find_last_not_of(" \n") + 1);  // npos + 1 is 0
  Ids expected = stripped.empty() ? Ids{kEnd} : Encode(stripped);
  const Ids whole = Encode(context + continuation);
  const size_t cut = stripped.empty() ? 0 : expected.size();
  const auto scored = static_cast<int64_t>(whole.size() - cut);
  expected.insert(expected.end(), whole.begin() + cut, whole.end());
  const auto size = static_cast<int64_t>(request.ids.size());
  RC_ASSERT(size ==
            std::min(static_cast<int64_t>(expected.size()), window + 1));
  RC_ASSERT(
      std::equal(request.ids.rbegin(), request.ids.rend(), expected.rbegin()));
  RC_ASSERT(request.scored == std::min(scored, window));
  RC_ASSERT(request.context_cut ==
            (size < static_cast<int64_t>(expected.size())));
  RC_ASSERT(request.continuation_cut == (scored > window));
}

TEST(RequestLines, HaveAChoiceEach) {
  TaskItems task{.name = "piqa", .file = {}, .sha256 = {}, .items = {}};
  task.items.push_back({"c\n", {"é", " "}, 1, {}});
  EXPECT_EQ(RequestLines(task),
            "{\"task\":\"piqa\",\"doc_id\":0,\"idx\":0,\"context\":\"c\\n\","
            "\"continuation\":\" é\",\"gold\":1}\n"
            "{\"task\":\"piqa\",\"doc_id\":0,\"idx\":1,\"context\":\"c\\n\","
            "\"continuation\":\"  \",\"gold\":1}\n");
}

}  // namespace
}  // namespace softmoe::trainer
