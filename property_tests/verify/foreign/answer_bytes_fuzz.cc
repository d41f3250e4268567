// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as the answer of a child process, which may have been overrun
// by what it loaded. An accepted answer has the names, types and shapes that
// were asked for, and survives encoding and reading back.
#include "core/fuzzing/fuzz_support.h"
#include "property_tests/verify/foreign/answer_bytes.h"

namespace softmoe::fuzz {

using verify::Answer;
using verify::Dtype;
using verify::Request;

namespace {

std::vector<Request> TwoRequests() {
  Request first, second;
  first.c.op = second.c.op = "lapsum";
  first.outputs = {{.name = "a", .dtype = Dtype::kF32, .shape = {2, 3}},
                   {.name = "b", .dtype = Dtype::kI32, .shape = {}}};
  second.outputs = {{.name = "a", .dtype = Dtype::kF64, .shape = {0}},
                    {.name = "c", .dtype = Dtype::kBf16, .shape = {1}}};
  return {first, second};
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const std::vector<Request> requests = TwoRequests();
  const std::vector<Answer> answers = DecodeAnswers(input, requests);
  Require(answers.size() == requests.size(), "another number of answers");
  for (size_t i = 0; i < answers.size(); ++i) {
    for (const auto& [name, tensor] : answers[i].outputs) {
      bool wanted = false;
      for (const verify::Wanted& output : requests[i].outputs) {
        wanted =
            wanted || (output.name == name && output.dtype == tensor.dtype &&
                       output.shape == tensor.shape);
      }
      Require(wanted, name + " was not asked for like this");
      Require(verify::NumElements(tensor.shape) == tensor.size(),
              name + " has another size than its shape");
    }
  }
  const std::string bytes = EncodeAnswers(answers);
  Require(EncodeAnswers(verify::DecodeAnswers(bytes, requests)) == bytes,
          "reads back otherwise");
}

std::vector<std::string> Seeds() {
  std::vector<Answer> answers(2);
  answers[0].outputs["a"] =
      verify::FromVector<double>(Dtype::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  answers[0].outputs["b"] = verify::FromVector<double>(Dtype::kI32, {}, {7});
  answers[1].unsupported = "not offered";
  std::vector<std::string> seeds = {EncodeAnswers(answers)};
  answers[1] = {};
  answers[1].outputs["a"] = verify::Tensor(Dtype::kF64, {0});
  answers[0].outputs.clear();
  answers[0].problem = "it crashed";
  seeds.push_back(EncodeAnswers(answers));
  return seeds;
}

}  // namespace softmoe::fuzz
