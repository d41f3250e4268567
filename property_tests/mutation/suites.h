// SPDX-License-Identifier: Apache-2.0
//
// suites.h - the test suites that must kill the mutants: a program, its
// arguments, and its exit code for a failed test.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SUITES_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SUITES_H_

#include <filesystem>
#include <string>
#include <vector>

namespace softmoe::mutation {

struct Suite {
  std::string name;
  std::string tier;     // one of Tiers()
  std::string program;  // path from the root, among the runfiles
  std::vector<std::string> arguments = {};
  int failing_exit = 1;
  // The folder below which `program` lies; empty: the runfiles.
  std::filesystem::path runfiles = {};
};

const std::vector<Suite>& AllSuites();

// unit: tests beside the code; reference: those of the oracle alone; double:
// bodies at double precision; difference: against the reference within derived
// bounds, CPU and simulated CUDA; sanitizer: races and unwritten values in the
// simulator; model: the whole model against the reference; training; harness.
const std::vector<std::string>& Tiers();

// The suite with this name. Throws InternalError if there is none.
const Suite& FindSuite(const std::vector<Suite>& suites,
                       const std::string& name);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SUITES_H_
