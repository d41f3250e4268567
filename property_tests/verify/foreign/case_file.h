// SPDX-License-Identifier: Apache-2.0
//
// case_file.h - cases as a file for other people's programs (FORMAT.md).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_CASE_FILE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_CASE_FILE_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "core/hdf5/hdf5_file.h"
#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {

// "/cases/000017"
std::string CaseGroup(int64_t index);

// Writes /cases/INDEX with what a program needs: operation, parameters, inputs,
// and the shapes of the outputs.
void WriteRequest(Hdf5Writer& writer, int64_t index, const Request& request);

// Writes the attributes of the root, which say what the file is.
void WriteHead(Hdf5Writer& writer, int64_t num_cases);

// Writes a tensor in the type that it is stored in: bf16 as float32.
void WriteTensor(Hdf5Writer& writer, const std::string& path,
                 const Tensor& tensor);

// Reads a tensor that WriteTensor wrote; f64 where no attribute says a dtype.
Tensor ReadTensor(const Hdf5Reader& reader, const std::string& path);

// Writes a whole file of cases. Throws EnvironmentError.
void WriteCaseFile(const std::filesystem::path& path,
                   std::span<const Request> requests);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_CASE_FILE_H_
