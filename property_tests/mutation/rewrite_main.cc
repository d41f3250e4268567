// SPDX-License-Identifier: Apache-2.0
//
// Copies sources into a separate tree and writes the tables' faults into the
// copies: an action of bazel/mutants.bzl.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "property_tests/mutation/fault_table.h"

namespace {

using namespace softmoe;            // NOLINT: a main
using namespace softmoe::mutation;  // NOLINT
namespace fs = std::filesystem;

// Path from the root -> current path of that file; one tab-separated line per
// file.
std::map<std::string, fs::path> ReadSources(const std::string& listing) {
  std::ifstream in(listing);
  std::map<std::string, fs::path> sources;
  std::string line;
  while (std::getline(in, line)) {
    const size_t tab = line.find('\t');
    if (tab == line.npos) throw DataError(listing + ": no tab: " + line);
    sources[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return sources;
}

void WriteTree(const std::string& listing, const fs::path& tree,
               const std::vector<std::string>& tables) {
  const std::map<std::string, fs::path> sources = ReadSources(listing);
  std::vector<Fault> faults;
  for (const std::string& table : tables) {
    for (Fault& fault : ReadFaults(table)) faults.push_back(std::move(fault));
  }
  const std::map<std::string, std::string> planted = PlantFaults(
      faults, [&](const std::string& file) -> std::optional<std::string> {
        const auto found = sources.find(file);
        if (found == sources.end()) return std::nullopt;
        return ReadWholeFile(found->second);
      });
  for (const auto& [file, source] : sources) {
    const auto changed = planted.find(file);
    MakeFolder((tree / file).parent_path());
    WriteFileAtomically(tree / file, changed != planted.end()
                                         ? changed->second
                                         : ReadWholeFile(source));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Copies sources, with faults in them.", "rewrite"};
  std::string listing, tree;
  std::vector<std::string> tables;
  app.add_option("--sources", listing, "lines: path from the root, tab, file")
      ->required();
  app.add_option("--tree", tree, "folder of the copies")->required();
  app.add_option("faults", tables, "tables of faults")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  return RunMain("rewrite", [&] {
    WriteTree(listing, tree, tables);
    return ExitCode::kDone;
  });
}
