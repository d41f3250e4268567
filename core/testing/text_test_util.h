// SPDX-License-Identifier: Apache-2.0
//
// text_test_util.h - what tests expect of texts: a part of them, or all of one,
// kept in a file that can be renewed.
#ifndef SOFTMOE_CORE_TESTING_TEXT_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_TEXT_TEST_UTIL_H_

#include <string>

namespace softmoe {

// Expects `part` somewhere in `text`.
void ExpectHas(const std::string& text, const std::string& part);

// Expects `text` to be the content of a file of this repository, given by its
// path from the root ("golden/verdict/testdata/verdicts.txt") and among the
// test's data; a failure shows the lines that differ, as `diff -u` does.
//
// With SOFTMOE_RENEW=1 in the environment of `./bazelw run ROOM:test`, the file
// is written instead, among the sources: CONTRIBUTING.md.
void ExpectFileEquals(const std::string& path, const std::string& text);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_TEXT_TEST_UTIL_H_
