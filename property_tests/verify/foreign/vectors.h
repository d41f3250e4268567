// SPDX-License-Identifier: Apache-2.0
//
// vectors.h - conformance vectors: cases with the expected outputs of each, as
// a file that other frameworks can read on their own (FORMAT.md).
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

// Writes the file. The bounds are those by which CheckInputs judges, at the
// dtype of each case. Throws EnvironmentError, and then leaves no file.
void WriteVectors(const std::filesystem::path& path,
                  const std::vector<Case>& cases);

// Throws DataError for a file that is not of this kind, is damaged, or is of
// another version.
std::vector<VectorCase> ReadVectors(const std::filesystem::path& path);

// Throws DataError, naming case and element, if the file expects something else
// than this program does, or by another derivation: then another version
// exported it, and its verdicts would be different.
void CheckExpectations(const std::filesystem::path& path,
                       const std::vector<VectorCase>& cases);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_VECTORS_H_
