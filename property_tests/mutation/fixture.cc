// SPDX-License-Identifier: Apache-2.0
//
// A program for measure_test.cc whose mutants do all that mutants can do. It
// takes what it calls an assertion seriously: exit code 1.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "core/mutant.h"

int main(int argc, char**) {
  if (SOFTMOE_MUTANT("fixture.crashes", false, true)) std::abort();
  while (SOFTMOE_MUTANT("fixture.hangs", false, true)) ::pause();
  if (SOFTMOE_MUTANT("fixture.lacks_a_file", false, true)) return 5;
  if (argc > 1) return SOFTMOE_MUTANT("fixture.is_never_reached", 0, 1);

  // As tests that start programs do.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(SOFTMOE_MUTANT("fixture.in_a_child", 0, 3));
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) != 0) return 1;

  int calls = 0;
  SOFTMOE_MUTANT_SKIPS("fixture.statement_left_out", ++calls);
  if (calls != 1) return 1;
  if (SOFTMOE_MUTANT("canary.gross", 2 + 2, 2 - 2) != 4) return 1;
  if (SOFTMOE_MUTANT("canary.equivalent", 2 + 2, 2 * 2) != 4) return 1;
  // A hole in this "test": nobody looks at the sum.
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    sum += SOFTMOE_MUTANT("fixture.survives", i, i + 1);
  }
  return sum >= 0 ? 0 : 1;
}
