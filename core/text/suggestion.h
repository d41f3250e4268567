// SPDX-License-Identifier: Apache-2.0
//
// suggestion.h - what a user who mistyped a name probably meant, and which
// names there are.
#ifndef SOFTMOE_CORE_TEXT_SUGGESTION_H_
#define SOFTMOE_CORE_TEXT_SUGGESTION_H_

#include <string>
#include <vector>

namespace softmoe {

// "did you mean 'expansion_factor'?", or "" if none of `known` is near.
std::string DidYouMean(const std::string& unknown,
                       const std::vector<std::string>& known);

// Returns the same or, if none is near, "known are 'a', 'b' and 'c'".
std::string Suggestion(const std::string& unknown,
                       const std::vector<std::string>& known);

// "'a', 'b' and 'c'", with `last` "and".
std::string Listed(const std::vector<std::string>& names, const char* last);

// Returns the least number of insertions, deletions, replacements and swaps of
// neighbors that turn `a` into `b` (optimal string alignment).
int EditDistance(const std::string& a, const std::string& b);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_SUGGESTION_H_
