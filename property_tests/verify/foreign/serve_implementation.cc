// SPDX-License-Identifier: Apache-2.0
//
// "serve:PATH": sends files of cases to somebody's program (program.h) and
// returns its answers.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/temporary_folder.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/foreign/case_file.h"
#include "property_tests/verify/foreign/foreign_implementations.h"
#include "property_tests/verify/foreign/output_file.h"
#include "property_tests/verify/foreign/program.h"
#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

constexpr int kBatch = 64;
constexpr int64_t kMaxBatchBytes = 64 << 20;

int64_t InputBytes(const Request& request) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : request.inputs) bytes += 8 * tensor.size();
  return bytes;
}

class ServeImplementation : public Implementation {
 public:
  explicit ServeImplementation(const std::string& argument)
      : name_("serve:" + argument), program_(CheckedPath("serve", argument)) {
    if (::access(CheckedPath("serve", argument).c_str(), X_OK) != 0) {
      throw ConfigError("impl " + name_ +
                        ": the file is not executable; chmod +x it");
    }
  }

  std::string name() const override { return name_; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    (void)op, (void)dtype;
    return "";  // the answer tells
  }
  int batch() const override { return batch_; }
  bool Holds(const Case& c) const override {
    const int64_t calls = IsCheckedAfterAnother(c) ? 2 : 1;
    return std::ranges::count(held_, c, &Held::asked) == calls;
  }

  // Writes all cases into one file, each after its earlier call if it has one,
  // so that a program that keeps state between cases can show it.
  void Prepare(const Operation& op, const std::vector<Case>& cases) override {
    std::vector<Request> requests;
    std::vector<Case> asked;  // the cases that the requests are for
    int64_t bytes = 0, num_cases = 0;
    const auto add = [&](const Case& c, const Case& data) {
      requests.push_back(requests_.Make(op, data, InputsOf(op, data)));
      bytes += InputBytes(requests.back()) + OutputBytes(requests.back());
      asked.push_back(c);
    };
    for (const Case& c : cases) {
      if (Holds(c) || bytes > kMaxBatchBytes) continue;
      DropLeftOver(c);
      if (IsCheckedAfterAnother(c)) add(c, OtherData(c));
      add(c, c);
      ++num_cases;
    }
    if (requests.empty()) return;
    try {
      std::vector<Answer> answers = Ask(requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        Hold(asked[i], std::move(requests[i].inputs), std::move(answers[i]));
      }
    } catch (const RunFailure& failure) {
      // If a file of many cases is lost, each runs alone to find out which one
      // failed; such files are given up if too many are lost.
      if (num_cases == 1) {
        Answer failed;
        failed.problem = failure.what();
        Hold(asked[0], std::move(requests[0].inputs), std::move(failed));
        return;
      }
      fmt::print(stderr,
                 "verify: {}: a file of {} cases failed; running each case on "
                 "its own: {}\n",
                 name_, num_cases, failure.what());
      if (++lost_batches_ == kMaxLostBatches) batch_ = 1;
    }
  }

  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    program_.CheckEnd();
    for (auto held = held_.begin(); held != held_.end(); ++held) {
      if (held->asked != c || held->inputs != inputs) continue;
      Answer answer = std::move(held->answer);
      held_.erase(held);
      return TakeOutputs(std::move(answer));
    }
    return TakeOutputs(Ask({requests_.Make(op, c, inputs)}).front());
  }
  void Finish() override {
    program_.Finish();
    program_.CheckEnd();
  }

 private:
  // An answer that Run has yet to ask for.
  struct Held {
    Case asked;
    TensorMap inputs;
    Answer answer;
  };
  static constexpr int kMaxLostBatches = 3;

  // Drops the answers to this case that nobody has asked for.
  void DropLeftOver(const Case& c) {
    std::erase_if(held_, [&](const Held& held) { return held.asked == c; });
  }

  void Hold(const Case& asked, TensorMap inputs, Answer answer) {
    held_.push_back({asked, std::move(inputs), std::move(answer)});
    // Room for cases that were announced but not yet asked for, at most two
    // requests each of a batch of every operation, and for as many answers that
    // will never be asked for.
    while (held_.size() > 4 * kBatch * Operations().size()) held_.pop_front();
  }

  std::vector<Answer> Ask(const std::vector<Request>& requests) {
    const fs::path cases = folder_.path() / "cases.h5";
    const fs::path outputs = folder_.path() / "outputs.h5";
    std::error_code ignored;
    // The answer to an earlier call must never be taken for this one.
    fs::remove_all(outputs, ignored);
    WriteCaseFile(cases, requests);
    program_.Call(cases, outputs, requests.size());
    OutputFile answer = ReadOutputFile(outputs, requests);
    if (!answer.problem.empty()) throw RunFailure(answer.problem);
    return std::move(answer.answers);
  }

  std::string name_;
  PrivateFolder folder_;
  Program program_;
  Requests requests_;
  std::deque<Held> held_;
  int batch_ = kBatch, lost_batches_ = 0;
};

}  // namespace

std::unique_ptr<Implementation> MakeServeImplementation(
    const std::string& path) {
  return std::make_unique<ServeImplementation>(path);
}

}  // namespace softmoe::verify
