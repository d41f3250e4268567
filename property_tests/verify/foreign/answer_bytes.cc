// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/answer_bytes.h"

#include <algorithm>

#include "property_tests/verify/foreign/byte_stream.h"

namespace softmoe::verify {
namespace {

// The largest size of a text in an answer: a sentence, and a program's last
// words.
constexpr size_t kMaxText = 8 << 10;

const Wanted* Find(const Request& request, const std::string& name) {
  const auto found = std::ranges::find(request.outputs, name, &Wanted::name);
  return found == request.outputs.end() ? nullptr : &*found;
}

Answer TakeAnswer(ByteReader& reader, const Request& request) {
  Answer answer;
  answer.unsupported = reader.Text();
  answer.problem = reader.Text();
  answer.output = reader.Text();
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
          "the process that read the answer was overrun, and did not pass on "
          "a valid one";
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
