// SPDX-License-Identifier: Apache-2.0
//
// //:grid as a user meets it: commands, messages, exit codes, files.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/testing/grid_test_util.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/tokens/prepare.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

class GridMain : public GridProgram {
 protected:
  // Writes token files of the current text.txt.
  void PrepareTokens(const std::string& prefix) {
    const fs::path current = fs::current_path();
    fs::current_path(folder_);
    DataConfig data;
    data.corpus = "path:text.txt";
    trainer::CopyPreparedCorpus(
        trainer::PrepareCorpus(data, 400, {.quiet = true}), folder_ / prefix);
    fs::current_path(current);
  }
  // The record of the corpus in the grid's folder.
  fs::path CorpusRecord() const {
    const fs::path folder = folder_ / "runs/micro";
    for (const std::string& name : FilesIn(folder)) {
      if (name.starts_with("corpus-")) return folder / name;
    }
    return "none";
  }
};

TEST_F(GridMain, HelpTeaches) {
  const ProgramResult help = Grid({"--help"});
  EXPECT_TRUE(EndedWith(
      help, 0, "Examples:", "Exit codes:", "grid run smoke", "list", "plan",
      "run", "report", "status", "tensorboard", "clean", "75",
      "3 a recorded run gave other bits on\nanother instruction set, device"));
  std::istringstream written(help.output.substr(help.output.find("Examples:")));
  for (std::string line; std::getline(written, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_TRUE(EndedWith(Grid({"run", "--help"}), 0, "--rows", "--corpora",
                        "--seeds", "--set", "--out", "--threads", "--isa",
                        "--device", "--quiet", "--scale", "--task-files",
                        "--tokens", "--recheck", "--keep-checkpoints"));
}

TEST_F(GridMain, UsageErrorsEndWithTwoAndSuggest) {
  const std::pair<Strings, Strings> kCases[] = {
      {{}, {"subcommand"}},
      {{"rum", "smoke"}, {"no command 'rum'", "did you mean 'run'?"}},
      {{"run"}, {"grid is required"}},
      {{"run", "smoek"},
       {"no grid or experiment 'smoek'", "did you mean 'smoke'?"}},
      {{"run", "nano"},
       {"known are 'smoke', 'mini', 'midi', 'paper', 'main'", ".toml"}},
      {{"run", "micro.toml", "--row", "sparse-2"},
       {"run does not take '--row'", "did you mean '--rows'?"}},
      {{"status", "micro.toml", "--rows=x"}, {"status does not take"}},
      {{"run", "micro.toml", "again"}, {"run does not take 'again'"}},
      {{"run", "micro.toml", "--rows", "sparse-2,star-15"},
       {"--rows star-15", "did you mean 'star-1.5'?"}},
      {{"run", "micro.toml", "--corpora", "txt"}, {"did you mean 'text'?"}},
      {{"run", "micro.toml", "--seeds", "1,1"}, {"1 is listed twice"}},
      {{"run", "micro.toml", "--seeds", "-1"}, {"--seeds"}},
      {{"run", "micro.toml", "--seeds", "many"}, {"--seeds"}},
      {{"run", "micro.toml", "--seeds", "99999999999999999999"}, {"--seeds"}},
      {{"run", "micro.toml", "--threads", "-1"}, {"threads"}},
      {{"run", "micro.toml", "--isa", "v9"}, {"v9"}},
      {{"run", "micro.toml", "--device", "tpu"}, {"runtime.device", "cuda"}},
      {{"run", "micro.toml", "--set", "router.expansion=3"},
       {"--set router.expansion=3", "expansion_factor"}},
      {{"run", "micro.toml", "--set", "training.seed=3"}, {"--seeds"}},
      {{"report", "micro.toml", "--every", "0"},
       {"--every: Value 0 not in range 1 to 1099511627776"}},
      {{"plan", "micro.toml", "--ranks", "0"},
       {"--ranks: Value 0 not in range 1 to 1048576"}},
      {{"plan", "micro.toml", "--ranks", "2.5"},
       {"--ranks: Value 2.5 not in range 1 to 1048576"}},
      {{"clean", "micro.toml", "--only", "results"}, {"--only"}},
      {{"verify-record", "a.h5", "--run", "text/a/seed1", "--threads", "-1"},
       {"--threads: Value -1 not in range 0 to 4096"}},
      {{"verify-record", "a.h5", "--run", "r", "--threads", "4294967297"},
       {"--threads: Value 4294967297 not in range 0 to 4096"}},
      {{"run", "micro.toml", "--jobs", "010"}, {"--jobs: 010 begins with 0"}},
      {{"status", "micro.toml", "--out", ""}, {"--out: its value is empty"}},
      {{"record", "micro.toml", "--from", ""}, {"--from: its value is empty"}},
      {{"record", "micro.toml", "--renew", "--from", "a.h5"},
       {"--from excludes --renew"}},
      {{"record", "micro.toml", "--renew", "--out", "a"},
       {"--out excludes --renew"}}};
  for (const auto& [arguments, texts] : kCases) {
    EXPECT_TRUE(EndedWith(Grid(arguments), 2, texts));
  }
  EXPECT_EQ(FilesIn(folder_), (Strings{"micro.toml", "text.txt"}));
}

TEST_F(GridMain, HelpThatCannotBeWrittenIsAnError) {
  for (const char* asked : {"--help", "--version"}) {
    EXPECT_TRUE(EndedWith(GridAfter("exec >/dev/full", {asked}), 5,
                          "not all of the output could be written"));
  }
}

TEST_F(GridMain, BadGridsEndWithTwoAndNameTheLine) {
  WriteGrid(MicroGrid(60, "[[rows]]\nid = \"x\"\nlable = \"y\"\n"));
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml"}), 2, "micro.toml:", "'label'"));
  WriteGrid("[grid\n");
  EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 2, "micro.toml:1"));
  EXPECT_TRUE(EndedWith(Grid({"run", "missing.toml"}), 5, "missing.toml"));
  EXPECT_TRUE(EndedWith(Grid({"plan", "./smoke"}), 5, "smoke"));
}

