// SPDX-License-Identifier: Apache-2.0
//
// Records of runs as a user meets them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "core/config/parameter_layout.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/run/run_record.h"
#include "experiments/testing/grid_test_util.h"
#include "golden/verdict/miniature.h"
#include "trainer/results/checkpoint.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

class GridRecord : public GridProgram {
 protected:
  ProgramResult Golden(Strings arguments) const {
    arguments.insert(arguments.begin(), fs::absolute("golden/golden").string());
    return RunProgram(arguments, folder_);
  }
};

TEST_F(GridRecord, RecordsWhatIsFinishedAndGrows) {
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml"}), 5, "no such folder"));
  ASSERT_TRUE(TakeTrained());
  fs::remove_all(RunFolder(1));
  fs::remove_all(RunFolder(2));
  EXPECT_TRUE(
      EndedWith(Grid({"record", "micro.toml", "--set", "training.steps=9"}), 5,
                "no run of grid 'micro'"));
  EXPECT_FALSE(fs::exists(folder_ / "golden"));
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml"}), 0,
                        "golden/runs/micro.h5: 1 of 3 planned runs: PARTIAL",
                        "missing: text/star-1.5/seed7, text/learned-1.5/seed7",
                        "1 runs are new"));
  const std::string partial = Bytes("golden/runs/micro.h5");

  // A run from another folder, without the first run.
  ASSERT_TRUE(TakeTrained("later"));
  fs::remove_all(RunFolder(0, "later"));
  // If the disk is full, the record stays as it was.
  EXPECT_TRUE(EndedWith(GridAfter("ulimit -f 8; trap '' XFSZ",
                                  {"record", "micro.toml", "--out", "later"}),
                        5, "golden/runs"));
  EXPECT_EQ(Bytes("golden/runs/micro.h5"), partial);
  EXPECT_EQ(FilesIn(folder_ / "golden/runs"), Strings{"micro.h5"});

  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--out", "later"}), 0,
                        "3 of 3 planned runs\n", "2 runs are new"));
  EXPECT_EQ(ReadRunRecord(folder_ / "golden/runs/micro.h5").runs.size(), 3u);
  // Golden judges the seeds of the grid's file.
  ASSERT_EQ(Grid({"run", "micro.toml", "--seeds", "8", "--rows", "sparse-2"})
                .exit_status,
            0);
  const auto more =
      Grid({"record", "micro.toml", "--seeds", "8", "--to", "more.h5"});
  EXPECT_TRUE(EndedWith(more, 0, "NOT JUDGED by golden", "micro.toml has other",
                        ": text/sparse-2/seed8\n"));

  std::string damaged = Bytes("golden/runs/micro.h5");
  damaged[damaged.size() / 2] ^= 1;
  WriteFileAtomically(folder_ / "golden/runs/micro.h5", damaged);
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml"}), 2,
                        "golden/runs/micro.h5", "get it from version control"));
  EXPECT_EQ(Bytes("golden/runs/micro.h5"), damaged);
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--to", "other.h5"}), 0,
                        "other.h5: 1 of 3 planned runs"));
}

