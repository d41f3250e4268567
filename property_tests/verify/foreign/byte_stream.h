// SPDX-License-Identifier: Apache-2.0
//
// byte_stream.h - numbers, texts and tensors as bytes, between this program and
// its child processes.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_BYTE_STREAM_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_BYTE_STREAM_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "property_tests/verify/engine/tensor.h"

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

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_BYTE_STREAM_H_
