// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/lib_implementation.h"

#include <map>
#include <utility>

#include "core/errors.h"
#include "property_tests/verify/foreign/answer_bytes.h"
#include "property_tests/verify/foreign/lib_calls.h"
#include "property_tests/verify/foreign/lib_worker.h"
#include "property_tests/verify/foreign/limits.h"
#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {
namespace {

// The largest message that does not answer a call: the text of dlerror.
constexpr int64_t kMaxText = 64 << 10;

class LibImplementation : public Implementation {
 public:
  explicit LibImplementation(const std::string& argument)
      : name_("lib:" + argument), worker_(CheckedPath("lib", argument)) {
    std::string defect;
    try {
      defect = worker_.Ask(LoadMessage(), kMaxText, CallSeconds());
    } catch (const RunFailure& failure) {
      defect = std::string("while it was loaded, ") + failure.what();
    }
    if (!defect.empty()) throw ConfigError("impl " + name_ + ": " + defect);
  }

  std::string name() const override { return name_; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    const auto key = std::make_pair(op.name(), dtype);
    auto found = supported_.find(key);
    if (found == supported_.end()) {
      bool offered = false;
      try {
        offered = worker_.Ask(SupportsMessage(op.name(), dtype), kMaxText,
                              CallSeconds()) == "1";
      } catch (const RunFailure&) {
        offered = true;  // let a case show the problem
      }
      found = supported_.emplace(key, offered).first;
    }
    return found->second ? ""
                         : std::string("the library does not offer it in ") +
                               DtypeName(dtype);
  }

  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    const Request request = requests_.Make(op, c, inputs);
    const std::span<const Request> one(&request, 1);
    const std::string bytes =
        worker_.Ask(CallMessage(request), MaxAnswerBytes(one), CallSeconds());
    return TakeOutputs(DecodeAnswers(bytes, one).front());
  }

 private:
  std::string name_;
  mutable LibWorker worker_;
  mutable std::map<std::pair<std::string, Dtype>, bool> supported_;
  Requests requests_;
};

}  // namespace

std::unique_ptr<Implementation> MakeLibImplementation(const std::string& path) {
  return std::make_unique<LibImplementation>(path);
}

}  // namespace softmoe::verify
