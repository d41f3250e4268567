// SPDX-License-Identifier: Apache-2.0
#include "experiments/testing/grid_test_util.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>
#include <utility>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/run/run_folder.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMicroGrid = R"([grid]
name = "micro"
scale = "smoke"
title = "Three rows for tests"
seeds = [7]
[config.model]
num_layers = 2
d_model = 16
num_heads = 2
d_ffn = 32
num_experts = 4
vocab_size = 400
sequence_length = 16
init_std = 0.2
[config.training]
steps = {}
global_batch_sequences = 4
micro_batch_sequences = 2
balance_group_sequences = 2
learning_rate = 1e-2
min_learning_rate = 1e-4
eval_sequences = 8
[config.router]
calibration_batches = 2
[config.runtime]
log_every = 1
checkpoint_every = 5
[[corpora]]
id = "text"
title = "Sentences made for tests"
stands_for = "owt"
[corpora.config.data]
corpus = "path:text.txt"
validation_fraction = 0.1
[[rows]]
id = "sparse-2"
label = "Sparse MoE"
paper_row = "sparse/k2"
[rows.config.router]
kind = "sparse"
mean_active_experts = 2
[[rows]]
id = "star-1.5"
label = "SoftMoE*"
paper_row = "softmoe_star/k1.5/a2"
[rows.config.router]
kind = "soft_fixed"
mean_active_experts = 1.5
[[rows]]
id = "learned-1.5"
label = "SoftMoE"
paper_row = "softmoe/k1.5/a2"
[rows.config.router]
kind = "soft_learned"
mean_active_experts = 1.5
)";

// The text and the grid file.
void WriteMicro(const fs::path& folder) {
  WriteFileAtomically(folder / "text.txt",
                      trainer::TestText(trainer::TestDocuments(600)));
  WriteFileAtomically(folder / "micro.toml", MicroGrid(60));
}

}  // namespace

std::string MicroGrid(int64_t steps, const std::string& more_rows) {
  return fmt::format(fmt::runtime(kMicroGrid), steps) + more_rows;
}

std::string MicroMini() {
  std::string toml = MicroGrid(60);
  const std::pair<std::string, std::string> kChanges[] = {
      {"name = \"micro\"", "name = \"mini\""},
      {"scale = \"smoke\"", "scale = \"mini\""},
      {"seeds = [7]", "seeds = [1234, 1235]"},
      {"id = \"text\"", "id = \"gcide\""},
      {"id = \"star-1.5\"", "id = \"softmoe-star-1.5-calibrated\""},
      {"id = \"learned-1.5\"", "id = \"softmoe-1.5-calibrated\""}};
  for (const auto& [from, to] : kChanges) {
    toml.replace(toml.find(from), from.size(), to);
  }
  return toml;
}

std::string MicroRegime() {
  std::string toml = MicroMini();
  toml.replace(toml.find("[[rows]]"), 0, "[experiments.regime]\n");
  toml.replace(toml.find("seeds = [1234, 1235]"), 20, "seeds = [1234]");
  for (const char* row :
       {"sparse/k1 sparse 1", "sparse/k3 sparse 3", "sparse/k4 sparse 4",
        "softmoe_star/k1/a4 soft_fixed 1", "softmoe_star/k2/a2 soft_fixed 2",
        "softmoe/k2/a2 soft_learned 2"}) {
    std::istringstream words(row);
    std::string paper_row, kind, k;
    words >> paper_row >> kind >> k;
    toml += fmt::format(
        "[[rows]]\nid = \"{0}-{1}\"\nlabel = \"L\"\npaper_row = \"{2}\"\n"
        "[rows.config.router]\nkind = \"{0}\"\nmean_active_experts = {1}\n",
        kind, k, paper_row);
  }
  return toml;
}

void GridProgram::SetUp() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  folder_ = FreshFolder(std::string("grid_") + test->name());
  // A private cache, so that no test depends on another; making tokens takes
  // milliseconds.
  ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  ::unsetenv("BUILD_WORKING_DIRECTORY");
  WriteMicro(folder_);
}

std::string GridProgram::Program() {
  return fs::absolute("experiments/grid").string();
}