// Otherwise it would share folder, record and claims with the shipped grid.
TEST_F(GridMain, NoOtherFileHasTheNameOfAGridThatShips) {
  const std::string mini =
      ReadWholeFile(RunfilePath("experiments/grids/mini.toml"));
  fs::create_directories(folder_ / "runs/mini");
  WriteGrid(mini);
  EXPECT_TRUE(EndedWith(Grid({"clean", "micro.toml"}), 0, "nothing to delete"));
  WriteGrid(Replaced(mini, "\nsteps = 1000\n", "\nsteps = 999\n"));
  for (const Strings& command :
       {Strings{"clean", "micro.toml", "--yes"}, Strings{"run", "micro.toml"},
        Strings{"run", "tau", "--scale=micro.toml"}}) {
    ASSERT_TRUE(EndedWith(Grid(command), 2, "micro.toml:",
                          "name 'mini' belongs to a grid of this program",
                          "choose another name"));
  }
}

// Hides this machine's devices.
TEST_F(GridMain, WithoutADeviceAGridEndsBeforeItPreparesACorpus) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--device=cuda"}), 5,
                "device \"cuda\": ", "Without --device the CPU is used"));
  EXPECT_EQ(FilesIn(folder_ / "runs/micro"), Strings{});
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(GridMain, BadCorporaEndBeforeAnythingIsTrained) {
  const Strings run = {"run", "micro.toml"};
  WriteFileAtomically(folder_ / "text.txt", "");
  EXPECT_TRUE(EndedWith(Grid(run), 2, "text.txt"));
  WriteFileAtomically(folder_ / "text.txt", std::string(1000, '\xff'));
  EXPECT_TRUE(EndedWith(Grid(run), 2, "text.txt"));
  fs::remove(folder_ / "text.txt");
  EXPECT_TRUE(EndedWith(Grid(run), 5, "text.txt"));
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--set", "data.corpus=foldocs"}), 2,
                "foldocs"));
  EXPECT_EQ(FilesIn(folder_ / "runs/micro"), Strings{});
}

