// SPDX-License-Identifier: Apache-2.0
//
// //:train and //:evaluate as a user meets them: exit codes, messages, files.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/files/atomic_file.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/text/progress.h"
#include "core/text/text_table.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/resources.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/testing/rank_test_util.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/prepare.h"

namespace softmoe::trainer {
namespace {

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = FreshFolder(std::string("cli_") + test->name());
    tokens_ = WriteTinyTokens(folder_ / "data");
    Config config = TinyConfig(RouterKind::kSoftLearned);
    std::ofstream(folder_ / "tiny.toml") << ConfigToToml(config);
    run_ = folder_ / "run";
  }

  static std::string Binary(const std::string& name) {
    return std::filesystem::absolute("trainer/" + name).string();
  }
  Strings TrainCommand(const Strings& more = {}) const {
    Strings command = {Binary("run/train"), "--config", "tiny.toml",  "--data",
                       tokens_.string(),    "--out",    run_.string()};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  ProgramResult Train(const Strings& more = {}) const {
    return RunProgram(TrainCommand(more), folder_);
  }
  ProgramResult Evaluate(const Strings& more = {}) const {
    Strings command = {Binary("evaluation/evaluate"), "--run", run_.string()};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, folder_);
  }
  // Runs `script` in the shell.
  ProgramResult Shell(const std::string& script) const {
    return RunProgram({"sh", "-c", script}, folder_);
  }
  // Begins or resumes a run that is too long to end before `signal`, which
  // comes once the metrics file has more than `steps` steps and the shell has
  // run `meanwhile`. (Still more steps would need gigabytes of disk space.)
  ProgramResult TrainUntil(const std::string& signal, int64_t steps,
                           const std::string& log_every,
                           const std::string& redirection = "",
                           const std::string& meanwhile = "") const {
    const Strings endless = {"--set",       "training.steps=1000000",
                             "--threads",   "1",
                             "--log-every", log_every};
    const std::string metrics = "'" + (run_ / "metrics.jsonl").string() + "'";
    return Shell(Quoted(TrainCommand(endless)) + redirection +
                 "& pid=$!; trap \"kill -9 $pid\" EXIT; " + meanwhile +
                 "until test -e " + metrics + " && test $(wc -l < " + metrics +
                 ") -gt " + std::to_string(steps + 1) +
                 "; do kill -0 $pid || exit 99; sleep 0.02; done; kill -" +
                 signal + " $pid; wait $pid; code=$?; trap - EXIT; exit $code");
  }
  static std::string Quoted(const Strings& command) {
    std::string text;
    for (const std::string& word : command) text += "'" + word + "' ";
    return text;
  }

  std::filesystem::path folder_, tokens_, run_;
};

TEST_F(Cli, TrainsAndEvaluates) {
  const ProgramResult train = Train({"--set", "router.temperature_end=2"});
  ASSERT_TRUE(EndedWith(train, 0));
  const RunResult result = ReadRunResult(run_ / "result.h5");
  const Validation& at_end = result.final_validation;
  // Two layers with a cap of 3, two batches of 4 * 16 tokens.
  EXPECT_TRUE(Says(
      train.output, "* model.d_model ",
      fmt::format("\ntau = {:.4f}, calibrated on 2 batches: ", result.tau),
      " of 768 soft weights above it\n", "\nstep 1/12 | loss ",
      "\nstep 10/12 | loss ", "\nstep 12/12 | loss ",
      fmt::format(
          "\nvalidation after step 12 | {} at T 1, {} at T 2.00 | {} | "
          "{} | {}\n",
          Titled(metrics::kLoss, at_end.loss),
          Shown(metrics::kLoss, result.at_schedule_temperature.loss),
          Titled(metrics::kActiveExperts, at_end.active_experts),
          Titled(metrics::kZeroActiveFraction, at_end.zero_active_fraction),
          Titled(metrics::kRelativeLoadVariance,
                 at_end.relative_load_variance)),
      "\n\n" + ReportLine(metrics::kValLoss, at_end.loss) +
          ReportLine(metrics::kUnigramLoss, result.unigram_loss) +
          ReportLine(metrics::kTrainAe, result.train_ae) +
          ReportLine(metrics::kInferAe, at_end.active_experts) +
          ReportLine(metrics::kRunSeconds, result.seconds) +
          fmt::format("{:<22}{}\n", "result", (run_ / "result.h5").string())));
  EXPECT_EQ(Count(train.output, "\nstep "), 3);

  const ProgramResult text = Evaluate();
  EXPECT_TRUE(EndedWith(text, 0, "soft_learned after 12 steps"));

  const ProgramResult same = Evaluate({"--json"});
  ASSERT_TRUE(EndedWith(same, 0));
  const auto json = nlohmann::json::parse(same.output);
  // Measuring the checkpoint again gives the run's bits.
  EXPECT_EQ(json.at("loss"), result.final_validation.loss);
  EXPECT_EQ(json.at("active_experts"), result.final_validation.active_experts);
  EXPECT_EQ(json.at("tokens_per_expert"),
            result.final_validation.tokens_per_expert);
  EXPECT_EQ(json.at("tau"), result.tau);
  EXPECT_EQ(json.at("other_tokens"), false);

  const ProgramResult strict = Evaluate({"--json", "--tau", "1000"});
  ASSERT_TRUE(EndedWith(strict, 0));
  EXPECT_EQ(nlohmann::json::parse(strict.output).at("active_experts"), 0.0);

  const auto other = WriteTinyTokens(folder_ / "other", 2);
  const ProgramResult elsewhere =
      Evaluate({"--json", "--data", other.string()});
  ASSERT_TRUE(EndedWith(elsewhere, 0));
  EXPECT_EQ(nlohmann::json::parse(elsewhere.output).at("other_tokens"), true);
  EXPECT_NE(nlohmann::json::parse(elsewhere.output).at("loss"),
            result.final_validation.loss);
}

