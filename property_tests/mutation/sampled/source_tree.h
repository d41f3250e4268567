// SPDX-License-Identifier: Apache-2.0
//
// source_tree.h - the present sources, and copies with faults.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SOURCE_TREE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SOURCE_TREE_H_

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "property_tests/mutation/sampled/draw.h"
#include "property_tests/mutation/sampled/project.h"

namespace softmoe::mutation {

class SourceTree {
 public:
  // Reads all sources of `project` and copies them, by their paths, to `tree`.
  SourceTree(const Project& project, std::filesystem::path tree);

  const std::filesystem::path& folder() const { return folder_; }
  // The text of a source; nullptr if `file` is none.
  const std::string* Text(const std::string& file) const;
  // SHA-256 of all sources that are not generated, with their paths.
  const std::string& digest() const { return digest_; }

  // The sources that `unit` may include, itself included, from lines #include
  // "PATH", whatever surrounds them.
  const std::set<std::string>& Closure(const Unit& unit);

 private:
  const std::set<std::string>& ClosureOf(const std::string& file);

  std::filesystem::path folder_;
  std::map<std::string, std::string> texts_;
  std::string digest_;
  std::mutex mutex_;  // of what follows
  std::map<std::string, std::set<std::string>> closures_;
  std::map<std::string, std::set<std::string>> of_units_;
};

// Files that replace those of the tree: path -> text.
using Overlay = std::map<std::string, std::string>;

// Each file that has faults, with all of them behind their switches. Throws
// DataError naming a fault that cannot be written, alone or with the others.
Overlay SwitchedCopies(const SourceTree& tree,
                       const std::vector<DrawnFault>& faults);

// The fault's file as if somebody had made the mistake: no switch. Later lines
// keep their numbers.
std::string PlainCopy(const SourceTree& tree, const DrawnFault& fault);

// Makes `folder` hold exactly these files.
void WriteOverlay(const Overlay& overlay, const std::filesystem::path& folder);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SOURCE_TREE_H_
