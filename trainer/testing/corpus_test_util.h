// SPDX-License-Identifier: Apache-2.0
//
// corpus_test_util.h - a little English of our own making for tests.
#ifndef SOFTMOE_TRAINER_TESTING_CORPUS_TEST_UTIL_H_
#define SOFTMOE_TRAINER_TESTING_CORPUS_TEST_UTIL_H_

#include <cstdint>
#include <string>
#include <vector>

namespace softmoe::trainer {

// `count` documents of one to six sentences from a small grammar; the same
// ones for the same arguments. Words are distributed unevenly, as in real text.
std::vector<std::string> TestDocuments(int64_t count, uint64_t seed = 1);

// The documents as a text file for `path:FILE`, a blank line after each.
std::string TestText(const std::vector<std::string>& documents);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TESTING_CORPUS_TEST_UTIL_H_
