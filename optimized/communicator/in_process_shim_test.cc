// SPDX-License-Identifier: Apache-2.0
//
// Ranks in threads under sanitizers, without GoogleTest, so that all of the
// program is instrumented (bazel/shim.bzl).
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "kernels/simt/shim/variant.h"
#include "optimized/communicator/in_process.h"
#include "optimized/communicator/testing/communicator_checks.h"

namespace softmoe::optimized {
namespace {

// Returns 0 if every mistake ended every rank with its error, else 1.
int Main() {
  for (const int ranks : {1, 2, 4}) {
    for (uint32_t seed = 0; seed < 10; ++seed) {
      RunInProcessRanks(ranks,
                        [seed](Communicator& c) { CheckOperations(c, seed); });
    }
  }
  int wrong = 0;
  for (const Mistake& mistake : Mistakes(3)) {
    std::vector<std::string> texts(3, "not asked");
    try {
      RunInProcessRanks(3, [&](Communicator& c) {
        texts[static_cast<size_t>(c.rank())] = CheckMistake(c, mistake);
      });
    } catch (const std::exception&) {
      // The mistake also breaks the Run around it.
    }
    for (const std::string& text : texts) {
      if (text.empty()) continue;
      std::printf("%s\n", text.c_str());
      ++wrong;
    }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace softmoe::optimized

int main() { return softmoe::simt::ExitStatus(softmoe::optimized::Main); }