TEST_F(GridRecord, CountsRecordedRunsAsFinished) {
  ASSERT_TRUE(TakeTrained());
  fs::remove_all(RunFolder(2));
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  const std::string line = "a.h5: 2 runs count as finished, of version ";
  // No run has trained in this folder.
  EXPECT_TRUE(EndedWith(
      Grid({"report", "micro.toml", "--from", "a.h5", "--out", "reported"}), 1,
      line, "instruction set v", "2 of 3 runs finished"));
  const std::string reported = Bytes("reported/results.h5");
  fs::remove_all(folder_ / "reported");
  EXPECT_TRUE(EndedWith(
      Grid({"report", "micro.toml", "--from", "a.h5", "--out", "reported"}), 1,
      line));
  EXPECT_EQ(Bytes("reported/results.h5"), reported);

  EXPECT_TRUE(EndedWith(
      Grid({"run", "micro.toml", "--from", "a.h5", "--out", "more"}), 0, line,
      "row 3/3 learned-1.5 finished", "3 of 3 runs finished"));
  EXPECT_FALSE(fs::exists(RunFolder(0, "more")));
  EXPECT_TRUE(fs::exists(RunFolder(2, "more") / "result.h5"));
  // The numbers are those of a grid that trained all of them.
  EXPECT_EQ(Bytes("more/results.h5"), Bytes("runs/micro/results.h5"));
  // What a record lacks cannot be measured, neither in a job nor on a
  // checkpoint that is here without its result.
  fs::create_directories(RunFolder(1, "more"));
  fs::copy_file(RunFolder(1) / "checkpoint.h5",
                RunFolder(1, "more") / "checkpoint.h5");
  WriteGrid(MicroGrid(60) + "[evaluations]\nrouter_health = true\n");
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--from", "a.h5", "--out", "more",
                      "--jobs", "2"}),
                0, "text/star-1.5/seed7 was not measured (router health): ",
                "a.h5: a record has no checkpoints; leave out --from",
                "3 of 3 runs finished"));
  WriteGrid(MicroGrid(60));

  // Other tokens: the runs are trained again. Other settings: no recorded run
  // fits.
  WriteFileAtomically(folder_ / "text.txt",
                      Bytes("text.txt") + "\n\nOne document more.\n");
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--from", "a.h5", "--out", "other"}),
                0, "does not count as finished",
                "a.h5: 0 runs count as finished", "row 1/3 sparse-2 finished"));
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml", "--from", "a.h5", "--out",
                              "none", "--set", "training.steps=9"}),
                        5, "no run of grid 'micro'"));
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml", "--from", "none.h5"}), 5,
                        "none.h5"));
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml", "--from", "text.txt"}), 2,
                        "text.txt"));
}

TEST_F(GridRecord, VerifiesByTrainingAgain) {
  ASSERT_TRUE(TakeTrained());
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  const Strings verify = {"verify-record", "a.h5", "--run",
                          "text/learned-1.5/seed7", "--quiet"};
  EXPECT_TRUE(EndedWith(Grid(verify), 0, "PASS: the same bits"));
  EXPECT_EQ(FilesIn(folder_ / "runs/verify-record"), Strings{});

  // As if one step had other bits, which the thinned curve need not contain.
  RunRecord record = ReadRunRecord(folder_ / "a.h5");
  for (RecordedRun& run : record.runs) {
    char& digit = run.training_sha256[0];
    digit = digit == '0' ? '1' : '0';
  }
  WriteRunRecord(record);
  EXPECT_TRUE(EndedWith(Grid(verify), 1, "FAIL: other bits", "--changed-by"));

  EXPECT_TRUE(EndedWith(
      Grid({"verify-record", "a.h5", "--run", "text/lerned-1.5/seed7"}), 2,
      "did you mean 'text/learned-1.5/seed7'?"));
  Strings excused = verify;
  excused.insert(excused.end(), {"--changed-by", "fedcba9876543210"});
  EXPECT_TRUE(EndedWith(Grid(excused), 2, "CHANGELOG.md names no such commit"));
  excused.back() = "17da5c94";  // tau among equal weights
  EXPECT_TRUE(EndedWith(Grid(excused), 4, "other bits since 17da5c94"));
  WriteFileAtomically(folder_ / "text.txt", Bytes("text.txt") + "More.\n");
  EXPECT_TRUE(EndedWith(Grid(verify), 2, "other token files"));
}

