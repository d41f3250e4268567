// SPDX-License-Identifier: Apache-2.0
//
// source_tree.h - the original sources, and copies with faults in them.
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
  // `written` is a file that the run itself writes: it is not an input, even if
  // it is one of a test.
  SourceTree(const Project& project, std::filesystem::path tree,
             const std::filesystem::path& written = {});

  const std::filesystem::path& folder() const { return folder_; }
  // The text of a source; nullptr if `file` is not a source.
  const std::string* Text(const std::string& file) const;
  // Text() as a function; the tree must outlive it.
  std::function<const std::string*(const std::string&)> Reader() const {
    return [this](const std::string& file) { return Text(file); };
  }
  // SHA-256 of all sources and of the files that tests read, with their paths,
  // except files that the build makes, documents (*.md), and this folder's
  // data, including lists of drawn faults: the tests that are run do not use
  // these except as part of "every file of the repository".
  const std::string& digest() const { return digest_; }
  // SHA-256 of the same files and the documents. A test may compare a document
  // with the sources, so the clean runs hold only for these documents.
  const std::string& digest_with_documents() const {
    return digest_with_documents_;
  }

  // The sources that `unit` may include, and its own, according to lines
  // #include "PATH", and #include <NAME> with its flags -IFOLDER, whatever
  // surrounds them.
  const std::set<std::string>& Closure(const Unit& unit);

 private:
  using Folders = std::vector<std::string>;  // searched for <NAME>
  const std::set<std::string>& ClosureOf(const std::string& file,
                                         const Folders& folders);

  std::filesystem::path folder_;
  std::map<std::string, std::string> texts_;
  std::string digest_, digest_with_documents_;
  std::mutex mutex_;  // guards the members below
  std::map<std::pair<std::string, Folders>, std::set<std::string>> closures_;
  std::map<std::string, std::set<std::string>> of_units_;
};

// The fault with its line and text.
MeasuredFault Describe(const SourceTree& tree, const PlacedFault& fault);

// Returns the text of a source, or nullptr if `file` is not a source.
using SourceReader = std::function<const std::string*(const std::string& file)>;

// Files that differ from those of the tree: path -> text.
using Overlay = std::map<std::string, std::string>;

// Each file that has a fault, with all of its faults behind their switches.
// Throws DataError naming one that cannot be written, or not with the others.
Overlay SwitchedCopies(const SourceReader& read,
                       const std::vector<PlacedFault>& faults);

// Returns the fault's file as if somebody had made the fault, without a switch.
// Later lines keep their numbers, unless the fault has more lines.
std::string PlainCopy(const SourceTree& tree, const PlacedFault& fault);

// Makes `folder` hold exactly these files.
void WriteOverlay(const Overlay& overlay, const std::filesystem::path& folder);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SOURCE_TREE_H_
