// SPDX-License-Identifier: Apache-2.0
//
// answer_bytes.h - answers as bytes, on their way to this program from a child
// process that handles what other people made.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_ANSWER_BYTES_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_ANSWER_BYTES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {

std::string EncodeAnswers(std::span<const Answer> answers);

// The answers to `requests`, in order, with outputs that fit the requests. At
// the first bytes that do not fit, that answer and all after it become a
// `problem`.
std::vector<Answer> DecodeAnswers(std::string_view bytes,
                                  std::span<const Request> requests);

// The most bytes that well-formed answers to `requests` take.
int64_t MaxAnswerBytes(std::span<const Request> requests);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_ANSWER_BYTES_H_