// A checkpoint with other parameters tells whether training went on from it.
TEST_F(GridRecord, VerifiesByThisVersionAlone) {
  ASSERT_TRUE(TakeTrained());
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  const trainer::Checkpoint trained(RunFolder(2) / "checkpoint.h5");
  const auto verify_after = [&](const std::string& version) {
    trainer::TrainState state = trained.state();
    state.code_version = version;
    trainer::CheckpointTensors tensors =
        trained.ReadTensors(ParameterLayout(trained.identity().config).total);
    for (float& parameter : tensors.parameters) parameter /= 2;
    const fs::path folder =
        folder_ / "runs/verify-record/verify-text-learned-1.5-seed7";
    fs::create_directories(folder);
    trainer::WriteCheckpoint(folder / "checkpoint.h5", trained.identity(),
                             trained.tokens(), state, tensors);
    return Grid({"verify-record", "a.h5", "--run", "text/learned-1.5/seed7",
                 "--quiet"});
  };
  EXPECT_TRUE(EndedWith(verify_after(trained.state().code_version), 1,
                        "FAIL: other bits"));
  EXPECT_TRUE(EndedWith(verify_after("0123456789ab"), 0, "PASS"));
  const fs::path folder =
      folder_ / "runs/verify-record/verify-text-learned-1.5-seed7";
  fs::create_directories(folder);
  WriteFileAtomically(folder / "checkpoint.h5", "of no format");
  EXPECT_TRUE(EndedWith(Grid({"verify-record", "a.h5", "--run",
                              "text/learned-1.5/seed7", "--quiet"}),
                        0, "PASS"));
}

TEST_F(GridRecord, JudgesTheClaimsInMiniature) {
  WriteMini(MicroMini());
  const Strings verdicts = {"No reproduction of the paper",
                            "runs     6 of 76 planned", "C1a    INTERIM (",
                            "H2          INTERIM (NOT_TESTABLE so far)"};
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml"}), 0, verdicts));
  const std::string claims = Bytes("runs/mini/claims.txt");
  EXPECT_TRUE(Says(Bytes("runs/mini/report.html"), "Claims in miniature"));
  EXPECT_TRUE(
      Says(Bytes("runs/mini/claims.csv"), "C1a.group,NOT_TESTABLE,gcide,"));
  // Other settings make it another grid.
  const auto other = Grid(
      {"run", "micro.toml", "--set", "training.steps=9", "--out", "other"});
  EXPECT_FALSE(Says(other.output, "miniature"));
  EXPECT_FALSE(fs::exists(folder_ / "other/claims.txt"));

  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml"}), 0,
                        "golden/runs/mini.h5: 6 of 6 planned runs\n",
                        "golden/runs/mini_verdicts.txt"));
  EXPECT_EQ(Bytes("golden/runs/mini_verdicts.txt"), claims);
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml", "--from",
                              "golden/runs/mini.h5", "--out", "told"}),
                        0, verdicts));
  EXPECT_EQ(Bytes("told/claims.txt"), claims);
  EXPECT_EQ(Bytes("told/claims.csv"), Bytes("runs/mini/claims.csv"));
  EXPECT_EQ(Bytes("told/results.h5"), Bytes("runs/mini/results.h5"));
  Strings said = verdicts;
  said.insert(said.end(),
              {"OVERALL NOT_COMPARABLE", "C2     INTERIM (", "C3     INTERIM (",
               "C4     INTERIM (", "C5     INTERIM (", "C6     INTERIM (",
               "C7     INTERIM (", "H1          INTERIM ("});
  EXPECT_TRUE(EndedWith(Golden({"compare", "golden/runs/mini.h5"}), 3, said));
  // Recording again changes nothing.
  const std::string record = Bytes("golden/runs/mini.h5");
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--renew"}), 0,
                        "0 runs are new"));
  EXPECT_EQ(Bytes("golden/runs/mini.h5"), record);
  // Neither does recording some of its runs again.
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--seeds", "1234"}), 0,
                        "0 runs are new"));
  EXPECT_EQ(Bytes("golden/runs/mini.h5"), record);
  EXPECT_EQ(Bytes("golden/runs/mini_verdicts.txt"), claims);
}

