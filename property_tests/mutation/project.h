// SPDX-License-Identifier: Apache-2.0
//
// project.h - what the tests and programs are made from, according to Bazel
// (mutant_listing in bazel/mutants.bzl), for a separate build.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_PROJECT_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_PROJECT_H_

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace softmoe::mutation {

// A translation unit.
struct Unit {
  std::string key;     // PACKAGE/TARGET/FILE.o
  std::string source;  // path from the root
  std::vector<std::string> flags;
  bool always_linked = false;  // else only if a symbol is needed
  std::string compiler;  // used with exactly these flags; "": the common one
  bool is_test = false;
};

struct Program {
  std::string path;  // PACKAGE/NAME
  bool is_test = false;
  std::vector<std::string> units;     // keys
  std::vector<std::string> archives;  // made by nvcc
  std::vector<std::string> linkopts;
  std::string compiler;  // used for linking
  std::string script;    // starts PATH.bin; "": PATH is the program
  std::vector<std::string> arguments;
  // Files it reads: path from the root -> file.
  std::map<std::string, std::filesystem::path> files;
  std::vector<std::string> programs;  // programs it starts
};

struct Project {
  std::map<std::string, std::filesystem::path> sources;
  std::map<std::string, Unit> units;        // by key
  std::map<std::string, Program> programs;  // by path
  std::string compiler, clang;
  std::vector<std::string> flags, linkopts;  // common to all
};

// Adds a listing whose paths are relative to `root`. Throws DataError, naming
// the place, if it is not a listing.
void ReadListing(const std::filesystem::path& listing,
                 const std::filesystem::path& root, Project& project);
// Reads mutant_flags of bazel/mutants.bzl.
void ReadFlags(const std::filesystem::path& listing, Project& project);

// Has Bazel write the listings of these programs (paths) and of all that they
// are made from, or of //..., in `workspace`, and reads them. Throws
// EnvironmentError if Bazel fails.
Project ReadProject(const std::filesystem::path& workspace,
                    const std::filesystem::path& flags,
                    const std::set<std::string>& programs = {});

// Whether faults are drawn in this file, a source in reference/, kernels/,
// optimized/, trainer/ or golden/ that is not only for tests.
bool IsProduct(const std::string& path);

// The first line of `COMPILER --version`.
std::string VersionOf(const std::string& compiler);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_PROJECT_H_