// Uses tokens that come with their tokenizer.
TEST_F(Cli, PreparesACorpusSaysHowManyBytesATokenHasAndAsksTasks) {
  DataConfig data;
  data.corpus = "path:" + (folder_ / "text.txt").string();
  WriteFileAtomically(folder_ / "text.txt", TestText(TestDocuments(300)));
  const ProgramResult train = RunProgram(
      {"env", "XDG_CACHE_HOME=" + folder_.string(), Binary("run/train"),
       "--config", "tiny.toml", "--corpus", data.corpus, "--out", run_.string(),
       "--set", "model.vocab_size=400", "--set", "training.steps=2"},
      folder_);
  ASSERT_TRUE(EndedWith(train, 0, "prepare: encoding, bytes of files "));
  tokens_ =
      PrepareCorpus(data, 400, {.cache = folder_ / "softmoe", .quiet = true})
          .prefix;
  const RunResult result = ReadRunResult(run_ / "result.h5");
  EXPECT_TRUE(Says(
      train.output,
      ReportLine(metrics::kValLossPerByte, result.val_loss_per_byte.value()),
      ReportLine(metrics::kValBytesPerToken,
                 result.val_bytes_per_token.value())));
  EXPECT_TRUE(EndedWith(
      Train({"--set", "model.vocab_size=400", "--set", "data.corpus=gcide"}), 2,
      "tokens of corpus 'path:", "but data.corpus is 'gcide'"));

  std::ofstream(folder_ / "valid.jsonl")
      << R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 0})";
  const Strings ask = {"--task", "piqa",  "--task-files",
                       ".",      "--out", "answers"};
  EXPECT_TRUE(EndedWith(Evaluate(ask), 0, "acc_norm", "1 of the 1838 items"));
  EXPECT_EQ(Evaluate(Joined(ask, {"--json"})).output,
            ReadWholeFile(folder_ / "answers/results.json"));
}

// --dry-run refuses them, too.
TEST_F(Cli, RefusesTokensOfAnotherPartOrFormOfTheText) {
  DataConfig data;
  data.corpus = "path:" + (folder_ / "text.txt").string();
  data.max_bytes = 20000;
  WriteFileAtomically(folder_ / "text.txt", TestText(TestDocuments(300)));
  tokens_ =
      PrepareCorpus(data, 400, {.cache = folder_ / "cache", .quiet = true})
          .prefix;
  const auto plan = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--dry-run", "--set", "model.vocab_size=400",
                               "--set", "data.corpus=" + data.corpus});
    return Train(more);
  };
  EXPECT_TRUE(EndedWith(plan({"--set", "data.max_bytes=20000"}), 0));
  EXPECT_TRUE(
      EndedWith(plan({}), 2, "with --max-bytes 20000", "data.max_bytes is 0"));
  EXPECT_TRUE(EndedWith(plan({"--set", "data.max_bytes=20000", "--set",
                              "data.normalise=hf_openwebtext"}),
                        2, "with --normalise none",
                        "data.normalise is hf_openwebtext"));
  EXPECT_TRUE(EndedWith(plan({"--set", "model.vocab_size=500"}), 2,
                        "a vocabulary of 400"));
}

