// SPDX-License-Identifier: Apache-2.0
//
// request.h - a request to someone else's program for one case, and the answer.
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

// An output that the program must give.
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
  std::string output;       // the output that the problem concerns, or ""
};

// Makes requests. The reference gives the shapes of the outputs, once per
// operation and set of sizes; they are then remembered.
class Requests {
 public:
  Request Make(const Operation& op, const Case& c, const TensorMap& inputs);

 private:
  std::map<std::string, std::vector<Wanted>> outputs_;
};

// Returns the outputs. If there are none, throws RunUnsupported or RunFailure
// (implementation.h).
TensorMap TakeOutputs(Answer answer);

// The number of bytes of the outputs, as doubles.
int64_t OutputBytes(const Request& request);

// Returns the path in an implementation's name (after serve:, lib: or
// recorded:), which must exist and be free of characters that a REPRO line
// cannot hold (white space, quotes, '#'). `family` is for the message. Throws
// ConfigError, or EnvironmentError if the file does not exist.
std::string CheckedPath(const std::string& family, const std::string& argument);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_REQUEST_H_
