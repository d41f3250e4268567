// SPDX-License-Identifier: Apache-2.0
//
// compile.h - compiles a translation unit with files of an overlay in place of
// those of the tree.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_COMPILE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_COMPILE_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/process/process.h"
#include "property_tests/mutation/project.h"
#include "property_tests/mutation/source_tree.h"

namespace softmoe::mutation {

// Compiles units.
class Compiler {
 public:
  // `compilers` identifies the compilers in use; it is part of every key.
  Compiler(const Project& project, SourceTree& tree, std::string compilers)
      : project_(project), tree_(tree), compilers_(std::move(compilers)) {}

  // Compiles into `object` with the switches prepended. "" checks only the
  // syntax.
  ProgramResult Compile(const Unit& unit, const std::filesystem::path& overlay,
                        const std::filesystem::path& object) const;
  // Compiles as for use: optimised, without switches. The unit's own source
  // comes from the overlay as well, so that two objects differ only by content.
  ProgramResult CompilePlain(const Unit& unit,
                             const std::filesystem::path& overlay,
                             const std::filesystem::path& object) const;
  // SHA-256 of everything from which Compile makes an object.
  std::string Key(const Unit& unit, const Overlay& overlay) const;

  static constexpr int kAttempts = 3;
  // Clang's syntax tree of a unit, for declarations whose name contains
  // `filter`; clang's messages are lost. Throws EnvironmentError if clang
  // crashes kAttempts times.
  std::string SyntaxTree(const Unit& unit, const std::string& filter) const;

 private:
  std::vector<std::string> Arguments(const Unit& unit) const;
  ProgramResult Run(const Unit& unit, const std::filesystem::path& overlay,
                    const std::vector<std::string>& flags,
                    const std::filesystem::path& object) const;

  const Project& project_;
  SourceTree& tree_;
  std::string compilers_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_COMPILE_H_