TEST_F(GridRecord, TakesInABenchmark) {
  WriteMini(MicroMini());
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "sparse-2"}).exit_status, 0);
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  const std::string before = Bytes("a_verdicts.txt");
  const auto bench = [](double speed) {
    std::string samples;
    for (const auto& [name, experts] :
         {std::pair<std::string, double>{"soft_ae1", 1},
          {"soft_ae1.5", 1.5},
          {"soft_ae2", 2},
          {"soft_ae3", 3},
          {"soft_ae4", 4}}) {
      for (int repetition = 0; repetition < 3; ++repetition) {
        samples += fmt::format(
            R"({}{{"name": "mini/{}/real_time", "run_type": "iteration", )"
            R"("repetition_index": {}, "active_experts": {}, "tokens/s": {}, )"
            R"("label": "layers=10 d_model=128 heads=4 d_ffn=256 experts=16 )"
            R"(vocab=2048 length=128 sequences=16"}})",
            samples.empty() ? "" : ",", name, repetition, experts,
            speed / experts + repetition);
      }
    }
    return R"({"benchmarks": [)" + samples + "]}";
  };
  WriteFileAtomically(folder_ / "bench.json", bench(1000));
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--renew", "--to", "a.h5",
                              "--bench", "bench.json"}),
                        0, "0 runs are new"));
  EXPECT_NE(Bytes("a_verdicts.txt"), before);
  EXPECT_TRUE(
      Says(Bytes("a_verdicts.txt"), "H2          INTERIM (SHOWN so far)"));
  EXPECT_TRUE(EndedWith(
      Grid({"report", "micro.toml", "--from", "a.h5", "--out", "told"}), 1,
      "H2          INTERIM (SHOWN so far)"));
  EXPECT_EQ(Bytes("told/claims.txt"), Bytes("a_verdicts.txt"));
  EXPECT_TRUE(EndedWith(Golden({"compare", "a.h5"}), 3,
                        "H2          INTERIM (SHOWN so far)"));
  // A second benchmark is refused: nobody may choose between two.
  const std::string record = Bytes("a.h5");
  WriteFileAtomically(folder_ / "bench.json", bench(2000));
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--renew", "--to", "a.h5",
                              "--bench", "bench.json"}),
                        2, "a.h5: has a different benchmark"));
  EXPECT_EQ(Bytes("a.h5"), record);
}

// A record keeps the definitions under which it was begun.
TEST_F(GridRecord, KeepsTheMarginsUnderWhichItsRunsWereRecorded) {
  WriteMini(MicroMini());
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "sparse-2"}).exit_status, 0);
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  EXPECT_FALSE(Says(Bytes("a_verdicts.txt"), "after the fact"));
  RunRecord record = ReadRunRecord(folder_ / "a.h5");
  const std::string earlier = golden::LoadMiniatureClaims().history[0].hash;
  record.margins_sha256 = earlier;
  WriteRunRecord(record);
  EXPECT_TRUE(
      EndedWith(Grid({"record", "micro.toml", "--to", "a.h5", "--renew"}), 0,
                "0 runs are new"));
  EXPECT_EQ(ReadRunRecord(folder_ / "a.h5").margins_sha256, earlier);
  EXPECT_TRUE(Says(Bytes("a_verdicts.txt"), ", after the fact"));
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "softmoe-1.5-calibrated"})
                .exit_status,
            0);
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--to", "a.h5"}), 0));
  EXPECT_EQ(ReadRunRecord(folder_ / "a.h5").margins_sha256, earlier);
  EXPECT_TRUE(EndedWith(Golden({"compare", "a.h5"}), 3, ", after the fact"));
  EXPECT_TRUE(EndedWith(
      Grid({"report", "micro.toml", "--from", "a.h5", "--out", "told"}), 1,
      ", after the fact"));
}

TEST_F(GridRecord, RefusesOtherMargins) {
  WriteMini(MicroMini());
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "sparse-2"}).exit_status, 0);
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  RunRecord record = ReadRunRecord(folder_ / "a.h5");
  record.margins_sha256 = std::string(64, '0');
  WriteRunRecord(record);
  const Strings refused = {"a.h5 was recorded under other margins",
                           "judge it with the version that recorded it"};
  EXPECT_TRUE(
      EndedWith(Grid({"report", "micro.toml", "--from", "a.h5"}), 2, refused));
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--from", "a.h5"}), 2, refused));
  EXPECT_TRUE(
      EndedWith(Grid({"record", "micro.toml", "--to", "a.h5"}), 2, refused));
  EXPECT_TRUE(EndedWith(
      Grid({"record", "micro.toml", "--to", "a.h5", "--renew"}), 2, refused));
}