ProgramResult GridProgram::Grid(const Strings& arguments) const {
  // Files in shipped/ take the place of those that ship. The path of env is
  // absolute, since a test may change PATH.
  Strings command = {
      "/usr/bin/env", "TEST_SRCDIR=" + (folder_ / "shipped").string(),
      "RUNFILES_DIR=" + fs::current_path().parent_path().string(), Program()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunProgram(command, folder_);
}

ProgramResult GridProgram::GridAfter(const std::string& prologue,
                                     const Strings& arguments) const {
  std::string script = prologue + "; exec '" + Program() + "'";
  for (const std::string& word : arguments) script += " '" + word + "'";
  return RunProgram({"sh", "-c", script}, folder_);
}

testing::AssertionResult GridProgram::TakeTrained(
    const std::string& out) const {
  static const fs::path trained = FreshFolder("grid_trained");
  static const ProgramResult result = [] {
    WriteMicro(trained);
    return RunProgram({"env", "XDG_CACHE_HOME=" + (trained / "cache").string(),
                       Program(), "run", "micro.toml"},
                      trained);
  }();
  testing::AssertionResult finished = EndedWith(result, 0);
  if (!finished) return finished;
  // The cache may already be there.
  constexpr auto kAll =
      fs::copy_options::recursive | fs::copy_options::skip_existing;
  fs::create_directories(folder_ / out);
  fs::copy(trained / "runs/micro", folder_ / out, kAll);
  fs::copy(trained / "cache", folder_ / "cache", kAll);
  return finished;
}

void GridProgram::WriteGrid(const std::string& toml) const {
  WriteFileAtomically(folder_ / "micro.toml", toml);
}

void GridProgram::WriteMini(const std::string& toml) const {
  WriteGrid(toml);
  const fs::path grids = folder_ / "shipped/softmoe/experiments/grids";
  fs::create_directories(grids);
  WriteFileAtomically(grids / "mini.toml", toml);
}

Grid GridProgram::Micro(const Strings& overrides) const {
  return LoadGrid(folder_ / "micro.toml", overrides);
}

fs::path GridProgram::RunFolder(size_t n, const std::string& out) const {
  return folder_ / out / RunFolderName(Micro().runs.at(n));
}

std::string GridProgram::Bytes(const std::string& path) const {
  return ReadWholeFile(folder_ / path);
}

HeldProgram::HeldProgram(const std::string& program, const Strings& arguments,
                         const fs::path& folder) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  fcntl(ends[1], F_SETPIPE_SZ, 4096);
  process_ = fork();
  if (process_ == 0) {
    dup2(ends[1], STDERR_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    std::vector<char*> words = {const_cast<char*>(program.c_str())};
    for (const std::string& word : arguments) {
      words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    if (chdir(folder.c_str()) == 0) execv(program.c_str(), words.data());
    _exit(99);
  }
  close(ends[1]);
  out_ = ends[0];
}

HeldProgram::~HeldProgram() {
  if (out_ >= 0) close(out_);
}

bool HeldProgram::ReadLetter() {
  char letter;
  if (read(out_, &letter, 1) != 1) return false;
  result_.output += letter;
  return true;
}

bool HeldProgram::ReadUntil(const std::string& text, int count) {
  size_t end = 0;
  for (; count > 0; --count) {
    size_t at;
    while ((at = result_.output.find(text, end)) == std::string::npos) {
      if (!ReadLetter()) return false;
    }
    end = at + text.size();
  }
  return true;
}

void HeldProgram::ReadLinesOfEither(HeldProgram* a, HeldProgram* b, int count) {
  std::vector<HeldProgram*> programs = {a, b};
  while (count > 0 && !programs.empty()) {
    std::vector<pollfd> pipes;
    for (const HeldProgram* program : programs) {
      pipes.push_back({.fd = program->out_, .events = POLLIN, .revents = 0});
    }
    if (poll(pipes.data(), pipes.size(), /*timeout=*/-1) < 0) continue;
    // Backwards, since programs whose output ended are removed.
    for (size_t i = pipes.size(); i-- > 0 && count > 0;) {
      if (pipes[i].revents == 0) continue;
      if (!programs[i]->ReadLetter()) {
        programs.erase(programs.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (programs[i]->result_.output.back() == '\n') {
        --count;
      }
    }
  }
}

void HeldProgram::Signal(int number) const { kill(process_, number); }

void HeldProgram::WaitForEnd() const {
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOWAIT);
}

ProgramResult HeldProgram::Finish() {
  ReadUntil(std::string(1, '\0'));  // never printed
  int status = 0;
  waitpid(process_, &status, 0);
  result_.exit_status =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

bool WaitFor(double seconds, const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace softmoe::experiments
