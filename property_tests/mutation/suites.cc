// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/suites.h"

#include <map>
#include <set>

namespace softmoe::mutation {
namespace {

// Test files that are programs of their own.
const std::set<std::string>& Programs() {
  static const std::set<std::string> programs = {
      "optimized/simulated_exchange_test",
      "optimized/simulated_ranks_test",
      "property_tests/verify/kernels_property_test",
      "trainer/run/simulated_device_test",
  };
  return programs;
}

// Of files whose tests take long: those that are enough.
const std::map<std::string, std::string>& Filters() {
  static const std::map<std::string, std::string> filters = {
      {"optimized/simulated_ranks_test",
       "*ToTheBits*:*ReadInBf16*:*TakeTheMemory*:*WhileTheyCompute*"},
      {"property_tests/model_property_test", "*ModelAgainstReference*"},
      {"property_tests/verify/kernels_property_test",
       "*RoundsAtBf16*:SameSource*"},
      {"trainer/run/resume_test", "*GoesOnFromAnOlderCheckpoint*"},
      {"trainer/run/simulated_device_test", "*Bf16*:*IsInterrupted*"},
  };
  return filters;
}

// `words`: "OP", or "OP " and fill=F, bf16, double or edges.
Suite Verify(const std::string& name, const std::string& words) {
  const size_t space = words.find(' ');
  const std::string op = words.substr(0, space);
  const std::string rest = space == words.npos ? "" : words.substr(space + 1);
  Suite suite = {
      name, "property_tests/verify/verify", {"run", "op=" + op, "--no-shrink"}};
  std::vector<std::string>& arguments = suite.arguments;
  if (rest == "bf16") {
    arguments.push_back("impl=shim:bf16");
  } else if (rest == "double") {
    arguments.push_back("impl=cpu:double");
  } else {
    arguments.insert(arguments.end(), {"impl=cpu:v3", "impl=shim"});
    if (!rest.empty()) arguments.push_back(rest == "edges" ? "--edges" : rest);
  }
  // Of rare cases, more.
  const std::string cases = rest == "edges"                   ? "12"
                            : !rest.empty() && op == "lapsum" ? "400"
                            : op == "lapsum"                  ? "100"
                            : op == "router"                  ? "200"
                                                              : "60";
  arguments.push_back("--cases=" + cases);
  return suite;
}

}  // namespace

Suite SuiteOf(const std::string& name) {
  constexpr char kVerify[] = "verify ";
  if (name.starts_with(kVerify)) {
    return Verify(name, name.substr(sizeof(kVerify) - 1));
  }
  if (name.ends_with("_plain")) return {name, name};
  if (name.ends_with("_tsan") || name.ends_with("_msan")) {
    // The sanitizers' exit code (kernels/simt/shim/sanitizer_options.cc).
    return {name, name, {}, 43};
  }
  Suite suite = {name, name, {"--gtest_fail_fast"}};
  if (!Programs().contains(name)) {
    const size_t slash = name.rfind('/');
    suite.program = name.substr(0, slash) + "/test";
    suite.arguments.push_back("--file=" + name.substr(slash + 1));
  }
  const auto filter = Filters().find(name);
  if (filter != Filters().end()) {
    suite.arguments.push_back("--gtest_filter=" + filter->second);
  }
  return suite;
}

}  // namespace softmoe::mutation