// It is refused before anything is downloaded or made, however small --set
// makes the run.
TEST_F(GridMain, ThePaperNeedsWhatItNames) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  for (const Strings& more :
       {Strings{}, Strings{"--set", "training.steps=1"}}) {
    Strings arguments = {"run", "paper"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_TRUE(EndedWith(Grid(arguments), 5, "device: device \"cuda\"",
                          "corpus: no OpenWebText in ", "GPU hours",
                          "`plan paper`", "`run mini`"));
  }
  EXPECT_EQ(FilesIn(folder_), (Strings{"micro.toml", "text.txt"}));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(GridMain, TokensMustBeThoseOfTheCorpus) {
  trainer::PreparedCorpus tokens;
  tokens.prefix = folder_ / "t";
  tokens.corpus = "path:text.txt";
  tokens.description = "made for this test";
  tokens.vocab_size = 400;
  tokens.text_bytes = 5000;
  const auto run = [&](const Strings& more) {
    trainer::WritePreparedCorpus(tokens);
    Strings arguments = {"run", "micro.toml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Grid(arguments);
  };
  const std::string given = "path:text.txt=t";
  EXPECT_TRUE(EndedWith(run({"--tokens", "path:texts.txt=t"}), 2,
                        "no run has that corpus", "path:text.txt"));
  EXPECT_TRUE(
      EndedWith(run({"--tokens", "path:texts.txt=t", "--launcher=slurm"}), 2,
                "no run has that corpus"));
  for (const char* wrong : {"t", "=t", "path:text.txt="}) {
    EXPECT_TRUE(EndedWith(run({"--tokens", wrong}), 2, "CORPUS=PREFIX"));
  }
  EXPECT_TRUE(
      EndedWith(run({"--tokens", given, "--tokens", given}), 2, "given twice"));
  EXPECT_TRUE(EndedWith(run({"--tokens", given}), 5, "t.bin"));
  WriteFileAtomically(folder_ / "t.idx", "an index");
  WriteFileAtomically(folder_ / "t.bin", "tokens");
  EXPECT_TRUE(EndedWith(run({"--tokens", given}), 2, "t.idx: damaged"));
  tokens.vocab_size = 500;
  EXPECT_TRUE(EndedWith(run({"--tokens", given}), 2, "vocabulary of 500"));
  tokens.vocab_size = 400;
  WriteFileAtomically(folder_ / "t.model", "");
  tokens.tokens = {.data_sha256 = Sha256Hex("tokens"),
                   .index_sha256 = Sha256Hex("an index"),
                   .tokenizer_sha256 = Sha256Hex("")};
  EXPECT_TRUE(
      EndedWith(run({"--tokens", given, "--set", "data.max_bytes=4999"}), 2,
                "5000 bytes of text", "data.max_bytes is 4999"));
  tokens.corpus = "owt";
  EXPECT_TRUE(EndedWith(run({"--tokens", given}), 2,
                        "tokens of corpus 'owt' (made for this test)"));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

// The items are wherever the user says; without them nothing is trained.
TEST_F(GridMain, TasksNeedTheirItems) {
  WriteGrid(MicroGrid(60) + "[evaluations]\ntasks = [\"piqa\"]\n");
  Strings run = {"run", "micro.toml"};
  EXPECT_TRUE(EndedWith(Grid({"plan", "micro.toml"}), 0,
                        "the zero-shot tasks piqa (3 runs)", "--task-files"));
  EXPECT_TRUE(EndedWith(Grid(run), 5, "the tasks piqa", "--task-files"));
  run.insert(run.end(), {"--task-files", "items"});
  EXPECT_TRUE(EndedWith(Grid(run), 5, "items: no items of piqa",
                        "physicaliqa-train-dev/dev.jsonl"));
  EXPECT_EQ(FilesIn(folder_), (Strings{"micro.toml", "text.txt"}));
  fs::create_directory(folder_ / "items");
  const std::string item = R"({"goal": "g", "sol1": "a", "sol2": "b", )";
  WriteFileAtomically(folder_ / "items/valid.jsonl",
                      item + "\"label\": 0}\n" + item + "\"label\": 1}\n");
  EXPECT_TRUE(
      EndedWith(Grid(run), 0, "3 of 3 runs finished", "wrote", "tasks.csv"));
  EXPECT_TRUE(Says(Bytes("runs/micro/tasks.csv"),
                   "run,tau,task,items,measure,correct,accuracy,"
                   "standard_error\ntext/sparse-2/seed7,0,piqa,2,acc,"));
  // Finished runs need no items, and the plan for another machine names them.
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml"}), 0, "3 of 3 runs"));
  EXPECT_TRUE(EndedWith(
      Grid({"plan", "micro.toml", "--launcher=slurm", "--task-files", "items"}),
      0, "--task-files"));
  // A recorded run is asked again.
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--to", "a.h5"}), 0));
  Strings verify = {"verify-record", "a.h5", "--run", "text/sparse-2/seed7",
                    "--quiet"};
  EXPECT_TRUE(EndedWith(Grid(verify), 5, "the tasks piqa", "--task-files"));
  verify.insert(verify.end(), {"--task-files", "items"});
  EXPECT_TRUE(EndedWith(Grid(verify), 0, "PASS: the same bits"));
}

// A grid whose requirements are met is trained, whatever its scale is called.
// GPUs do not wait for a corpus to be prepared: its tokens must exist, in the
// cache or wherever the user says, and then its text is not needed.
TEST_F(GridMain, AGridOfThePapersScaleIsTrainedWhereAllIsHere) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  std::string grid = MicroGrid(60);
  grid.replace(grid.find("\"smoke\""), 7, "\"paper\"");
  WriteGrid(grid);
  const Strings run = {"run", "micro.toml"};
  EXPECT_TRUE(EndedWith(Grid(run), 5, "3 runs", "device: device \"cuda\""));
  Strings on_cpu = run;
  on_cpu.insert(on_cpu.end(), {"--device", "cpu"});
  EXPECT_TRUE(
      EndedWith(Grid(on_cpu), 5, "\n  corpus: path:text.txt is not prepared",
                "`./bazelw run //:prepare_data -- --corpus path:text.txt "
                "--vocab-size 400`"));
  EXPECT_EQ(FilesIn(folder_), (Strings{"micro.toml", "text.txt"}));

  PrepareTokens("t");
  const Strings plan = {"plan", "micro.toml", "--launcher=local", "--tokens",
                        "path:text.txt=t"};
  EXPECT_TRUE(EndedWith(Grid(plan), 0, " epochs of the "));
  EXPECT_TRUE(EndedWith(Grid(on_cpu), 0, "3 of 3 runs finished"));
  // Finished runs need nothing.
  EXPECT_TRUE(EndedWith(Grid(run), 0, "3 of 3 runs finished"));

  fs::remove_all(folder_ / "cache");
  fs::remove(folder_ / "text.txt");
  on_cpu.insert(on_cpu.end(),
                {"--tokens", "path:text.txt=t", "--out", "again"});
  EXPECT_TRUE(EndedWith(Grid(on_cpu), 0, "3 of 3 runs finished"));
  EXPECT_EQ(Bytes("again/results.h5"), Bytes("runs/micro/results.h5"));

  // Given tokens must be those of the finished runs, too.
  WriteFileAtomically(folder_ / "text.txt",
                      trainer::TestText(trainer::TestDocuments(601)));
  PrepareTokens("other");
  const auto with = [&](const std::string& tokens) {
    return Grid({"run", "micro.toml", "--tokens", "path:text.txt=" + tokens});
  };
  EXPECT_TRUE(EndedWith(with("t"), 0, "3 of 3 runs finished"));
  EXPECT_TRUE(EndedWith(with("other"), 2, "result.h5", "other tokens now"));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(GridMain, ListsAndPlansWithoutRunning) {
  EXPECT_TRUE(EndedWith(Grid({"list"}), 0, "smoke", "mini", "midi", "paper",
                        "inference_tau", "T6"));
  EXPECT_TRUE(
      EndedWith(Grid({"plan", "micro.toml"}), 0, "sparse-2", "learned-1.5"));
  EXPECT_EQ(FilesIn(folder_), (Strings{"micro.toml", "text.txt"}));
}

TEST_F(GridMain, RunsOnceThenOnlyReads) {
  const auto first = Grid({"run", "micro.toml", "--threads", "2"});
  EXPECT_TRUE(EndedWith(
      first, 0, "grid micro: 3 runs", "row 1/3 sparse-2, grid 0% | step 1/60",
      "row 2/3 star-1.5 finished: val loss ", "unigram", "tau ",
      "row 3/3 learned-1.5 finished", "grid 100%", "results.h5", "report.html",
      "3 of 3 runs finished; every invariant holds"));
  EXPECT_EQ(FilesIn(RunFolder(0)),
            (Strings{"checkpoint.h5", "metrics.jsonl", "result.h5"}));
  const std::string results = Bytes("runs/micro/results.h5");
  const auto written = fs::last_write_time(RunFolder(1) / "result.h5");

  // From here on neither the text nor the cache is needed.
  fs::rename(folder_ / "text.txt", folder_ / "gone.txt");
  fs::remove_all(folder_ / "cache");
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml"}), 0, "3 finished",
                        "row 3/3 learned-1.5 finished", "earlier",
                        "3 of 3 runs finished; every invariant holds"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), results);
  EXPECT_EQ(fs::last_write_time(RunFolder(1) / "result.h5"), written);

  for (const char* file : {"results.h5", "report.html"}) {
    EXPECT_TRUE(fs::remove(folder_ / "runs/micro" / file)) << file;
  }
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml"}), 0, "report.html"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), results);
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml", "--format=md,json"}), 0,
                        "report.md", "report.json", "plots"));
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml", "--format=pdf"}), 2,
                        "html", "json"));
  EXPECT_TRUE(fs::exists(folder_ / "runs/micro/report.html"));
  // With other settings there is nothing to report, and the existing report
  // stays.
  EXPECT_TRUE(
      EndedWith(Grid({"report", "micro.toml", "--set", "training.steps=61"}), 5,
                "runs/micro", "--set"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), results);
}

