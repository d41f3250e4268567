// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/answer_bytes.h"

#include <algorithm>
#include <cstring>

#include "property_tests/verify/engine/report.h"

namespace softmoe::verify {
namespace {

constexpr uint64_t kMaxAnswerRank = 16;

// The largest size of a text in an answer: room for a sentence and the last
// words of a program.
constexpr size_t kMaxText = 8 << 10;

const Wanted* Find(const Request& request, const std::string& name) {
  const auto found = std::ranges::find(request.outputs, name, &Wanted::name);
  return found == request.outputs.end() ? nullptr : &*found;
}

Answer TakeAnswer(ByteReader& reader, const Request& request) {
  Answer answer;
  answer.unsupported = AsUtf8(reader.Text());
  answer.problem = AsUtf8(reader.Text());
  answer.output = AsUtf8(reader.Text());
  const uint64_t count = reader.Number();
  for (uint64_t i = 0; reader.ok() && i < count; ++i) {
    std::string name;
    Tensor tensor = reader.TakeTensor(&name);
    const Wanted* wanted = Find(request, name);
    if (wanted == nullptr || wanted->dtype != tensor.dtype ||
        wanted->shape != tensor.shape) {
      reader.Spoil();
    } else {
      answer.outputs[name] = std::move(tensor);
    }
  }
  return answer;
}

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
  ok_ = ok_ && dtype <= static_cast<uint64_t>(Dtype::kI32) &&
        rank <= kMaxAnswerRank;
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

std::string EncodeAnswers(std::span<const Answer> answers) {
  ByteWriter writer;
  for (const Answer& answer : answers) {
    for (const std::string& text :
         {answer.unsupported, answer.problem, answer.output}) {
      writer.PutText(std::string_view(text).substr(0, kMaxText));
    }
    writer.PutNumber(answer.outputs.size());
    for (const auto& [name, tensor] : answer.outputs) {
      writer.PutTensor(name, tensor);
    }
  }
  return writer.Take();
}

std::vector<Answer> DecodeAnswers(std::string_view bytes,
                                  std::span<const Request> requests) {
  ByteReader reader(bytes);
  std::vector<Answer> answers;
  for (const Request& request : requests) {
    Answer answer = TakeAnswer(reader, request);
    const bool last = answers.size() + 1 == requests.size();
    if (last && !reader.empty()) reader.Spoil();
    if (!reader.ok()) {
      answer = {};
      answer.problem =
          "the process that reads answers was corrupted and did not pass on a "
          "valid one";
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

int64_t MaxAnswerBytes(std::span<const Request> requests) {
  int64_t bytes = 0;
  for (const Request& request : requests) {
    bytes += OutputBytes(request) + static_cast<int64_t>(4 * kMaxText) +
             512 * static_cast<int64_t>(request.outputs.size());
  }
  return bytes;
}

}  // namespace softmoe::verify
