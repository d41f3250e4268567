// SPDX-License-Identifier: Apache-2.0
//
// utf8_test_util.h - any character as UTF-8.
#ifndef SOFTMOE_CORE_TESTING_UTF8_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_UTF8_TEST_UTIL_H_

#include <cstdint>
#include <string>

namespace softmoe {

// The bytes of the code point `code`, below 0x110000. A surrogate, which UTF-8
// does not have, gets three bytes as its neighbours do.
inline std::string Utf8(uint32_t code) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  std::string text;
  if (code < 0x800) {
    text = {byte(0xC0 | code >> 6)};
  } else if (code < 0x10000) {
    text = {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F))};
  } else {
    text = {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)),
            byte(0x80 | (code >> 6 & 0x3F))};
  }
  return text + byte(0x80 | (code & 0x3F));
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_UTF8_TEST_UTIL_H_