TEST_F(GridMain, AReportSaysOnceWhatItTakesFromARecord) {
  ASSERT_TRUE(TakeTrained());
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  Strings report = {"report", "micro.toml", "--from", "a.h5", "--out", "told"};
  const ProgramResult told = Grid(report);
  const std::string note = "a.h5: 3 runs count as finished";
  EXPECT_TRUE(EndedWith(told, 0, note, "3 of 3 runs finished"));
  EXPECT_EQ(Count(told.output, note), 1) << told.output;
  // The same holds where there is nothing to report.
  report.insert(report.end(), {"--set", "training.steps=9"});
  EXPECT_TRUE(EndedWith(Grid(report), 5, "a.h5: 0 runs count as finished",
                        "no run of grid 'micro'"));
}

TEST_F(GridMain, MakesEventFilesOfRunsAtWork) {
  const Strings make = {"tensorboard", "micro.toml"};
  EXPECT_TRUE(EndedWith(Grid(make), 5, "runs/micro", "run micro"));
  ASSERT_TRUE(TakeTrained());
  // Makes it look as if the third had not begun, and the second were writing.
  fs::remove(RunFolder(2) / "metrics.jsonl");
  const fs::path log = RunFolder(1) / "metrics.jsonl";
  const std::string whole = ReadWholeFile(log);
  WriteFileAtomically(log, whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(EndedWith(Grid(make), 0, "2 of 3 runs: 2 new, 0 longer, 0 as",
                        "tensorboard --logdir", "runs/micro/tensorboard\n"));
  const fs::path board = folder_ / "runs/micro/tensorboard";
  EXPECT_EQ(FilesIn(board),
            (Strings{RunFolder(0).filename(), RunFolder(1).filename()}));
  const auto events = [&](size_t n) {
    return ReadWholeFile(board / RunFolder(n).filename() /
                         "events.out.tfevents.softmoe");
  };
  const std::string half = events(1);
  WriteFileAtomically(log, whole);
  EXPECT_TRUE(EndedWith(Grid(make), 0, "0 new, 1 longer, 1 as they were"));
  EXPECT_TRUE(events(1).starts_with(half));
  EXPECT_GT(events(1).size(), half.size());
  EXPECT_NE(events(0), events(1));
  EXPECT_TRUE(EndedWith(Grid(make), 0, "0 new, 0 longer, 2 as they were"));
  EXPECT_EQ(Grid({"clean", "micro.toml", "--yes"}).exit_status, 0);
  EXPECT_FALSE(events(0).empty());
  Strings other = make;
  other.insert(other.end(), {"--set", "training.steps=9"});
  EXPECT_TRUE(EndedWith(Grid(other), 5, "no run of grid 'micro'", "--set"));
  const FolderLock lock(board);
  EXPECT_TRUE(EndedWith(Grid(make), 5, "another process"));
}

// Each time the first run is broken, which must end no command early.
TEST_F(GridMain, WhatIsWrongWithOneRunHidesNoOther) {
  ASSERT_TRUE(TakeTrained());
  const fs::path log = RunFolder(0) / "metrics.jsonl";
  const std::string whole = ReadWholeFile(log);
  const Strings make = {"tensorboard", "micro.toml"};
  WriteFileAtomically(log, whole + "nonsense\n");
  EXPECT_TRUE(EndedWith(Grid(make), 2, "2 of 3 runs: 2 new",
                        "text/sparse-2/seed7: " + log.string() + ":",
                        "not a JSON object"));
  WriteFileAtomically(log, ReadWholeFile(RunFolder(1) / "metrics.jsonl"));
  EXPECT_TRUE(EndedWith(Grid(make), 2, "2 of 3 runs: 0 new",
                        log.string() + ":1: a log of configuration",
                        "move it back where it came from"));
  const std::string third = whole.substr(0, whole.find("\"step\":2,")) +
                            whole.substr(whole.find("\"step\":3,"));
  WriteFileAtomically(log, third);
  EXPECT_TRUE(EndedWith(Grid(make), 2, log.string() + ":", "'step' is not 2"));
  // Unreadable like a folder without permission, which root may still read.
  fs::remove_all(RunFolder(0));
  fs::create_symlink(RunFolder(0).filename(), RunFolder(0));
  EXPECT_TRUE(EndedWith(Grid(make), 5, "2 of 3 runs: 0 new",
                        "text/sparse-2/seed7: ", RunFolder(0).string()));
  EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 5, "2 of 3 runs",
                        "text/sparse-2/seed7 unreadable: "));
}

