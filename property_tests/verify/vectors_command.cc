// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/vectors_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "core/errors.h"
#include "core/files/paths.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/foreign/case_file.h"
#include "property_tests/verify/foreign/vectors.h"

namespace softmoe::verify {

void ExportVectors(const std::vector<std::string>& ops,
                   const CasePattern& fixed, uint64_t seed, uint32_t first,
                   int64_t cases, const std::string& out) {
  if (ops.empty()) {
    throw ConfigError(
        "export-vectors needs op=NAME, or several; `verify list` shows the "
        "names");
  }
  CasePattern pattern = fixed;
  pattern["impl"] = "theirs";
  std::vector<Case> drawn;
  for (const std::string& name : ops) {
    for (int64_t i = 0; i < cases; ++i) {
      drawn.push_back(DrawCase(FindOperation(name), pattern, seed,
                               first + static_cast<uint32_t>(i)));
    }
  }
  const std::filesystem::path path = UserPath(out);
  WriteVectors(path, drawn);
  fmt::print(
      "{}: {} cases of {} operation{}, {:.1f} MB\n"
      "Layout: property_tests/verify/foreign/FORMAT.md. When your framework "
      "has written its outputs:\n"
      "  ./bazelw run //:verify -- check-vectors {} theirs.h5\n",
      path.string(), drawn.size(), ops.size(), ops.size() == 1 ? "" : "s",
      static_cast<double>(std::filesystem::file_size(path)) / 1e6, out);
}

Suite CheckVectors(const std::string& vectors, const std::string& outputs) {
  const auto implementation =
      MakeImplementation("recorded:" + vectors + "," + outputs);
  const std::filesystem::path path = UserPath(vectors);
  const std::vector<VectorCase> cases = ReadVectors(path);
  CheckExpectations(path, cases);
  Suite suite;
  for (size_t i = 0; i < cases.size(); ++i) {
    Case c = cases[i].c;
    c.impl = implementation->name();
    CaseResult result = CheckInputs(c, cases[i].inputs, *implementation);
    suite.Add(result);
    if (!result.failed()) continue;
    result.hints.push_back("group " + CaseGroup(static_cast<int64_t>(i)) +
                           " of both files");
    const size_t before = suite.failures().size();
    suite.CountFailure(result);
    if (suite.failures().size() == before) continue;
    std::fputs(FailureText(suite.failures().back()).c_str(), stdout);
  }
  return suite;
}

}  // namespace softmoe::verify
