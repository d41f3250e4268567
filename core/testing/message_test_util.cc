// SPDX-License-Identifier: Apache-2.0
#include "core/testing/message_test_util.h"

#include <cstdlib>
#include <filesystem>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

::testing::AssertionResult Renew(const std::string& text,
                                 const std::string& path) {
  const char* sources = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (sources == nullptr) {
    return ::testing::AssertionFailure()
           << "SOFTMOE_RENEW is for `./bazelw run`, which alone says where the "
              "sources are";
  }
  const fs::path file = fs::path(sources) / path;
  fs::create_directories(file.parent_path());
  WriteFileAtomically(file, text);
  return ::testing::AssertionSuccess();
}

}  // namespace

::testing::AssertionResult Says(std::string_view text,
                                const std::vector<std::string>& parts) {
  std::string missing;
  for (const std::string& part : parts) {
    if (text.find(part) != text.npos) continue;
    missing.append("expected: ").append(part).append("\n");
  }
  if (missing.empty()) return ::testing::AssertionSuccess() << text;
  return ::testing::AssertionFailure() << missing << "got: " << text;
}

int Count(std::string_view text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

std::string Replaced(std::string text, std::string_view from,
                     std::string_view to) {
  const size_t at = text.find(from);
  if (at == text.npos) throw InternalError("no text " + std::string(from));
  return text.replace(at, from.size(), to);
}

::testing::AssertionResult EqualsFile(const std::string& text,
                                      const std::string& path) {
  if (std::getenv("SOFTMOE_RENEW") != nullptr) return Renew(text, path);
  const fs::path expected = RunfilePath(path);
  if (ReadWholeFile(expected) == text) return ::testing::AssertionSuccess();
  const fs::path now = FreshFolder("now") / expected.filename();
  WriteFileAtomically(now, text);
  return ::testing::AssertionFailure()
         << RunProgram({"diff", "-u", "--label", path, "--label", "now",
                        expected.string(), now.string()},
                       ".")
                .output
         << "If that is as it should be: SOFTMOE_RENEW=1 ./bazelw run of this "
            "test writes it.";
}

}  // namespace softmoe
