// SPDX-License-Identifier: Apache-2.0
//
// The test of the simulator itself: every planted bug is caught in each of the
// builds that the table names, and no correct kernel is ever blamed. The table
// is the program's other source.
//
//   planted_bugs_test              the whole table, each cell in a process of
//                                  its own, since a report ends the process
//   planted_bugs_test BUG SCHEDULE one cell, by numbers; exits with its outcome
#include "kernels/simt/shim/planted_bugs.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/simt/shim/simulator.h"

extern char** environ;

namespace softmoe::simt {
namespace {

constexpr int kNumSchedules = 3;
// A process that ran one cell exits with kFirstCode + outcome.
constexpr int kFirstCode = 40;

constexpr const char* kOutcomeNames[] = {"clean", "wrong", "refused",
                                         "REPORTED", "died"};

// Runs one cell in this process.
int RunCell(int bug, int schedule) {
  SetSchedule(static_cast<Schedule>(schedule), 7);
  return kFirstCode + static_cast<int>(PlantedBugs()[bug].run());
}

struct Cell {
  Outcome outcome = Outcome::kDied;
  char text[4096] = {};  // the beginning of what it said
};

Cell RunInOwnProcess(int bug, int schedule) {
  char bug_text[16], schedule_text[16];
  snprintf(bug_text, sizeof(bug_text), "%d", bug);
  snprintf(schedule_text, sizeof(schedule_text), "%d", schedule);
  char program[] = "/proc/self/exe";
  char* arguments[] = {program, bug_text, schedule_text, nullptr};
  FILE* output = tmpfile();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(output), STDERR_FILENO);
  pid_t child = 0;
  Cell cell;
  int status = 0;
  if (posix_spawn(&child, program, &actions, nullptr, arguments, environ) ==
          0 &&
      waitpid(child, &status, 0) == child && WIFEXITED(status)) {
    const int code = WEXITSTATUS(status) - kFirstCode;
    if (code >= 0 && code <= static_cast<int>(Outcome::kReported)) {
      cell.outcome = static_cast<Outcome>(code);
    }
  }
  posix_spawn_file_actions_destroy(&actions);
  rewind(output);
  const size_t size = fread(cell.text, 1, sizeof(cell.text) - 1, output);
  cell.text[size] = '\0';
  fclose(output);
  return cell;
}

// Returns what is wrong with the three cells of one bug; null if nothing is.
const char* Defect(const PlantedBug& bug, const Cell (&cells)[kNumSchedules]) {
  const Must must = bug.must[kVariant];
  const Outcome wanted = must == Must::kBeWrong  ? Outcome::kWrong
                         : must == Must::kRefuse ? Outcome::kRefused
                         : must == Must::kReport ? Outcome::kReported
                         : must == Must::kDie    ? Outcome::kDied
                                                 : Outcome::kClean;
  int seen = 0;
  for (const Cell& cell : cells) {
    seen += cell.outcome == wanted;
    // The report must say `says`, or name the place. (The sanitizers' runtimes
    // do not always: MSan's needs llvm-symbolizer.)
    const bool stopped = cell.outcome == Outcome::kRefused ||
                         cell.outcome == Outcome::kReported ||
                         (must == Must::kDie && cell.outcome == wanted);
    if (!stopped) continue;
    const bool by_sanitizer = cell.outcome == Outcome::kReported;
    const bool says =
        bug.says != nullptr && strstr(cell.text, bug.says) != nullptr;
    const bool names_the_place =
        strstr(cell.text, PlantedBugsSource()) != nullptr;
    if (bug.says != nullptr && !by_sanitizer && !says) {
      return "something else is said";
    }
    if (!says && !names_the_place && !(by_sanitizer && kVariant == kMsan)) {
      return "the place is not named";
    }
  }
  switch (must) {
    case Must::kAnything:
      return nullptr;
    case Must::kStayClean:
      return seen == kNumSchedules ? nullptr : "a correct kernel is blamed";
    case Must::kRefuse:
    case Must::kDie:
      return seen == kNumSchedules ? nullptr : "missed in some schedule";
    default:
      return seen > 0 ? nullptr : "missed";
  }
}

int RunTable() {
  int defects = 0, caught = 0;
  const auto bugs = PlantedBugs();
  for (size_t bug = 0; bug < bugs.size(); ++bug) {
    Cell cells[kNumSchedules];
    printf("%-38s", bugs[bug].name);
    for (int s = 0; s < kNumSchedules; ++s) {
      cells[s] = RunInOwnProcess(static_cast<int>(bug), s);
      printf(" %-9s", kOutcomeNames[static_cast<int>(cells[s].outcome)]);
    }
    const Must must = bugs[bug].must[kVariant];
    const char* defect = Defect(bugs[bug], cells);
    printf("%s%s\n", defect == nullptr ? "" : "<-- FAILED: ",
           defect == nullptr ? "" : defect);
    if (defect != nullptr) {
      ++defects;
      for (const Cell& cell : cells) printf("%s\n", cell.text);
    } else {
      caught += must != Must::kAnything && must != Must::kStayClean;
    }
  }
  printf("%d planted bugs caught as they must be, %d defects\n", caught,
         defects);
  return defects == 0 ? 0 : 1;
}

}  // namespace
}  // namespace softmoe::simt

int main(int argc, char** argv) {
  using namespace softmoe::simt;
  if (argc == 3) return RunCell(atoi(argv[1]), atoi(argv[2]));
  return RunTable();
}
