// SPDX-License-Identifier: Apache-2.0
//
// part.h - a part of the sources: what lies in some folders, or single files.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PART_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PART_H_

#include <string>
#include <vector>

namespace softmoe::mutation {

class Part {
 public:
  // All sources.
  Part() = default;
  // What is under any of these paths from the root, such as "kernels/cuda", or
  // is one of them; several may be one text, with commas. None: all sources.
  // Throws ConfigError for a path that is empty.
  explicit Part(const std::vector<std::string>& paths);

  bool IsAll() const { return paths_.empty(); }
  bool Has(const std::string& file) const;
  // "kernels/cuda,optimized": one text for one part, however it was asked for.
  // "" for all.
  std::string Text() const;
  // Throws ConfigError, naming the path, if one has none of `files`.
  void RequireIn(const std::vector<std::string>& files) const;

 private:
  // In order, none under another one.
  std::vector<std::string> paths_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PART_H_