// Its summary would be that of the other grid, without these runs.
TEST_F(GridRecord, IsNoOtherGrids) {
  ASSERT_TRUE(TakeTrained());
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  const std::string record = Bytes("a.h5");
  WriteGrid(Replaced(MicroGrid(60), "id = \"text\"", "id = \"other\""));
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "sparse-2"}).exit_status, 0);
  for (const Strings& more : {Strings{}, Strings{"--renew"}}) {
    Strings arguments = {"record", "micro.toml", "--to", "a.h5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_TRUE(EndedWith(Grid(arguments), 2,
                          "a.h5: has no run of a row of grid 'micro'",
                          "such as text/learned-1.5/seed7"));
  }
  EXPECT_EQ(Bytes("a.h5"), record);
}

TEST_F(GridRecord, TheRegimeHasARecordOfItsOwn) {
  WriteMini(MicroRegime());
  const Strings regime = {"regime", "--scale=micro.toml"};
  const auto of_regime = [&](Strings words, const Strings& more = {}) {
    words.insert(words.end(), regime.begin(), regime.end());
    words.insert(words.end(), more.begin(), more.end());
    return Grid(words);
  };
  // A sparse run that main has trained and recorded is taken from main's
  // record.
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "sparse-2"}).exit_status, 0);
  ASSERT_EQ(Grid({"record", "micro.toml"}).exit_status, 0);
  fs::remove_all(folder_ / "runs");
  const Strings from = {"--from", "golden/runs/mini.h5"};
  const auto run = of_regime({"run"}, {"--from", "golden/runs/mini.h5",
                                       "--rows", "regime-1.5,sparse-2"});
  EXPECT_TRUE(EndedWith(run, 0, "1 runs count as finished",
                        "26 of 26 runs finished", "The experiment regime",
                        "INTERIM"));
  // Pilots first, then seed by seed.
  EXPECT_LT(run.output.find("regime-1.5/seed7002 finished"),
            run.output.find("regime-1.5/seed1234 finished"));
  EXPECT_LT(run.output.find("regime-1.5/seed1234 finished"),
            run.output.find("sparse-2/seed1235 finished"));
  EXPECT_TRUE(fs::exists(folder_ / "runs/mini/regime/differences.csv"));

  // Without the other record one run is missing; it is added later.
  EXPECT_TRUE(
      EndedWith(of_regime({"record"}), 0,
                "golden/runs/regime.h5: 25 of 120 planned runs: PARTIAL",
                "25 runs are new", "golden/runs/regime_verdicts.txt"));
  EXPECT_TRUE(EndedWith(of_regime({"record"}, from), 0,
                        "26 of 120 planned runs", "1 runs are new"));
  EXPECT_TRUE(EndedWith(of_regime({"record"}), 0, "0 runs are new"));
  const std::string record = Bytes("golden/runs/regime.h5");
  const std::string verdicts = Bytes("golden/runs/regime_verdicts.txt");
  EXPECT_TRUE(Says(verdicts, "INTERIM"));
  EXPECT_TRUE(
      EndedWith(of_regime({"report"},
                          {"--from", "golden/runs/regime.h5", "--out", "told"}),
                1, "26 runs count as finished", "26 of 120 runs finished"));
  EXPECT_EQ(Bytes("told/regime/claims.txt"), verdicts);
  EXPECT_TRUE(
      EndedWith(of_regime({"record"}, {"--renew"}), 0, "0 runs are new"));
  EXPECT_EQ(Bytes("golden/runs/regime.h5"), record);
  EXPECT_TRUE(EndedWith(Golden({"compare", "golden/runs/regime.h5"}), 3,
                        "The experiment regime", "INTERIM"));
  EXPECT_TRUE(EndedWith(Grid({"verify-record", "golden/runs/regime.h5", "--run",
                              "gcide/regime-1.5/seed7001", "--quiet"}),
                        0, "PASS: the same bits"));

  // Runs that deviate from the frozen definitions are refused.
  EXPECT_TRUE(EndedWith(of_regime({"record"}, {"--set", "training.steps=9"}), 2,
                        "with the settings of its rows"));
  EXPECT_TRUE(EndedWith(
      of_regime({"run"}, {"--seeds", "99", "--rows", "sparse-1"}), 0));
  EXPECT_TRUE(
      EndedWith(of_regime({"record"}, {"--seeds", "99"}), 2,
                "gcide/sparse-1/seed99 is neither a judged run nor a pilot"));
  EXPECT_TRUE(
      EndedWith(Grid({"record", "micro.toml", "--to", "golden/runs/regime.h5",
                      "--from", "golden/runs/mini.h5"}),
                2, "is a record of the experiment regime"));
  EXPECT_TRUE(EndedWith(of_regime({"record"}, {"--to", "golden/runs/mini.h5"}),
                        2, "is not a record of the experiment regime"));
  EXPECT_TRUE(EndedWith(
      of_regime({"record"}, {"--renew", "--to", "golden/runs/mini.h5"}), 2,
      "is not a record of the experiment regime"));
  EXPECT_TRUE(EndedWith(Grid({"record", "micro.toml", "--renew", "--to",
                              "golden/runs/regime.h5"}),
                        2, "is a record of the experiment regime"));
  EXPECT_EQ(Bytes("golden/runs/regime.h5"), record);

  // The rows have other settings than the recorded ones.
  std::string other = MicroRegime();
  other.replace(other.find("steps = 60"), 10, "steps = 50");
  WriteMini(other);
  EXPECT_TRUE(
      EndedWith(of_regime({"report"}, {"--from", "golden/runs/regime.h5"}), 2,
                "was recorded with other settings than its row has now",
                "training.steps"));
  WriteMini(MicroRegime());

  // The definitions differ.
  RunRecord margins = ReadRunRecord(folder_ / "golden/runs/regime.h5");
  margins.margins_sha256 = std::string(64, '0');
  WriteRunRecord(margins);
  for (const char* command : {"run", "report"}) {
    EXPECT_TRUE(
        EndedWith(of_regime({command}, {"--from", "golden/runs/regime.h5"}), 2,
                  "other definitions of the experiment regime"));
  }
  EXPECT_TRUE(EndedWith(of_regime({"record"}), 2,
                        "other definitions of the experiment regime"));
}

