// SPDX-License-Identifier: Apache-2.0
#include "experiments/testing/report_test_util.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "core/config/router_traits.h"
#include "core/philox.h"

namespace softmoe::experiments {
namespace {

using trainer::RunResult;
using trainer::StepRecord;
using trainer::Validation;

constexpr int64_t kSteps = 40;
constexpr int64_t kTokens = 1000;

// Uniform in [0, 1), determined by the place where it is used.
double Noise(int64_t seed, const GridRow& row, int64_t index) {
  uint32_t which = 0;
  for (const char c : row.id) which = 31 * which + static_cast<uint8_t>(c);
  const auto words =
      PhiloxWords({static_cast<uint64_t>(seed), RandomStream::kTestData, which},
                  static_cast<uint64_t>(index));
  return UniformFromWord(words[0]);
}

// A validation in which a share of the tokens has one expert more than the
// others, so that the mean is `active`.
Validation MakeValidation(const ModelConfig& model, double active,
                          double loss) {
  Validation v;
  v.loss = loss;
  v.num_tokens = kTokens;
  const auto low = static_cast<int64_t>(std::floor(active));
  const auto more = static_cast<int64_t>(
      std::llround((active - static_cast<double>(low)) * kTokens));
  const int64_t choices = kTokens * low + more;
  v.active_experts =
      static_cast<double>(choices) / static_cast<double>(kTokens);
  for (int64_t l = 0; l < model.num_layers; ++l) {
    std::vector<int64_t> histogram(static_cast<size_t>(model.num_experts + 1));
    histogram[static_cast<size_t>(low)] += kTokens - more;
    histogram[static_cast<size_t>(low + 1)] += more;
    v.active_histogram.push_back(histogram);
    std::vector<int64_t> experts(static_cast<size_t>(model.num_experts),
                                 choices / model.num_experts);
    experts[0] += choices % model.num_experts;
    v.tokens_per_expert.push_back(experts);
    v.layer_active_experts.push_back(v.active_experts);
  }
  v.relative_load_variance = 0.04;
  v.load_cv = 0.2;
  v.load_var_over_mean = 10;
  return v;
}

}  // namespace

RunResult ExampleResult(const GridRun& run) {
  RunResult r;
  r.config = run.config;
  r.identity = {.config = run.config,
                .tokens = {.data_sha256 = std::string(64, 'a'),
                           .index_sha256 = "",
                           .tokenizer_sha256 = std::string(64, 'b')},
                .isa = "v3"};
  const bool sparse = run.config.router.kind == RouterKind::kSparse;
  const double k = run.config.router.mean_active_experts;
  const double layers = static_cast<double>(run.config.model.num_layers);
  if (!sparse) {
    r.tau_calibrated = !run.config.router.tau;
    r.tau = run.config.router.tau.value_or(1.174);
    r.config.router.tau = r.tau;
  }
  r.parameters = 123456;
  for (int64_t l = 0; l < run.config.model.num_layers; ++l) {
    // Learned allocation: later layers get more, and the sum stays the same.
    const double shift =
        run.config.router.kind == RouterKind::kSoftLearned
            ? 0.25 * (2 * static_cast<double>(l) / (layers - 1) - 1)
            : 0;
    r.allocation.push_back(k + shift);
  }
  const double train = sparse ? k : k + 0.125;
  const double infer = sparse ? k : k + 0.25;
  for (int64_t s = 1; s <= kSteps; ++s) {
    StepRecord step;
    step.step = s;
    step.loss = 5 - 2 * static_cast<double>(s) / kSteps +
                0.01 * Noise(run.seed, run.row, s);
    step.load_balance_loss = 0.01;
    step.active_experts = train;
    step.layer_active_experts.assign(r.allocation.size(), train);
    step.allocation = r.allocation;
    step.layer_relative_load_variance.assign(r.allocation.size(), 0.04);
    step.temperature = 5;
    step.gradient_norm = 0.5;
    step.learning_rate = 1e-3;
    r.steps.push_back(step);
  }
  const double loss = 3 - 0.05 * k + 0.01 * Noise(run.seed, run.row, 1000);
  r.final_validation = MakeValidation(run.config.model, infer, loss);
  r.at_schedule_temperature = r.final_validation;
  r.unigram_loss = 5.1;
  r.train_bytes_per_token = 4.3;
  r.val_bytes_per_token = 4.4;
  r.val_loss_per_byte = r.final_validation.loss / 4.4;
  r.train_ae = train;
  r.max_active = MaxActive(run.config, r.allocation.back());
  r.most_active_in_a_token =
      sparse ? static_cast<int64_t>(k) : static_cast<int64_t>(std::ceil(infer));
  r.seconds = 12.5;
  r.code_version = "0123456789ab";
  return r;
}

namespace {

GridRow MakeRow(const std::string& id, const std::string& label,
                const std::string& paper_row, const std::string& variant) {
  GridRow row;
  row.id = variant.empty() ? id : id + "-" + variant;
  row.label = label;
  row.paper_row = paper_row;
  row.variant = variant;
  return row;
}

Config MakeConfig(const GridRow& row, const ExampleOptions& options) {
  Config config;
  if (!options.paper_sizes) {
    config.model = {.num_layers = 3,
                    .d_model = 8,
                    .num_heads = 2,
                    .d_ffn = 12,
                    .num_experts = 8,
                    .vocab_size = 50,
                    .sequence_length = 16};
    config.data.corpus = "foldoc";
  } else {
    config.data.corpus = "owt";
  }
  RouterConfig& router = config.router;
  if (row.label == "Sparse MoE") {
    router.mean_active_experts = row.id == "sparse-1" ? 1 : 2;
    return config;
  }
  router.kind = row.label == "SoftMoE" ? RouterKind::kSoftLearned
                                       : RouterKind::kSoftFixed;
  router.mean_active_experts = row.label == "SoftMoE" ? 2 : 1.5;
  if (row.variant == "paper") {
    router.tau = row.label == "SoftMoE" ? 1.2 : 1.8;
  }
  return config;
}

}  // namespace

GridOutcome ExampleOutcome(const ExampleOptions& options) {
  GridOutcome outcome;
  Grid& grid = outcome.grid;
  grid.path = "example.toml";
  grid.name = "example";
  grid.scale = options.paper_sizes ? "paper" : "smoke";
  grid.title = "A grid for <tests> & \"quotes\"";
  grid.seeds = options.seeds;
  GridCorpus corpus;
  corpus.id = options.paper_sizes ? "owt" : "foldoc";
  corpus.title = "A text";
  (options.paper_sizes ? corpus.paper_dataset : corpus.stands_for) = "owt";
  grid.corpora = {corpus};
  grid.rows = {MakeRow("sparse-1", "Sparse MoE", "sparse/k1", ""),
               MakeRow("sparse-2", "Sparse MoE", "sparse/k2", "")};
  const std::vector<std::string> variants =
      options.both_variants ? std::vector<std::string>{"calibrated", "paper"}
                            : std::vector<std::string>{""};
  for (const std::string& variant : variants) {
    grid.rows.push_back(
        MakeRow("star-1.5", "SoftMoE*", "softmoe_star/k1.5/a2", variant));
    grid.rows.push_back(MakeRow("soft-2", "SoftMoE", "softmoe/k2/a2", variant));
  }
  for (const GridRow& row : grid.rows) {
    for (const int64_t seed : grid.seeds) {
      GridRun run;
      run.id = fmt::format("{}/{}/seed{}", corpus.id, row.id, seed);
      run.corpus = corpus;
      run.row = row;
      run.seed = seed;
      run.config = MakeConfig(row, options);
      run.config.training.seed = seed;
      grid.runs.push_back(run);
      RunOutcome out;
      out.run = run;
      out.folder = "/runs/" + row.id;
      out.state = RunState::kFinished;
      out.result = ExampleResult(run);
      outcome.runs.push_back(std::move(out));
    }
  }
  trainer::PreparedCorpus prepared;
  prepared.corpus = grid.runs.front().config.data.corpus;
  prepared.description = "a text for tests";
  prepared.provenance = "dict-test 1.0";
  prepared.tokens.data_sha256 = std::string(64, 'a');
  outcome.corpora = {prepared};
  return outcome;
}

RunOutcome& RunOf(GridOutcome& outcome, const std::string& row_id) {
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id == row_id) return run;
  }
  throw std::logic_error("no row " + row_id);
}

trainer::FinalEvaluations& EvaluationsOf(RunOutcome& run) {
  if (!run.result->final_evaluations) run.result->final_evaluations.emplace();
  return *run.result->final_evaluations;
}

NoPrograms::NoPrograms() {
  const char* path = std::getenv("PATH");
  path_ = path == nullptr ? "/usr/bin:/bin" : path;
  setenv("PATH", "/nonexistent", 1);
}
NoPrograms::~NoPrograms() { setenv("PATH", path_.c_str(), 1); }

void Fail(RunOutcome& run, const std::string& problem) {
  run.state = RunState::kFailed;
  run.result.reset();
  run.problem = problem;
}

void Interrupt(RunOutcome& run) {
  run.state = RunState::kInterrupted;
  run.result.reset();
}

}  // namespace softmoe::experiments
