// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nvidia_libraries.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace softmoe::kernels {

std::vector<std::string> LibraryPaths(const std::string& name,
                                      const std::vector<std::string>& folders) {
  std::vector<std::string> paths;
  const char* home = std::getenv("CUDA_HOME");
  if (home != nullptr) paths.push_back(std::string(home) + "/lib64/" + name);
  paths.push_back(name);
  paths.push_back("/usr/local/cuda/lib64/" + name);
  std::vector<std::string> roots = {"/usr/local/lib"};
  if (const char* python = std::getenv("VIRTUAL_ENV")) {
    roots.insert(roots.begin(), std::string(python) + "/lib");
  }
  std::error_code ignored;
  for (const std::string& root : roots) {
    for (const auto& entry :
         std::filesystem::directory_iterator(root, ignored)) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const std::string& folder : folders) {
          paths.push_back(entry.path() / packages / "nvidia" / folder / "lib" /
                          name);
        }
      }
    }
  }
  return paths;
}

}  // namespace softmoe::kernels
