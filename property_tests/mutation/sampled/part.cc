// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/errors.h"

namespace softmoe::mutation {
namespace {

bool IsUnder(const std::string& path, const std::string& file) {
  return file == path || file.starts_with(path + "/");
}

}  // namespace

Part::Part(const std::vector<std::string>& paths) {
  std::set<std::string> asked;
  for (const std::string& text : paths) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      std::string path = text.substr(begin, end - begin);
      while (path.ends_with('/')) path.pop_back();
      if (path.empty()) {
        throw ConfigError("--in '" + text +
                          "': a path is empty; write kernels/cuda, or "
                          "kernels/cuda,optimized");
      }
      asked.insert(path);
      begin = end + 1;
    }
  }
  for (const std::string& path : asked) {
    const bool is_within = std::ranges::any_of(asked, [&](const auto& other) {
      return other != path && IsUnder(other, path);
    });
    if (!is_within) paths_.push_back(path);
  }
}

bool Part::Has(const std::string& file) const {
  return IsAll() || std::ranges::any_of(paths_, [&](const std::string& path) {
           return IsUnder(path, file);
         });
}

std::string Part::Text() const {
  return fmt::format("{}", fmt::join(paths_, ","));
}

void Part::RequireIn(const std::vector<std::string>& files) const {
  for (const std::string& path : paths_) {
    if (std::ranges::none_of(files, [&](const std::string& file) {
          return IsUnder(path, file);
        })) {
      throw ConfigError(fmt::format(
          "--in {}: no source in which faults are drawn is there; name a "
          "folder or a file of reference, kernels, optimized, trainer or "
          "golden, by its path from the root",
          path));
    }
  }
}

}  // namespace softmoe::mutation
