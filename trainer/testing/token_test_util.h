// SPDX-License-Identifier: Apache-2.0
//
// token_test_util.h - token files of given ids, without a corpus.
#ifndef SOFTMOE_TRAINER_TESTING_TOKEN_TEST_UTIL_H_
#define SOFTMOE_TRAINER_TESTING_TOKEN_TEST_UTIL_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace softmoe::trainer {

// Writes PREFIX.bin and PREFIX.idx of documents, one sequence each. Returns
// what WriteTokenIndex returns.
std::string WriteTokenFiles(const std::filesystem::path& prefix,
                            int64_t vocab_size,
                            const std::vector<std::vector<int32_t>>& documents);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TESTING_TOKEN_TEST_UTIL_H_