TEST_F(GridMain, ThinsTheStepsOfAReport) {
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "sparse-2"}).exit_status, 0);
  const auto lines = [&] {
    const std::string steps = Bytes("runs/micro/steps.csv");
    return std::count(steps.begin(), steps.end(), '\n');
  };
  EXPECT_EQ(lines(), 1 + 60);
  Grid({"report", "micro.toml", "--every", "25"});
  EXPECT_EQ(lines(), 1 + 3);
}

TEST_F(GridMain, StatusAndCleanTellWhatIsThere) {
  EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 0,
                        "text/sparse-2/seed7", "waiting", "0/60",
                        "0 of 3 runs"));
  EXPECT_TRUE(
      EndedWith(Grid({"report", "micro.toml"}), 5, "runs/micro", "run micro"));
  EXPECT_TRUE(EndedWith(Grid({"clean", "micro.toml"}), 5, "runs/micro"));
  ASSERT_TRUE(TakeTrained());
  const auto status = Grid({"status", "micro.toml"});
  EXPECT_TRUE(EndedWith(status, 0, "finished", "60/60", "3 of 3 runs"));
  EXPECT_FALSE(Says(status.output, "waiting"));

  EXPECT_TRUE(EndedWith(Grid({"clean", "micro.toml"}), 0, "checkpoint.h5",
                        "evaluations added to the grid later, would read it",
                        "3 could be deleted", "--yes deletes them"));
  EXPECT_TRUE(fs::exists(RunFolder(0) / "checkpoint.h5"));
  // These runs do not belong to a grid with other settings.
  const Strings other = {"clean", "micro.toml", "--set", "training.steps=9"};
  EXPECT_TRUE(EndedWith(Grid(other), 0, "FINISHED", "3 could be deleted"));
  EXPECT_TRUE(
      EndedWith(Grid({"clean", "micro.toml", "--yes", "--only", "checkpoints"}),
                0, "deleted 3"));
  EXPECT_TRUE(EndedWith(Grid({"clean", "micro.toml"}), 0, "nothing to delete"));
  EXPECT_EQ(FilesIn(RunFolder(0)), (Strings{"metrics.jsonl", "result.h5"}));
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml"}), 0, "3 of 3 runs finished"));
  Strings yes = other;
  yes.push_back("--yes");
  EXPECT_TRUE(EndedWith(Grid(yes), 0, "deleted 3"));
  EXPECT_FALSE(fs::exists(RunFolder(0)));
  EXPECT_TRUE(fs::exists(folder_ / "runs/micro/results.h5"));
}

