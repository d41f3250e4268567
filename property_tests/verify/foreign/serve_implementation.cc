// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/serve_implementation.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "core/errors.h"
#include "core/files/temporary_folder.h"
#include "property_tests/verify/foreign/case_file.h"
#include "property_tests/verify/foreign/limits.h"
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
    return "";  // its answer says so
  }
  int batch() const override { return batch_; }

  // Writes every case, preceded by its earlier call, into one file, so that a
  // program which keeps state between cases has the chance to show it.
  void Prepare(const Operation& op, const std::vector<Case>& cases) override {
    std::vector<Request> requests;
    std::vector<Case> asked;  // the cases that the requests are for
    int64_t bytes = 0;
    for (const Case& c : cases) {
      if (Holds(c) || bytes > kMaxBatchBytes) continue;
      const Case other = OtherData(c);
      requests.push_back(requests_.Make(op, other, op.Inputs(other)));
      requests.push_back(requests_.Make(op, c, InputsOf(op, c)));
      bytes += InputBytes(requests.back()) + OutputBytes(requests.back());
      asked.push_back(c);
      asked.push_back(c);
    }
    if (requests.empty()) return;
    try {
      std::vector<Answer> answers = Ask(requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        Hold(asked[i], std::move(requests[i].inputs), std::move(answers[i]));
      }
    } catch (const RunFailure& failure) {
      // In a file of many cases, run each alone to find out which one failed;
      // write no more files of many, in case they always fail.
      if (requests.size() == 2) {
        Answer failed;
        failed.problem = failure.what();
        Hold(asked[0], std::move(requests[0].inputs), std::move(failed));
      } else if (++lost_batches_ == kMaxLostBatches) {
        batch_ = 1;
      }
    }
  }

  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    for (auto held = held_.begin(); held != held_.end(); ++held) {
      if (held->asked != c || held->inputs != inputs) continue;
      Answer answer = std::move(held->answer);
      held_.erase(held);
      return TakeOutputs(std::move(answer));
    }
    return TakeOutputs(Ask({requests_.Make(op, c, inputs)}).front());
  }

 private:
  // An answer that Run has yet to ask for.
  struct Held {
    Case asked;
    TensorMap inputs;
    Answer answer;
  };
  static constexpr int kMaxLostBatches = 3;
  static constexpr size_t kMaxHeld = 4 * kBatch;

  // The case and the one before it.
  bool Holds(const Case& c) {
    if (std::ranges::count(held_, c, &Held::asked) == 2) return true;
    std::erase_if(held_, [&](const Held& held) { return held.asked == c; });
    return false;
  }

  void Hold(const Case& asked, TensorMap inputs, Answer answer) {
    held_.push_back({asked, std::move(inputs), std::move(answer)});
    // Cases that were announced but not yet asked for.
    while (held_.size() > kMaxHeld) held_.pop_front();
  }

  std::vector<Answer> Ask(const std::vector<Request>& requests) {
    const fs::path cases = folder_.path() / "cases.h5";
    const fs::path outputs = folder_.path() / "outputs.h5";
    std::error_code ignored;
    // Never take the answer to an earlier call.
    fs::remove_all(outputs, ignored);
    WriteCaseFile(cases, requests);
    program_.Call(cases, outputs, CallSeconds());
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
