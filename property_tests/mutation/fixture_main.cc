// SPDX-License-Identifier: Apache-2.0
//
// A program for chosen_run_test.cc: the faults of fixture.toml do everything to
// it that faults can do. If one of its own assertions fails, it ends with exit
// code 1.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "property_tests/mutation/fixture.h"

int main(int argc, char**) {
  if (argc > 3) std::abort();
  // NOLINTNEXTLINE(bugprone-infinite-loop): a test that hangs
  while (argc > 4) ::pause();
  if (argc > 5) return 5;
  if (argc > 1) return 0;

  // Tests that start programs fork, too.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) != 0) return 1;

  int calls = 0;
  ++calls;
  if (calls != 1) return 1;
  if (Twice(3) != 6) return 1;
  // A hole in this "test": nothing checks the sum.
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    sum += i;
  }
  return sum >= 0 ? 0 : 1;
}