// Experiments build on rows of the paper; this grid is the scale of none.
TEST_F(GridMain, CleanNamesNoExperimentsBesideAGridThatIsNoScale) {
  std::string grid = MicroGrid(60);
  for (const char* row :
       {"sparse/k2", "softmoe_star/k1.5/a2", "softmoe/k1.5/a2"}) {
    grid = Replaced(grid, "paper_row = \"" + std::string(row) + "\"\n", "");
  }
  WriteGrid(grid);
  fs::create_directories(folder_ / "runs/micro");
  const auto clean = Grid({"clean", "micro.toml"});
  EXPECT_TRUE(EndedWith(clean, 0, "nothing to delete"));
  EXPECT_FALSE(Says(clean.output, "foreign"));
}

TEST_F(GridMain, SomeRowsNow_TheOthersLater) {
  ASSERT_TRUE(TakeTrained("whole"));
  const auto some =
      Grid({"run", "micro.toml", "--rows", "learned-1.5,sparse-2"});
  EXPECT_TRUE(Says(some.output, "row 2/2 learned-1.5 finished",
                   "2 of 2 runs finished"));
  EXPECT_FALSE(fs::exists(RunFolder(1)));
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml"}), 0, "2 finished",
                        "row 2/3 star-1.5, grid 6",  // % of the FLOPs
                        "3 of 3 runs finished"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
}

