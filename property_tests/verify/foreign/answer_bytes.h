// SPDX-License-Identifier: Apache-2.0
//
// answer_bytes.h - answers as bytes: from a child of our own that touches what
// others made, to this program.
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

// The answers to `requests`, in order; what they hold fits what was wanted.
// Bytes that are anything else make a `problem` of the answer that they are
// found in and of all behind it.
std::vector<Answer> DecodeAnswers(std::string_view bytes,
                                  std::span<const Request> requests);

// The most bytes that honest answers to `requests` take.
int64_t MaxAnswerBytes(std::span<const Request> requests);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_ANSWER_BYTES_H_
