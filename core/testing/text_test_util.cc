// SPDX-License-Identifier: Apache-2.0
#include "core/testing/text_test_util.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

void Renew(const std::string& path, const std::string& text) {
  const char* sources = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (sources == nullptr) {
    ADD_FAILURE() << "SOFTMOE_RENEW is for `./bazelw run`, which alone says "
                     "where the sources are";
    return;
  }
  const fs::path file = fs::path(sources) / path;
  fs::create_directories(file.parent_path());
  WriteFileAtomically(file, text);
}

}  // namespace

void ExpectHas(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

void ExpectFileEquals(const std::string& path, const std::string& text) {
  if (std::getenv("SOFTMOE_RENEW") != nullptr) return Renew(path, text);
  const fs::path expected = RunfilePath(path);
  if (ReadWholeFile(expected) == text) return;
  const fs::path now = FreshFolder("now") / expected.filename();
  WriteFileAtomically(now, text);
  ADD_FAILURE() << RunProgram({"diff", "-u", "--label", path, "--label", "now",
                               expected.string(), now.string()},
                              ".")
                       .output
                << "If that is as it should be: SOFTMOE_RENEW=1 ./bazelw run "
                   "of this test writes it.";
}

}  // namespace softmoe
