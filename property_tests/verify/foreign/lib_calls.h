// SPDX-License-Identifier: Apache-2.0
//
// lib_calls.h - how the process with the library handles a message: it loads
// the library, asks whether it offers an operation, calls it between canaries.
//
// Loading a library linked with -ffast-math makes the processor flush subnormal
// numbers. That must hold for calls of the library only: what we read and write
// must stay exact, so each side has its own floating-point mode.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_CALLS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_CALLS_H_

#include <cfenv>
#include <string>

#include "property_tests/verify/foreign/request.h"
#include "property_tests/verify/foreign/softmoe_verify_abi.h"

namespace softmoe::verify {

// The messages that our side sends, with the answers of Serve:
std::string LoadMessage();  // "", or why it cannot be used
std::string SupportsMessage(const std::string& op, Dtype dtype);  // "1" or "0"
std::string CallMessage(const Request& request);  // EncodeAnswers of one

class LibCalls {
 public:
  explicit LibCalls(std::string path) : path_(std::move(path)) {
    std::fegetenv(&its_mode_);
  }
  std::string Serve(const std::string& message);

 private:
  std::string Load();
  Answer Call(const Request& request,
              const std::vector<std::pair<std::string, std::string>>& words,
              const std::string& text);

  std::string path_;
  std::fenv_t its_mode_;
  void* library_ = nullptr;
  decltype(&softmoe_verify_supports) supports_ = nullptr;
  decltype(&softmoe_verify_run) run_ = nullptr;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_CALLS_H_
