// SPDX-License-Identifier: Apache-2.0
#include "core/files/paths.h"

#include <cstdlib>
#include <system_error>
#include <vector>

#include "core/errors.h"
#include "core/files/file_error.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

// Returns the variable's value if it is an absolute path, else "". The XDG
// rules say to ignore relative values.
fs::path AbsoluteFromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || value[0] != '/') return {};
  return value;
}

constexpr const char* kWorkspaceName = "softmoe";  // as in WORKSPACE

// Returns the runfiles folders in which `program` may find its files: its own
// or, if it is data of another program, the folder that it lies in.
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

fs::path UserPath(const std::string& path) {
  if (path.empty()) {
    throw ConfigError("a path on the command line is empty; give a file name");
  }
  fs::path folder = AbsoluteFromEnvironment("BUILD_WORKING_DIRECTORY");
  if (folder.empty()) folder = fs::current_path();
  const fs::path whole = folder / path;  // an absolute `path` stays
  // After a link, ".." is the parent of the link's target: the kernel finds it.
  fs::path visited;
  std::error_code unreadable;  // then opening reports it
  for (const fs::path& name : whole) {
    if (name == "..") {
      if (fs::is_symlink(visited, unreadable)) return whole;
      visited = visited.parent_path();
    } else if (name != ".") {
      visited /= name;
    }
  }
  return whole.lexically_normal();
}

fs::path CacheFolder() {
  fs::path cache = AbsoluteFromEnvironment("XDG_CACHE_HOME");
  if (cache.empty()) {
    const fs::path home = AbsoluteFromEnvironment("HOME");
    if (home.empty()) {
      throw EnvironmentError(
          "no folder for caches: neither $XDG_CACHE_HOME nor $HOME is an "
          "absolute path; set XDG_CACHE_HOME");
    }
    cache = home / ".cache";
  }
  return cache / "softmoe";
}

void MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::error_code ignored;
  if (!error && !fs::is_directory(folder, ignored)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) throw FileError("create folder", folder, error.value());
}

int64_t FreeDiskBytes(const fs::path& path) {
  fs::path existing = fs::absolute(path);
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  const fs::space_info space = fs::space(existing, error);
  if (error) throw FileError("ask for disk space at", existing, error.value());
  return static_cast<int64_t>(space.available);
}

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