TEST_F(Cli, HandsOutParametersAndTraces) {
  const ProgramResult train = Train({"--export", "model.safetensors"});
  ASSERT_TRUE(EndedWith(train, 0, "model.safetensors"));
  const auto exported = folder_ / "model.safetensors";
  const std::string bytes = ReadWholeFile(exported);
  EXPECT_TRUE(Says(bytes, "\"layers.1.router_weight\""));
  // A finished run is not trained again.
  std::filesystem::remove(exported);
  ASSERT_TRUE(EndedWith(Train({"--export", "model.safetensors"}), 0));
  EXPECT_TRUE(ReadWholeFile(exported) == bytes);
  EXPECT_EQ(Train({"--export", "x", "--dry-run"}).exit_status, 2);

  const ProgramResult evaluate =
      Evaluate({"--trace", "3", "--out", "out", "--json"});
  ASSERT_TRUE(EndedWith(evaluate, 0));
  EXPECT_EQ(nlohmann::json::parse(evaluate.output).at("num_tokens"), 48);
  EXPECT_EQ(FilesIn(folder_ / "out"), Strings{"trace.h5"});
  EXPECT_EQ(Evaluate({"--trace", "3", "--out", "out"}).exit_status, 0);
  WriteFileAtomically(folder_ / "out/trace.h5", "notes");
  EXPECT_TRUE(EndedWith(Evaluate({"--trace", "3", "--out", "out"}), 2,
                        "out/trace.h5: already exists and is no trace"));
  EXPECT_EQ(ReadWholeFile(folder_ / "out/trace.h5"), "notes");
  for (const Strings& more : std::vector<Strings>{
           {"--trace", "3"},
           {"--trace", "0", "--out", "out"},
           {"--trace", "3", "--out", "out", "--sequences", "3"},
           {"--trace", "3", "--out", "out", "--task", "piqa"}}) {
    EXPECT_EQ(Evaluate(more).exit_status, 2) << Quoted(more);
  }
}

