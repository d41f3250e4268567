// SPDX-License-Identifier: Apache-2.0
#include "core/files/runfiles.h"

#include <cstdlib>
#include <system_error>
#include <vector>

#include "core/errors.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWorkspaceName = "softmoe";  // as in WORKSPACE

// The runfiles folders in which `program` may find its files: its own or, where
// it is data of another program, the folder that it lies in.
std::vector<fs::path> FoldersBeside(const fs::path& program) {
  std::vector<fs::path> folders = {program.string() + ".runfiles"};
  for (fs::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (folder.extension() == ".runfiles") folders.push_back(folder);
  }
  return folders;
}

std::vector<fs::path> RunfilesFolders() {
  std::vector<fs::path> folders;
  for (const char* name : {"TEST_SRCDIR", "RUNFILES_DIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && value[0] != '\0') folders.push_back(value);
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    for (const fs::path& folder : FoldersBeside(program)) {
      folders.push_back(folder);
    }
  }
  return folders;
}

}  // namespace

fs::path RunfilePath(const std::string& path_from_root) {
  SOFTMOE_CHECK(!path_from_root.empty() && path_from_root[0] != '/')
      << path_from_root;
  std::string tried;
  for (const fs::path& folder : RunfilesFolders()) {
    fs::path path = folder / kWorkspaceName / path_from_root;
    std::error_code error;
    if (fs::exists(path, error)) return path;
    tried += (tried.empty() ? "'" : ", '") + path.string() + "'";
  }
  throw EnvironmentError(
      "the file '" + path_from_root + "', which belongs to this program, is " +
      "missing: looked at " + tried +
      "; start the program with ./bazelw run, or keep its .runfiles folder "
      "beside it");
}

}  // namespace softmoe
