// SPDX-License-Identifier: Apache-2.0
//
// paper_recorder PAPER.toml OUT.h5 - writes the paper's goldens. It runs in the
// build, so the shipped file cannot differ from its sources.
#include <filesystem>

#include "core/errors.h"
#include "golden/document/document.h"
#include "golden/paper/paper_source.h"

int main(int argc, char** argv) {
  return softmoe::RunMain("paper_recorder", [&] {
    if (argc != 3) {
      throw softmoe::ConfigError("usage: paper_recorder PAPER.toml OUT.h5");
    }
    const std::filesystem::path source = argv[1];
    softmoe::golden::WriteDocument(
        softmoe::golden::BuildPaper(source.parent_path()), argv[2]);
    return softmoe::ExitCode::kDone;
  });
}
