// SPDX-License-Identifier: Apache-2.0
//
// source_tree.h - the sources as they are, and copies with faults in them.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SOURCE_TREE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SOURCE_TREE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/mutation/fault.h"
#include "property_tests/mutation/project.h"

namespace softmoe::mutation {

class SourceTree {
 public:
  // Reads all sources of `project` and copies them, by their paths, to `tree`.
  // `written`: a file that the run writes itself, which is none of its inputs
  // even where a test has it among its own.
  SourceTree(const Project& project, std::filesystem::path tree,
             const std::filesystem::path& written = {});

  const std::filesystem::path& folder() const { return folder_; }
  // The text of a source; nullptr if `file` is none.
  const std::string* Text(const std::string& file) const;
  // Text(); of a tree that outlives it.
  std::function<const std::string*(const std::string&)> Reader() const {
    return [this](const std::string& file) { return Text(file); };
  }
  // SHA-256 of all sources, and of the files that tests read, with their paths,
  // except those that the build makes, documents (*.md), and the data of this
  // folder, lists of drawn faults among them: no test that is run has a use for
  // those, only for being every file of the repository.
  const std::string& digest() const { return digest_; }
  // Of the same and the documents. A test may hold one to the sources, so what
  // passed without a fault is known for these documents only.
  const std::string& digest_with_documents() const {
    return digest_with_documents_;
  }

  // The sources that `unit` may include, itself included, from lines #include
  // "PATH", and #include <NAME> with its flags -IFOLDER, whatever surrounds
  // them.
  const std::set<std::string>& Closure(const Unit& unit);

 private:
  using Folders = std::vector<std::string>;  // in which <NAME> is looked for
  const std::set<std::string>& ClosureOf(const std::string& file,
                                         const Folders& folders);

  std::filesystem::path folder_;
  std::map<std::string, std::string> texts_;
  std::string digest_, digest_with_documents_;
  std::mutex mutex_;  // guards what follows
  std::map<std::pair<std::string, Folders>, std::set<std::string>> closures_;
  std::map<std::string, std::set<std::string>> of_units_;
};

// A fault, with its line and text.
MeasuredFault Describe(const SourceTree& tree, const PlacedFault& fault);

// The text of a source, or null if it is none.
using SourceReader = std::function<const std::string*(const std::string& file)>;

// Files that differ from those of the tree: path -> text.
using Overlay = std::map<std::string, std::string>;

// Each file with a fault, with all of its faults behind their switches. Throws
// DataError naming one that cannot be written, or stand with the others.
Overlay SwitchedCopies(const SourceReader& read,
                       const std::vector<PlacedFault>& faults);

// The file of a fault, as if somebody had made it: no switch. The lines that
// follow stay where they were.
std::string PlainCopy(const SourceTree& tree, const PlacedFault& fault);

// Makes `folder` hold exactly these files.
void WriteOverlay(const Overlay& overlay, const std::filesystem::path& folder);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SOURCE_TREE_H_
