// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/byte_stream.h"

#include <cstring>

namespace softmoe::verify {
namespace {

constexpr uint64_t kMaxRank = 16;

}  // namespace

void ByteWriter::PutNumber(uint64_t number) {
  bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void ByteWriter::PutText(std::string_view text) {
  PutNumber(text.size());
  bytes_ += text;
}

void ByteWriter::PutTensor(std::string_view name, const Tensor& tensor) {
  PutText(name);
  PutNumber(static_cast<uint64_t>(tensor.dtype));
  PutNumber(tensor.shape.size());
  for (const int64_t size : tensor.shape) {
    PutNumber(static_cast<uint64_t>(size));
  }
  bytes_.append(reinterpret_cast<const char*>(tensor.values.data()),
                tensor.values.size() * sizeof(double));
}

std::string_view ByteReader::Bytes(uint64_t count) {
  if (!ok_ || count > rest_.size()) {
    ok_ = false;
    return {};
  }
  const std::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return bytes;
}

uint64_t ByteReader::Number() {
  uint64_t number = 0;
  const std::string_view bytes = Bytes(sizeof number);
  if (ok_) std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::string ByteReader::Text() { return std::string(Bytes(Number())); }

Tensor ByteReader::TakeTensor(std::string* name) {
  *name = Text();
  Tensor tensor;
  const uint64_t dtype = Number(), rank = Number();
  ok_ = ok_ && dtype <= static_cast<uint64_t>(Dtype::kI32) && rank <= kMaxRank;
  if (!ok_) return {};
  tensor.dtype = static_cast<Dtype>(dtype);
  uint64_t elements = 1;
  for (uint64_t d = 0; d < rank; ++d) {
    const uint64_t size = Number();
    tensor.shape.push_back(static_cast<int64_t>(size));
    const uint64_t room = rest_.size() / sizeof(double);
    if (size != 0 && elements > room / size) ok_ = false;
    elements *= size;
  }
  const std::string_view values = Bytes(elements * sizeof(double));
  if (!ok_) return {};
  tensor.values.resize(elements);
  if (!values.empty()) {  // memcpy must not be given a null pointer
    std::memcpy(tensor.values.data(), values.data(), values.size());
  }
  return tensor;
}

}  // namespace softmoe::verify
