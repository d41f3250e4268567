// SPDX-License-Identifier: Apache-2.0
//
// "recorded:VECTORS,OUTPUTS": the outputs that somebody's framework computed
// for a file of conformance vectors.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "property_tests/verify/foreign/foreign_implementations.h"
#include "property_tests/verify/foreign/output_file.h"
#include "property_tests/verify/foreign/request.h"
#include "property_tests/verify/foreign/vectors.h"

namespace softmoe::verify {
namespace {

class RecordedImplementation : public Implementation {
 public:
  explicit RecordedImplementation(const std::string& argument)
      : name_("recorded:" + argument) {
    const size_t comma = argument.find(',');
    if (comma == std::string::npos) {
      throw ConfigError("impl " + name_ +
                        " must read recorded:VECTORS.h5,OUTPUTS.h5");
    }
    const std::string vectors =
        CheckedPath("recorded", argument.substr(0, comma));
    const std::string outputs =
        CheckedPath("recorded", argument.substr(comma + 1));
    Requests requests;
    for (const VectorCase& each : ReadVectors(vectors)) {
      index_of_.emplace(AnyImplementation(each.c), requests_.size());
      requests_.push_back(
          requests.Make(FindOperation(each.c.op), each.c, each.inputs));
    }
    OutputFile file = ReadOutputFile(outputs, requests_);
    if (!file.problem.empty()) throw DataError(outputs + ": " + file.problem);
    answers_ = std::move(file.answers);
  }

  std::string name() const override { return name_; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    (void)op, (void)dtype;
    return "";
  }
  bool remembers() const override { return false; }

  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)op, (void)schedule;
    // Inputs alone do not identify a case: a cap, say, is a parameter.
    const auto found = index_of_.find(AnyImplementation(c));
    if (found != index_of_.end() && requests_[found->second].inputs == inputs) {
      return TakeOutputs(answers_[found->second]);
    }
    throw RunFailure(
        "the vectors have no such case; recorded outputs cover only the cases "
        "in the file");
  }

 private:
  // The text of the case, without the implementation that runs it.
  static std::string AnyImplementation(Case c) {
    c.impl.clear();
    return CaseText(c);
  }

  std::string name_;
  std::vector<Request> requests_;
  std::map<std::string, size_t> index_of_;  // into both vectors
  std::vector<Answer> answers_;
};

}  // namespace

std::unique_ptr<Implementation> MakeRecordedImplementation(
    const std::string& paths) {
  return std::make_unique<RecordedImplementation>(paths);
}

}  // namespace softmoe::verify