TEST_F(GridMain, SeedsAndSettingsAreOtherRuns) {
  const auto run = Grid({"run", "micro.toml", "--rows", "sparse-2", "--seeds",
                         "1,2", "--set", "training.steps=6"});
  EXPECT_TRUE(Says(run.output, "row 2/2 sparse-2/seed2 finished",
                   "2 of 2 runs finished"));
  EXPECT_FALSE(fs::exists(RunFolder(0)));
}

// A trial in the grid's folder leaves the grid's report as it is.
TEST_F(GridMain, OtherSeedsAndSettingsHaveAReportOfTheirOwn) {
  ASSERT_TRUE(TakeTrained());
  const std::string report = Bytes("runs/micro/report.html");
  for (const Strings& other :
       {Strings{"--seeds", "8"}, Strings{"--set", "training.steps=6"}}) {
    Strings trial = {"run", "micro.toml", "--rows", "sparse-2"};
    trial.insert(trial.end(), other.begin(), other.end());
    EXPECT_TRUE(Says(Grid(trial).output, "1 of 1 runs finished",
                     "/runs/micro/report-"));
    EXPECT_EQ(Bytes("runs/micro/report.html"), report);
  }
  // The file's own seeds, as a Slurm job names them.
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml", "--seeds", "7"}), 0,
                        "/runs/micro/report.html"));
}

// A first command waits for another first command, on another text.
TEST_F(GridMain, TokensAreComparedOnceTheFolderIsFree) {
  ASSERT_TRUE(TakeTrained("whole"));
  const fs::path folder = folder_ / "runs/micro";
  fs::create_directories(folder);
  auto lock = std::make_unique<FolderLock>(folder);
  HeldProgram waiting(Program(), {"run", "micro.toml"}, folder_);
  ASSERT_TRUE(waiting.ReadUntil("waiting for process"));
  for (const std::string& name : FilesIn(folder_ / "whole")) {
    if (!name.starts_with("corpus-")) continue;
    const fs::path record = fs::path(name).stem();
    trainer::PreparedCorpus other =
        trainer::ReadPreparedCorpus(folder_ / "whole" / record);
    other.prefix = folder / record;
    other.tokens.data_sha256 = Sha256Hex("other tokens");
    trainer::WritePreparedCorpus(other);
  }
  lock.reset();
  EXPECT_TRUE(EndedWith(waiting.Finish(), 2, "corpus-text-", "other tokens now",
                        "--out"));
  EXPECT_FALSE(fs::exists(RunFolder(0)));
}

// Nothing is trained, and the cache may be gone.
TEST_F(GridMain, FinishedRunsAreOfTheTextThatIsThere) {
  ASSERT_TRUE(TakeTrained());
  const std::string not_looked_at =
      "all its runs are finished, so its text was not looked at";
  const ProgramResult same = Grid({"run", "micro.toml"});
  EXPECT_TRUE(EndedWith(same, 0, "3 of 3 runs finished"));
  EXPECT_FALSE(Says(same.output, not_looked_at));
  fs::rename(folder_ / "text.txt", folder_ / "gone.txt");
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml"}), 0, "3 of 3 runs finished",
                        "corpus path:text.txt: " + not_looked_at));
  WriteFileAtomically(folder_ / "text.txt",
                      trainer::TestText(trainer::TestDocuments(601)));
  const std::string other = Bytes("text.txt");
  const ProgramResult refused = Grid({"run", "micro.toml"});
  EXPECT_TRUE(EndedWith(refused, 2, "result.h5",
                        "'path:text.txt' has other tokens now", "--out"));
  fs::rename(folder_ / "gone.txt", folder_ / "text.txt");
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml"}), 0));

  // The suggested remedy works.
  WriteFileAtomically(folder_ / "text.txt", other);
  EXPECT_TRUE(Says(refused.output, "delete the folders of all runs on it and " +
                                       CorpusRecord().string()));
  fs::remove(CorpusRecord());
  for (size_t row = 0; row < 3; ++row) fs::remove_all(RunFolder(row));
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml"}), 0, "3 of 3 runs finished",
                        "row 1/3 sparse-2, grid 0% | step 1/60"));
}