TEST_F(Cli, ExportsTheParametersOfItsResultAlone) {
  ASSERT_EQ(Train().exit_status, 0);
  const std::filesystem::path run = std::exchange(run_, folder_ / "other");
  ASSERT_EQ(Train({"--set", "training.seed=77"}).exit_status, 0);
  const auto keep = folder_ / "kept.h5";
  std::filesystem::rename(run / "checkpoint.h5", keep);
  std::filesystem::copy_file(run_ / "checkpoint.h5", run / "checkpoint.h5");
  run_ = run;
  EXPECT_TRUE(EndedWith(Train({"--export", "x"}), 2,
                        (run / "checkpoint.h5").string(),
                        "are of different runs"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
  std::filesystem::rename(keep, run / "checkpoint.h5");
  EXPECT_EQ(Train({"--export", "x"}).exit_status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "x"));
}

// The refusal comes before anything is trained.
TEST_F(Cli, ExportsReplaceNothingElse) {
  const std::string toml = ReadWholeFile(folder_ / "tiny.toml");
  for (const std::string other : {"tiny.toml", "data/tokens.bin"}) {
    EXPECT_TRUE(EndedWith(Train({"--export", other}), 2, "--export ", other,
                          "not a safetensors file"));
  }
  EXPECT_EQ(ReadWholeFile(folder_ / "tiny.toml"), toml);
  for (const char* own : {"run/checkpoint.h5", "run/result.h5"}) {
    EXPECT_TRUE(EndedWith(Train({"--export", own}), 2, own, "name another"));
  }
  EXPECT_TRUE(EndedWith(Train({"--export", "none/x"}), 5, "none/x"));
  EXPECT_FALSE(std::filesystem::exists(run_));
  // Exports into the run's folder before that exists, and once more.
  for (int times = 0; times < 2; ++times) {
    EXPECT_TRUE(EndedWith(Train({"--export", "run/x.safetensors"}), 0));
  }
  EXPECT_TRUE(EndedWith(Train({"--export", "run/checkpoint.h5"}), 2));
  EXPECT_EQ(Train().exit_status, 0);
}

TEST_F(Cli, WarnsOnceOfTokensWithoutAnExpertAtTheStart) {
  const auto warnings = [&](const Strings& more) {
    std::filesystem::remove_all(run_);
    const ProgramResult result = Train(more);
    EXPECT_TRUE(EndedWith(result, 0));
    return Count(result.output, "these tokens have no expert");
  };
  EXPECT_EQ(warnings({}), 0);
  EXPECT_EQ(warnings({"--set", "router.tau=1000"}), 1);
  EXPECT_EQ(
      warnings({"--set", "router.tau=1000", "--set", "router.fallback=top1"}),
      0);
}

TEST_F(Cli, MoreHeldOutSequencesThanThereAreMeansAll) {
  const Strings many = {"--set", "training.eval_sequences=1000000"};
  const ProgramResult train = Train(many);
  ASSERT_TRUE(EndedWith(train, 0));
  const ProgramResult all = Evaluate({"--json", "--sequences", "0"});
  ASSERT_TRUE(EndedWith(all, 0));
  // 2^40, which is the most.
  const ProgramResult more =
      Evaluate({"--json", "--sequences", "1099511627776"});
  EXPECT_TRUE(EndedWith(more, 0));
  EXPECT_EQ(more.output, all.output);
}

TEST_F(Cli, HelpTeaches) {
  for (const char* name : {"run/train", "evaluation/evaluate"}) {
    const ProgramResult help = RunProgram({Binary(name), "--help"}, folder_);
    EXPECT_TRUE(EndedWith(help, 0, "Examples:", "Exit codes:", "--data"));
    EXPECT_EQ(Shell("'" + Binary(name) + "' --help > /dev/full").exit_status,
              5);
  }
}

TEST_F(Cli, DryRunPrintsThePlanAndWritesNothing) {
  const ProgramResult plan = Train({"--dry-run"});
  Config config = TinyConfig(RouterKind::kSoftLearned);
  const ResourceNeed need = EstimateResources(config);
  // Warm-up ends at step 1.2; 768 soft weights are ranked.
  EXPECT_TRUE(EndedWith(
      plan, 0, "config hash",
      fmt::format(
          "\noutput folder    {}\ntokens           {}\nparameters       {}\n"
          "training tokens  768 in 12 steps of 64: 2 balance groups of 2 "
          "sequences\n"
          "memory           {} for parameters, gradients, moments and a "
          "checkpoint, 3.0 KiB to calibrate tau; without activations\n"
          "disk             {} (a checkpoint has {})\n"
          "schedules        step: learning rate, temperature\n"
          "                        0: 0.000e+00, 5.000\n"
          "                        1: 8.333e-03, 4.932\n"
          "                        3: 9.337e-03, 4.414\n"
          "                        6: 5.910e-03, 3.000\n"
          "                        9: 1.868e-03, 1.586\n"
          "                       12: 1.000e-04, 1.000\n",
          run_.string(), tokens_.string(), need.parameters,
          FormatBytes(need.state_bytes), FormatBytes(need.disk_bytes),
          FormatBytes(need.checkpoint_bytes))));
  EXPECT_FALSE(std::filesystem::exists(run_));
  // --dry-run reports what the run would find missing at once.
  const auto without_text = [&](const Strings& text) {
    return RunProgram(
        Joined({"/usr/bin/env", "XDG_CACHE_HOME=" + folder_.string(),
                Binary("run/train"), "--config", "tiny.toml", "--dry-run"},
               text),
        folder_);
  };
  EXPECT_TRUE(EndedWith(without_text({"--data", "missing"}), 5, "missing."));
  EXPECT_TRUE(
      EndedWith(without_text({"--corpus", "path:missing"}), 5, "missing"));
  EXPECT_TRUE(EndedWith(without_text({"--corpus", "gcdie"}), 2,
                        "no such corpus", "gcide"));
  config.data.corpus = "gcide";
  EXPECT_TRUE(EndedWith(without_text({"--corpus", "gcide"}), 0,
                        "prepared from gcide",
                        "/runs/train/tiny-" + ConfigHash(config) + "\n"));
  EXPECT_TRUE(
      EndedWith(without_text({"--corpus", "owt", "--place", "owt=nowhere"}), 5,
                "/nowhere: there are no"));
  // Without a calibration and a warm-up.
  const ProgramResult ranks =
      Train({"--dry-run", "--ranks", "2", "--silence-limit", "86400", "--set",
             "router.tau=1.5", "--set", "training.warmup_fraction=0"});
  EXPECT_TRUE(
      Says(ranks.output, "checkpoint; without activations\n",
           "exchange         auto: between ranks over NCCL where each has",
           "temperature\n                        0: 1.000e-02, 5.000\n"
           "                        3: "));
  const ProgramResult host = Train({"--dry-run", "--ranks", "2", "--exchange",
                                    "host", "--silence-limit", "0"});
  EXPECT_TRUE(
      Says(host.output, "exchange         host: through memory of the host\n"));
  EXPECT_TRUE(Says(
      Train({"--dry-run", "--ranks", "3", "--set",
             "training.global_batch_sequences=12"})
          .output,
      "3 ranks add the gradients of 6 balance groups in an order of their own: "
      "the result is specific to 3 ranks, and only 3 ranks can resume this "
      "run\n"));
}

TEST_F(Cli, RanksLeaveWhatOneProcessLeaves) {
  ASSERT_EQ(Train().exit_status, 0);
  const auto alone = folder_ / "alone";
  std::filesystem::rename(run_, alone);
  const ProgramResult ranks = Train({"--ranks", "2"});
  ASSERT_TRUE(EndedWith(ranks, 0));
  // The lines of one rank are printed, and only once.
  const std::string last = "step 12/12 | loss ";
  EXPECT_TRUE(Says(ranks.output, last));
  EXPECT_EQ(ranks.output.find(last), ranks.output.rfind(last));
  ExpectSameResult(ReadRunResult(alone / "result.h5"),
                   ReadRunResult(run_ / "result.h5"));
  ExpectSameTensors(alone / "checkpoint.h5", run_ / "checkpoint.h5");
}

// The estimate uses the recent mean, in which each new step weighs a tenth.
TEST_F(Cli, EstimatesTheRemainingTimeFromItsSteps) {
  const ProgramResult train = TrainUntil("TERM", 4, "1");
  ASSERT_TRUE(EndedWith(train, 75));
  double mean = 0;
  const Checkpoint checkpoint(run_ / "checkpoint.h5");
  for (const StepRecord& step : checkpoint.state().history) {
    if (step.step > 5) break;  // of a long output the end may be missing
    mean = mean == 0 ? step.seconds : 0.9 * mean + 0.1 * step.seconds;
    const size_t line =
        train.output.find(fmt::format("step {}/1000000 | ", step.step));
    ASSERT_NE(line, std::string::npos) << train.output;
    const size_t end = train.output.find('\n', line);
    const auto left = static_cast<double>(1000000 - step.step);
    EXPECT_TRUE(Says(train.output.substr(line, end + 1 - line),
                     " | eta " + FormatDuration(mean * left) + "\n"));
  }
}

TEST_F(Cli, UsageErrorsEndWithTwo) {
  const std::vector<std::pair<Strings, std::string>> cases = {
      {{"--bogus"}, "--bogus"},
      {{"--corpus", "both"}, "--corpus"},
      {{"--set", "router.expansion=3"}, "expansion_factor"},
      {{"--set", "training.steps=many"}, "training.steps"},
      {{"--set", "router.mean_active_experts=0.5"}, "mean_active_experts"},
      {{"--set", "router.temperature_end=0"}, "temperature_end"},
      {{"--isa", "v9"}, "v9"},
      {{"--device", "simulated"}, "runtime.device"},
      {{"--device", "cuda", "--isa", "v3"}, "instruction set of the CPU"},
      {{"--set", "training.precision=fp16"}, "'fp32' or 'bf16'"},
      {{"--set", "training.precision=bf16"}, "the CPU computes only in fp32"},
      {{"--set", "training.precision=bf16", "--dry-run"}, "only in fp32"},
      {{"--set", "training.precision=bf16", "--device=cuda", "--set",
        "model.d_ffn=36"},
       "model.d_ffn is 36, and in bf16 it must be a multiple of 8"},
      {{"--threads", "-1"}, "threads"},
      {{"--ranks", "3"}, "among 3 ranks; start 1 or 2 ranks"},
      {{"--ranks", "0", "--dry-run"}, "0 ranks"},
      {{"--ranks", "two"}, "--ranks two: give a number of ranks, or mpi"},
      {{"--ranks", "2", "--silence-limit", "-1"}, "--silence-limit"},
      {{"--ranks", "2", "--silence-limit", "86401"}, "--silence-limit"},
      {{"--ranks", "2", "--silence-limit", "nan"}, "nan not in range 0 to"},
      {{"--silence-limit", "5"}, "requires --ranks"},
      {{"--ranks", "2", "--exchange", "nccl"},
       "--exchange nccl: NCCL is for ranks on devices, but these ranks are on "
       "the CPU"},
      {{"--ranks", "2", "--exchange", "pigeons"}, "pigeons"},
      {{"--exchange", "1"}, "--exchange: 1 not in {auto,host,nccl}"},
      {{"--place", "gcide=x"}, "--place gcide=x: write --place owt=PATH or"},
      {{"--place", "owt="}, "--place owt=: write --place owt=PATH or"},
      {{"--export", ""}, "--export: its value is empty"},
      {{"--export=", "--quiet"}, "--export: its value is --quiet"},
  };
  for (const auto& [arguments, expected] : cases) {
    const ProgramResult result = Train(arguments);
    EXPECT_TRUE(EndedWith(result, 2, expected));
  }
  std::ofstream(folder_ / "typo.toml") << "[model]\nd_modle = 64\n";
  const ProgramResult typo =
      RunProgram({Binary("run/train"), "--config", "typo.toml", "--data",
                  tokens_.string(), "--out", run_.string()},
                 folder_);
  EXPECT_TRUE(EndedWith(typo, 2, "typo.toml:2:1", "d_model"));
  EXPECT_FALSE(std::filesystem::exists(run_));

  EXPECT_EQ(Evaluate({"--bogus"}).exit_status, 2);
  EXPECT_EQ(Evaluate({"--sequences", "-1"}).exit_status, 2);
  EXPECT_EQ(Evaluate({"--sequences", "1099511627777"}).exit_status, 2);
  EXPECT_EQ(Evaluate({"--trace", "1099511627777", "--out", "out"}).exit_status,
            2);
  EXPECT_EQ(Evaluate({"--sequences", "1", "--task", "piqa"}).exit_status, 2);
  EXPECT_EQ(Evaluate({"--threads", "4097"}).exit_status, 2);
  EXPECT_TRUE(EndedWith(Evaluate({"--tau", ""}), 2, "--tau: its value is em"));
  for (const char* option : {"--sequences", "--trace", "--threads"}) {
    EXPECT_TRUE(EndedWith(Evaluate({option, "010", "--out", "out"}), 2,
                          std::string(option) + ": 010 begins with 0"));
  }
  EXPECT_EQ(RunProgram({Binary("evaluation/evaluate")}, folder_).exit_status,
            2);
}

TEST_F(Cli, MissingFilesEndWithFive) {
  const ProgramResult config =
      RunProgram({Binary("run/train"), "--config", "missing.toml", "--data",
                  tokens_.string()},
                 folder_);
  EXPECT_TRUE(EndedWith(config, 5, "missing.toml"));
  const ProgramResult data =
      RunProgram({Binary("run/train"), "--config", "tiny.toml", "--data",
                  "missing", "--out", run_.string()},
                 folder_);
  EXPECT_TRUE(EndedWith(data, 5, "missing.bin"));
  const ProgramResult run = Evaluate({"--trace", "1", "--out", "made/out"});
  EXPECT_TRUE(EndedWith(run, 5, "checkpoint.h5"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "made"));
}

TEST_F(Cli, ZeroShotTasksAreDumpedWithoutAModel) {
  const auto evaluate = [&](const Strings& arguments) {
    Strings command = {Binary("evaluation/evaluate"), "--task"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(command, folder_);
  };
  EXPECT_TRUE(EndedWith(evaluate({"piqa", "--task-files", ".",
                                  "--dump-requests", "requests.jsonl"}),
                        5, "valid.jsonl", "--task piqa=FILE"));
  std::ofstream(folder_ / "valid.jsonl")
      << R"({"goal": "g", "sol1": "a", "sol2": "b"})"
      << "\n";
  std::ofstream(folder_ / "valid-labels.lst") << "1\n";
  const Strings dump = {"piqa", "--task-files", ".", "--dump-requests",
                        "requests.jsonl"};
  EXPECT_TRUE(EndedWith(evaluate(dump), 0));
  std::ifstream file(folder_ / "requests.jsonl");
  std::string line;
  for (const char* continuation : {" a", " b"}) {
    ASSERT_TRUE(std::getline(file, line));
    EXPECT_EQ(nlohmann::json::parse(line).at("continuation"), continuation);
  }
  EXPECT_FALSE(std::getline(file, line));
  // The answer must not replace the items that the command reads.
  const std::string items = ReadWholeFile(folder_ / "valid.jsonl");
  EXPECT_TRUE(EndedWith(evaluate({"piqa", "--task-files", ".",
                                  "--dump-requests", "./valid.jsonl"}),
                        2, "--dump-requests ", "valid.jsonl", "name another"));
  EXPECT_TRUE(EndedWith(evaluate({"piqa", "--task-files", ".",
                                  "--dump-requests", "valid-labels.lst"}),
                        2, "valid-labels.lst"));
  EXPECT_EQ(ReadWholeFile(folder_ / "valid.jsonl"), items);

  EXPECT_TRUE(EndedWith(evaluate({"piqa", "--task-files", "."}), 2, "--run"));
  EXPECT_TRUE(EndedWith(evaluate({"pika"}), 2, "no task 'pika'"));
  EXPECT_TRUE(EndedWith(Evaluate({"--out", "o"}), 2, "--task or --trace"));
  // The command asks no model, so options about a model are refused.
  for (const Strings& other :
       {Strings{"--out", "o"}, Strings{"--run", "r"}, Strings{"--json"},
        Strings{"--data", "d"}, Strings{"--tau", "1"},
        Strings{"--threads", "1"}, Strings{"--sequences", "1"},
        Strings{"--device", "cuda"}}) {
    Strings more = dump;
    more.insert(more.end(), other.begin(), other.end());
    EXPECT_TRUE(EndedWith(evaluate(more), 2, other[0]));
  }
  // Refused before the run is looked for.
  std::filesystem::create_directory(folder_ / "theirs");
  std::ofstream(folder_ / "theirs" / "results.json") << "{}";
  EXPECT_TRUE(EndedWith(
      Evaluate({"--task", "piqa", "--task-files", ".", "--out", "theirs"}), 2,
      "does not belong to a report on tasks"));
  // Nor does an answer replace the items that the command reads.
  std::filesystem::create_directory(folder_ / "mine");
  std::filesystem::copy_file(folder_ / "valid.jsonl",
                             folder_ / "mine/samples_piqa.jsonl");
  std::filesystem::copy_file(folder_ / "valid-labels.lst",
                             folder_ / "mine/samples_piqa-labels.lst");
  EXPECT_TRUE(EndedWith(
      Evaluate({"--task", "piqa=mine/samples_piqa.jsonl", "--out", "mine"}), 2,
      "--out ", "samples_piqa.jsonl: the same command", "name another file"));
  EXPECT_EQ(ReadWholeFile(folder_ / "mine/samples_piqa.jsonl"), items);
  // A run on tokens without a tokenizer.
  ASSERT_EQ(Train().exit_status, 0);
  std::ofstream(tokens_.string() + ".model") << "no tokenizer";
  EXPECT_TRUE(
      EndedWith(Evaluate({"--task", "piqa", "--task-files", ".", "--out", "o"}),
                2, "without a tokenizer", "//:prepare_data"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "o"));
}

// Hides this machine's devices; a build without a CUDA toolkit reports that
// instead.
TEST_F(Cli, WithoutADeviceEndsWithFive) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  for (const ProgramResult& result :
       {Train({"--device", "cuda"}), Train({"--set", "runtime.device=cuda"})}) {
    EXPECT_TRUE(EndedWith(
        result, 5, "device \"cuda\": ", "Without --device the CPU is used"));
    EXPECT_FALSE(std::filesystem::exists(run_));
  }
  // Refused before a corpus is prepared or even searched for.
  const ProgramResult unprepared =
      RunProgram({Binary("run/train"), "--config", "tiny.toml", "--out",
                  run_.string(), "--corpus", "path:missing", "--device=cuda"},
                 folder_);
  EXPECT_TRUE(EndedWith(unprepared, 5, "device \"cuda\": "));
  ASSERT_EQ(Train({"--device=cpu"}).exit_status, 0);
  const ProgramResult again = Train({"--device=cuda"});
  EXPECT_TRUE(EndedWith(again, 5));
  const ProgramResult evaluate = Evaluate({"--device=cuda"});
  EXPECT_TRUE(EndedWith(evaluate, 5, "device \"cuda\": "));
  EXPECT_EQ(Train().exit_status, 0);  // as before
  unsetenv("CUDA_VISIBLE_DEVICES");
}

// One H100 with 80 GB: a step of one balance group of SoftMoE-2, and the
// paper's whole step of 240 sequences.
TEST_F(Cli, ThePapersConfigurationShowsItsMemoryAndEndsWithFive) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  std::ofstream(folder_ / "paper.toml")
      << "[router]\nkind = \"soft_learned\"\nmean_active_experts = 2\n"
         "[training]\nprecision = \"bf16\"\n";
  const auto train = [&](const Strings& more) {
    Strings command = {
        Binary("run/train"), "--config", "paper.toml",  "--data",
        tokens_.string(),    "--out",    run_.string(), "--device=cuda"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, folder_);
  };
  const ProgramResult whole = train({});
  EXPECT_TRUE(EndedWith(whole, 5));
  EXPECT_EQ(Count(whole.output, "expected step"), 0);
  EXPECT_TRUE(
      Says(whole.output,
           "memory of a step on the device, runtime.recompute = \"none\":\n",
           "  parameters         9.1 GiB  parameters 6.1 GiB, ",
           ", copy in bf16 3.0 GiB\n",
           "  moments           12.2 GiB  first 6.1 GiB, second 6.1 GiB\n",
           "  gradients         24.3 GiB  tree 18.2 GiB, sum 6.1 GiB\n",
           "  routed rows       ", "  total             ",
           "an H100 with 80 GB holds the step with \"experts\"\n",
           "device \"cuda\": ", "Without --device the CPU is used"));
  const ProgramResult group =
      train({"--set", "training.global_batch_sequences=30"});
  EXPECT_TRUE(EndedWith(group, 5, "  gradients          6.1 GiB  sum 6.1 GiB\n",
                        "an H100 with 80 GB holds the step with \"none\"\n"));
  // The requested setting is the one shown.
  const ProgramResult layer = train({"--set", "runtime.recompute=layer"});
  EXPECT_TRUE(EndedWith(layer, 5, "runtime.recompute = \"layer\":\n"));
  const ProgramResult dry = train({"--dry-run"});
  EXPECT_TRUE(EndedWith(dry, 0,
                        "an H100 with 80 GB holds the step with \"experts\"\n",
                        "\nexpected step on an H100 SXM"));
  EXPECT_FALSE(std::filesystem::exists(run_));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(Cli, DamagedFilesEndWithTwo) {
  ASSERT_EQ(Train().exit_status, 0);
  EXPECT_EQ(Evaluate({"--tau", "-1"}).exit_status, 2);
  EXPECT_EQ(Evaluate({"--temperature", "0"}).exit_status, 2);

  const auto other = Train({"--set", "training.seed=7"});
  EXPECT_TRUE(EndedWith(other, 2, "result.h5"));

  const auto checkpoint = run_ / "checkpoint.h5";
  std::filesystem::resize_file(checkpoint,
                               std::filesystem::file_size(checkpoint) - 1);
  const ProgramResult cut = Evaluate();
  EXPECT_TRUE(EndedWith(cut, 2, "checkpoint.h5"));
  std::filesystem::remove(run_ / "result.h5");
  const ProgramResult resume = Train();
  EXPECT_TRUE(EndedWith(resume, 2, "checkpoint.h5"));

  // A truncated token file.
  const auto bin = folder_ / "data" / "tokens.bin";
  std::filesystem::resize_file(bin, std::filesystem::file_size(bin) / 2);
  std::filesystem::remove(checkpoint);
  const ProgramResult tokens = Train();
  EXPECT_TRUE(EndedWith(tokens, 2, "tokens."));
}

TEST_F(Cli, ANanEndsWithOne) {
  // An enormous learning rate overflows fp32 within a few steps.
  const ProgramResult result =
      Train({"--set", "training.learning_rate=1e30", "--set",
             "training.clip_norm=0", "--set", "training.warmup_fraction=0"});
  EXPECT_TRUE(EndedWith(result, 1, "step ", "training.learning_rate",
                        "with clipping (training.clip_norm=1)"));
  EXPECT_FALSE(std::filesystem::exists(run_ / "result.h5"));
  // Before the first update no learning rate was used.
  const ProgramResult first = Train({"--set", "model.init_std=1e30"});
  EXPECT_TRUE(EndedWith(first, 1, "step 1 ",
                        "the learning rate is not the cause",
                        "model.init_std"));
}

// At this temperature all weights are equal, so no tau has only some above it.
TEST_F(Cli, WarnsOfACalibrationThatMissesItsAim) {
  for (const Strings& quiet : {Strings(), Strings{"--quiet"}}) {
    std::filesystem::remove_all(run_);
    const ProgramResult result =
        Train(Joined({"--set", "router.temperature_start=1e9"}, quiet));
    EXPECT_TRUE(EndedWith(
        result, 0, "warning: ",
        "384 soft weights should lie above tau, for router.mean_active_experts "
        "= 1.5, but 768 do, because so many are equal at temperature 1e+09; "
        "set router.tau, or lower router.temperature_start\n"));
    EXPECT_EQ(Count(result.output, "step 12/12 | "), quiet.empty() ? 1 : 0);
  }
}

TEST_F(Cli, SignalsSaveAndEndWith75) {
  int64_t last_step = 0;
  for (const std::string signal : {"TERM", "INT"}) {
    const ProgramResult stopped = TrainUntil(signal, last_step + 3, "1000000");
    EXPECT_TRUE(EndedWith(stopped, 75, "stopped", "checkpoint.h5"));
    const int64_t step = Checkpoint(run_ / "checkpoint.h5").state().step;
    EXPECT_GT(step, last_step);
    if (last_step > 0) {
      EXPECT_TRUE(Says(stopped.output, "continuing after step"));
    }
    last_step = step;
    EXPECT_EQ(FilesIn(run_), (Strings{"checkpoint.h5", "metrics.jsonl"}));
  }
}

// The reader is like `tee` behind a pipe, which Ctrl-C also ends: every step
// prints to a pipe without a reader.
TEST_F(Cli, ItSavesThoughNobodyReadsWhatItSays) {
  ASSERT_EQ(RunProgram({"mkfifo", "pipe"}, folder_).exit_status, 0);
  const ProgramResult stopped =
      TrainUntil("INT", 9, "1", "> pipe",
                 "exec 3< pipe; grep -q 'step 1/' <&3; exec 3<&-; ");
  EXPECT_TRUE(EndedWith(stopped, 75, "stopped: SIGINT", "checkpoint.h5"));
  EXPECT_GE(Checkpoint(run_ / "checkpoint.h5").state().step, 9);
}

// The reader is like `less`, or a terminal after Ctrl-S: it exists but does not
// read, so the process is waiting for it when the signal comes.
TEST_F(Cli, ItSavesThoughTheReaderHasStoppedReading) {
  ASSERT_EQ(RunProgram({"mkfifo", "pipe"}, folder_).exit_status, 0);
  const std::string fill =
      "exec 3<> pipe; grep -q 'step 1/' <&3; dd if=/dev/zero of=pipe bs=4096 "
      "oflag=nonblock 2> full; grep -q 'unavailable' full || exit 98; "
      "sleep 0.2; ";
  const ProgramResult stopped = TrainUntil("INT", 0, "1", "> pipe", fill);
  EXPECT_TRUE(EndedWith(stopped, 75, "stopped: SIGINT", "checkpoint.h5"));
  EXPECT_GE(Checkpoint(run_ / "checkpoint.h5").state().step, 1);
  std::filesystem::remove_all(run_);
  // Nor does it then wait until its last message is read.
  const ProgramResult silent = TrainUntil("TERM", 0, "1", "> pipe 2>&1", fill);
  EXPECT_TRUE(EndedWith(silent, 75));
  EXPECT_GE(Checkpoint(run_ / "checkpoint.h5").state().step, 1);
}

TEST_F(Cli, AFullDiskEndsWithFive) {
  if (!kBeginsOnFullDisk) GTEST_SKIP() << "TSan's runtime needs large files";
  // The limit (in blocks of 512 bytes) leaves room for the metrics only.
  const ProgramResult full =
      Shell("ulimit -f 40; trap '' XFSZ; exec " + Quoted(TrainCommand()));
  EXPECT_TRUE(EndedWith(full, 5, "checkpoint.h5"));
  EXPECT_EQ(FilesIn(run_), Strings{"metrics.jsonl"});
  // Once there is space again, the same command succeeds.
  EXPECT_EQ(Train().exit_status, 0);
}

}  // namespace
}  // namespace softmoe::trainer
