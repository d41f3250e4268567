// SPDX-License-Identifier: Apache-2.0
//
// vectors.h - conformance vectors: cases with what is expected of each, as a
// file that other frameworks read without us (FORMAT.md).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_VECTORS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_VECTORS_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

struct VectorOutput {
  Tensor values, bounds;  // f64
  std::string derivation;
};

struct VectorCase {
  Case c;  // impl "theirs"
  TensorMap inputs;
  std::map<std::string, VectorOutput> outputs;
};

// Bounds are those by which CheckInputs judges, at each case's dtype. Throws
// EnvironmentError; then there is no such file.
void WriteVectors(const std::filesystem::path& path,
                  const std::vector<Case>& cases);

// Throws DataError for a file that is no such file, damaged, or of another
// version. One of version 1 is read, unless it has a case of dtype f64.
std::vector<VectorCase> ReadVectors(const std::filesystem::path& path);

// Throws DataError, naming case and element, if the file expects what this
// program does not: it was exported by another version, whose verdicts these
// would not be. Bounds of an earlier derivation may differ: what is judged
// meets today's, which each derivation shows to be those of a correct answer.
void CheckExpectations(const std::filesystem::path& path,
                       const std::vector<VectorCase>& cases);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_VECTORS_H_
