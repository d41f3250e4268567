// SPDX-License-Identifier: Apache-2.0
//
// request.h - what is asked of somebody else's program for one case, and what
// it answers.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_REQUEST_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_REQUEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

// An output as it is to be given.
struct Wanted {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  bool optional = false;
};

struct Request {
  Case c;
  TensorMap inputs;
  std::vector<Wanted> outputs;
};

// One case's outputs, or why there are none.
struct Answer {
  TensorMap outputs;
  std::string unsupported;  // its own words; "" where it offers the operation
  std::string problem;      // one sentence; "" for an answer that can be judged
  std::string output;       // that the problem is about; "" for none
};

// The request for `inputs`. Shapes come from the reference once per operation
// and set of sizes, and are remembered.
class Requests {
 public:
  Request Make(const Operation& op, const Case& c, const TensorMap& inputs);

 private:
  std::map<std::string, std::vector<Wanted>> outputs_;
};

// The outputs. Throws what implementation.h has for the rest: RunUnsupported,
// or RunFailure.
TensorMap TakeOutputs(Answer answer);

// Bytes of the outputs, as doubles.
int64_t OutputBytes(const Request& request);

// The path behind "exec:", checked: there, and free of what a REPRO line cannot
// hold (white space, '#'). `family` is for the message. Throws ConfigError, or
// EnvironmentError if nothing is there.
std::string CheckedPath(const std::string& family, const std::string& told);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_REQUEST_H_
