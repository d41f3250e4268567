// SPDX-License-Identifier: Apache-2.0
//
// output_file.h - reads what someone else's program wrote (FORMAT.md).
//
// libhdf5 may crash or hang on malformed bytes, and a valid file can ask for
// any amount of memory or refer to other files. Therefore the file is read by a
// child process with limits, which reads only the outputs that were asked for,
// in the requested shapes, and only from the file itself.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_OUTPUT_FILE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_OUTPUT_FILE_H_

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/process/isolated_call.h"
#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {

struct OutputFile {
  std::string problem;          // concerns the whole file; "" if there is none
  std::vector<Answer> answers;  // one per request, unless there is a problem
};

// Answer i is that of group "/cases/i". Never throws because of the content of
// the file.
OutputFile ReadOutputFile(const std::filesystem::path& path,
                          std::span<const Request> requests,
                          IsolationLimits limits = {.seconds = 60});

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_OUTPUT_FILE_H_
