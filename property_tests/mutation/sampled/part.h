// SPDX-License-Identifier: Apache-2.0
//
// part.h - a part of the sources: folders or single files.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PART_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PART_H_

#include <string>
#include <vector>

namespace softmoe::mutation {

class Part {
 public:
  // All sources.
  Part() = default;
  // The files that are, or lie under, any of these paths from the root, such as
  // "kernels/cuda"; one text may name several, with commas. Empty: all sources.
  // Throws ConfigError for an empty path.
  explicit Part(const std::vector<std::string>& paths);

  bool IsAll() const { return paths_.empty(); }
  bool Has(const std::string& file) const;
  // "kernels/cuda,optimized": the same text for the same part, however it was
  // given; "" for all.
  std::string Text() const;
  // Throws ConfigError, naming the path, if a path contains none of `files`.
  void RequireIn(const std::vector<std::string>& files) const;

 private:
  // Sorted; none lies under another.
  std::vector<std::string> paths_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PART_H_
