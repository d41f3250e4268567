// SPDX-License-Identifier: Apache-2.0
//
// answer_bytes.h - answers as bytes, on their way to this program from a child
// process that handles other people's files or libraries; and the numbers,
// texts and tensors in these and other messages.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_ANSWER_BYTES_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_ANSWER_BYTES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {

class ByteWriter {
 public:
  void PutNumber(uint64_t number);
  void PutText(std::string_view text);
  void PutTensor(std::string_view name, const Tensor& tensor);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what a ByteWriter wrote, and trusts nothing, because the child may have
// been overrun by what it loaded. ok() becomes false, and stays false, at the
// first thing that does not fit; from then on values are empty. Never takes
// more memory than the bytes it was given.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint64_t Number();
  std::string Text();
  Tensor TakeTensor(std::string* name);

  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }
  void Spoil() { ok_ = false; }

 private:
  std::string_view Bytes(uint64_t count);

  std::string_view rest_;
  bool ok_ = true;
};

std::string EncodeAnswers(std::span<const Answer> answers);

// The answers to `requests`, in order, with outputs that fit the requests. At
// the first bytes that do not fit, that answer and all after it become a
// `problem`.
std::vector<Answer> DecodeAnswers(std::string_view bytes,
                                  std::span<const Request> requests);

// The largest size in bytes of well-formed answers to `requests`.
int64_t MaxAnswerBytes(std::span<const Request> requests);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_ANSWER_BYTES_H_