// Another record has this id, and an earlier verification of it was stopped.
TEST_F(GridMain, VerifiesNoOtherRunsTraining) {
  ASSERT_TRUE(TakeTrained());
  const fs::path left =
      folder_ / "runs/verify-record/verify-text-sparse-2-seed7";
  const fs::path of_another = RunFolder(0) / "checkpoint.h5";
  const auto verify = [&](const Strings& settings) {
    Strings run = {"run", "micro.toml", "--out", "other", "--rows", "sparse-2"};
    Strings record = {"record", "micro.toml", "--out", "other", "--to", "a.h5"};
    run.insert(run.end(), settings.begin(), settings.end());
    record.insert(record.end(), settings.begin(), settings.end());
    fs::remove(folder_ / "a.h5");
    Grid(run);  // too short for the invariants
    EXPECT_TRUE(EndedWith(Grid(record), 0));
    fs::create_directories(left);
    fs::copy(of_another, left);
    return Grid({"verify-record", "a.h5", "--run", "text/sparse-2/seed7"});
  };
  const ProgramResult same = verify({});
  EXPECT_TRUE(EndedWith(same, 0, "continuing after step 60/60", "PASS"));
  const ProgramResult config = verify({"--set", "training.steps=6"});
  EXPECT_TRUE(EndedWith(config, 0, "step 1/6", "PASS"));
  fs::remove_all(folder_ / "other");
  WriteFileAtomically(folder_ / "text.txt",
                      trainer::TestText(trainer::TestDocuments(601)));
  const ProgramResult tokens = verify({});
  EXPECT_TRUE(EndedWith(tokens, 0, "step 1/60", "PASS"));
}

TEST_F(GridMain, SaysOnceOfWhichTextsNothingIsKnown) {
  std::string lines;
  for (const std::string& text : trainer::TestDocuments(600)) {
    lines += nlohmann::json{{"text", text}}.dump() + "\n";
  }
  WriteFileAtomically(folder_ / "lines.jsonl", lines);
  std::string grid = MicroGrid(6);
  grid.replace(grid.find("path:text.txt"), 13, "jsonl:lines.jsonl");
  WriteGrid(grid);
  const std::string line =
      "corpus jsonl:lines.jsonl: all its runs are finished, so its text was "
      "not looked at";
  const Strings run = {"run", "micro.toml", "--rows", "sparse-2,star-1.5"};
  EXPECT_EQ(Count(Grid(run).output, line), 0);
  const ProgramResult again = Grid(run);
  EXPECT_TRUE(Says(again.output, "2 of 2 runs finished"));
  EXPECT_EQ(Count(again.output, line), 1);
  // The third row needs it.
  EXPECT_EQ(Count(Grid({"run", "micro.toml"}).output, line), 0);
}

TEST_F(GridMain, PathsStartWhereTheUserStands) {
  ::setenv("BUILD_WORKING_DIRECTORY", folder_.c_str(), 1);
  const auto run = RunProgram(
      {Program(), "run", "micro.toml", "--rows", "sparse-2", "--out", "mine"},
      "/");
  ::unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_TRUE(Says(run.output, "1 of 1 runs finished"));
  EXPECT_TRUE(fs::exists(RunFolder(0, "mine") / "result.h5"));
}

TEST_F(GridMain, NobodyCleansWhereOthersWork) {
  ASSERT_TRUE(TakeTrained());
  {
    const FolderLock lock(folder_ / "runs/micro");
    EXPECT_TRUE(EndedWith(Grid({"clean", "micro.toml", "--yes"}), 5,
                          "runs/micro",
                          "another process is working in this folder"));
  }
  {
    const FolderLock lock(RunFolder(0));
    EXPECT_TRUE(EndedWith(Grid({"clean", "micro.toml", "--yes"}), 5,
                          "another process"));
  }
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_TRUE(fs::exists(RunFolder(row) / "checkpoint.h5"));
  }
  EXPECT_TRUE(
      EndedWith(Grid({"clean", "micro.toml", "--yes"}), 0, "deleted 3"));
}

}  // namespace
}  // namespace softmoe::experiments
