// SPDX-License-Identifier: Apache-2.0
//
// vectors.h - conformance vectors: cases with the expected outputs of each, in
// a file that other frameworks can read on their own (FORMAT.md). A file of a
// single case that has failed is a bundle: its replay needs no generator
// (except for the call before an odd case), so it works after fills have
// changed and on another machine.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_VECTORS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_VECTORS_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

struct VectorOutput {
  Tensor values, bounds;  // f64
  std::string derivation;
};

struct VectorCase {
  Case c;  // impl "theirs"; in a bundle, the one that failed
  TensorMap inputs;
  std::map<std::string, VectorOutput> outputs;
  // In bundles only: the REPRO line, and the computed outputs, as f64.
  std::string result;
  TensorMap got;
};

// Writes the file. The bounds are those by which CheckInputs judges, at the
// dtype of each case. Throws EnvironmentError, or StoppedError after a signal;
// then it leaves no file.
void WriteVectors(const std::filesystem::path& path,
                  const std::vector<Case>& cases);

// Writes the failed case with its outputs `got`. Throws EnvironmentError, and
// then leaves no file.
void WriteBundle(const std::filesystem::path& path, const CaseResult& failed,
                 const TensorMap& got);

// Reads a file of vectors. Throws DataError if it is of another kind or
// version, is damaged, or has inputs that its operation does not accept.
std::vector<VectorCase> ReadVectors(const std::filesystem::path& path);

// Throws DataError, naming case and element, if the file has other expected
// values or derivations than this program: then another version exported it,
// and its verdicts would differ.
void CheckExpectations(const std::filesystem::path& path,
                       const std::vector<VectorCase>& cases);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_VECTORS_H_