TEST_F(GridRecord, PlansSayWhatCanBeShown) {
  // Nearly equal scores, whose quadrature takes no time.
  const auto flat = [](const std::string& toml) {
    return Replaced(toml, "init_std = 0.2", "init_std = 1e-30");
  };
  WriteMini(flat(MicroMini()));
  EXPECT_TRUE(EndedWith(Grid({"plan", "micro.toml"}), 4,
                        "Power: what these runs can show", "C1a.group",
                        "NOT READY C6: C6.hellaswag cannot be SHOWN",
                        "--exploratory"));
  EXPECT_TRUE(EndedWith(Grid({"plan", "micro.toml", "--exploratory"}), 0,
                        "NOT READY C6"));
  EXPECT_TRUE(EndedWith(Grid({"plan", "micro.toml", "--from", "none.h5"}), 5,
                        "none.h5"));
  EXPECT_TRUE(EndedWith(Grid({"plan", "micro.toml", "--from", "text.txt"}), 2,
                        "text.txt"));
  // Other settings and other grids have no claims to judge.
  const auto other = Grid({"plan", "micro.toml", "--set", "training.steps=9"});
  EXPECT_TRUE(EndedWith(other, 0));
  EXPECT_FALSE(Says(other.output, "Power"));
  WriteMini(flat(MicroRegime()));
  EXPECT_TRUE(EndedWith(Grid({"plan", "regime", "--scale=micro.toml"}), 0,
                        "primary", "SUPERIOR", "READY: every claim"));
}

}  // namespace
}  // namespace softmoe::experiments
