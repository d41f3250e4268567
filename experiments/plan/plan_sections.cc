// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/config/config_enums.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/text_table.h"
#include "experiments/plan/initial_activity.h"
#include "experiments/plan/plan_text.h"
#include "experiments/plan/rank_plan.h"
#include "optimized/step_memory.h"
#include "trainer/corpora/corpus.h"
#include "trainer/corpora/standin_corpora.h"
#include "trainer/results/metrics.h"
#include "trainer/run/schedules.h"
#include "trainer/tokens/token_disk.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

using Rows = std::vector<RowEstimate>;

bool TrainsOnGpus(const RowEstimate& row) { return row.run.corpus.gpus > 0; }

}  // namespace

// ---- What is trained, and its cost.

std::string DescribeModel(const ModelConfig& m) {
  return fmt::format(
      "{} layers, d_model {}, {} heads, {} experts of width {} a layer, "
      "vocabulary {}, sequences of {} tokens",
      m.num_layers, m.d_model, m.num_heads, m.num_experts, m.d_ffn,
      Thousands(m.vocab_size), Thousands(m.sequence_length));
}

namespace {

std::string StepLine(const RowEstimate& row) {
  const TrainingConfig& t = row.run.config.training;
  const int64_t length = row.run.config.model.sequence_length;
  std::string line =
      fmt::format("{} steps of {} = {} tokens", Thousands(t.steps),
                  Count(t.global_batch_sequences, "sequence"),
                  Thousands(t.global_batch_sequences * length));
  const int64_t gpus = row.run.corpus.gpus;
  if (gpus == 0) return line;
  const BatchSplit split = SplitBatch(t, gpus);
  if (!split.problem.empty()) return line;
  return line +
         fmt::format("; on each of {}: {} sequences = {} of {} = {} of {}",
                     Count(gpus, "GPU"), t.global_batch_sequences / gpus,
                     Count(split.micro_batches, "micro-batch", "micro-batches"),
                     t.micro_batch_sequences,
                     Count(split.groups_per_gpu, "balance group"),
                     t.balance_group_sequences);
}

std::string EpochsLine(const RowEstimate& row) {
  return fmt::format(
      "the steps are {:.2f} epochs of {}", *row.epochs,
      row.prepared ? fmt::format("the {} tokens of {}, without its validation "
                                 "split",
                                 Thousands(row.prepared->num_tokens),
                                 row.prepared->prefix.string())
                   : "as many tokens as the paper's");
}

// Empty if no row calibrates tau.
std::string CalibrationLine(const Rows& rows) {
  int64_t bytes = 0;
  for (const RowEstimate& row : rows) {
    bytes = std::max(bytes, row.calibration_bytes);
  }
  if (bytes == 0) return "";
  const int64_t ranks = rows.front().run.corpus.gpus;
  return fmt::format(
      "calibrating tau: up to {} of host memory on each rank{}, while it lasts",
      FormatBytes(bytes),
      ranks > 1 ? fmt::format(", {} on {}", FormatBytes(ranks * bytes), ranks)
                : "");
}

std::string Tau(const RowEstimate& row) {
  if (!TraitsOf(row.run.config).cutoff) return "-";
  return fmt::format("{}{:.3f}", row.run.config.router.tau ? "" : "~",
                     row.initial.tau);
}

std::string WhatIsTrained(const Rows& rows) {
  TextTable table({"row", "k", "tau", "start",
                   trainer::metrics::kZeroActiveFraction.title, "AE", "from",
                   "parameters", "active"});
  for (const RowEstimate& row : rows) {
    table.Add({row.run.row.id,
               fmt::format("{:.4g}", row.run.config.router.mean_active_experts),
               Tau(row), fmt::format("{:.2f}", row.initial.active_experts),
               Shown(trainer::metrics::kZeroActiveFraction,
                     row.initial.zero_active_fraction),
               fmt::format("{:.2f}", row.active_experts),
               row.active_from_paper ? "paper" : "k",
               Thousands(row.cost.parameters),
               Thousands(std::llround(row.cost.active_parameters))});
  }
  return table.Text();
}

std::vector<std::string> GpuColumns(const RowEstimate& row) {
  return {
      fmt::format("{:.1f}", row.cost.gpu_hours),
      row.paper_gpu_hours ? fmt::format("{:.1f}", *row.paper_gpu_hours) : "-"};
}

std::string WhatItTakes(const Rows& rows, bool gpus) {
  const bool minutes = std::all_of(
      rows.begin(), rows.end(),
      [](const RowEstimate& row) { return row.cost.core_hours < 1; });
  std::vector<std::string> header = {"row", "steps", "tokens", "FLOPs"};
  const std::vector<std::string> more =
      gpus ? std::vector<std::string>{"GPU h", "paper", "disk"}
           : std::vector<std::string>{"memory", minutes ? "core min" : "core h",
                                      "disk"};
  header.insert(header.end(), more.begin(), more.end());
  TextTable table(header);
  for (const RowEstimate& row : rows) {
    std::vector<std::string> entry = {row.run.row.id, Thousands(row.cost.steps),
                                      Thousands(row.cost.tokens),
                                      Scientific(row.cost.train_flops)};
    if (gpus) {
      for (std::string& text : GpuColumns(row)) {
        entry.push_back(std::move(text));
      }
    } else {
      entry.push_back(FormatBytes(row.cpu_bytes));
      entry.push_back(
          fmt::format("{:.2f}", row.cost.core_hours * (minutes ? 60 : 1)));
    }
    entry.push_back(FormatBytes(row.disk_bytes));
    table.Add(std::move(entry));
  }
  return table.Text();
}

}  // namespace

std::string DescribeCorpus(const Rows& rows) {
  const GridCorpus& corpus = rows.front().run.corpus;
  const bool gpus = corpus.gpus > 0;
  std::string text = fmt::format("{}: {}{}\n", corpus.id, corpus.title,
                                 gpus ? ", " + Count(corpus.gpus, "GPU") : "");
  const std::string step = StepLine(rows.front());
  if (std::all_of(rows.begin(), rows.end(), [&](const RowEstimate& row) {
        return StepLine(row) == step;
      })) {
    text += Paragraph(step);
    if (rows.front().epochs) {
      text += Paragraph(EpochsLine(rows.front()));
    }
  }
  const std::string calibration = CalibrationLine(rows);
  if (!calibration.empty()) text += Paragraph(calibration);
  return text + "\n" + WhatIsTrained(rows) + "\n" + WhatItTakes(rows, gpus);
}

std::string PlanLegend(const Cluster& cluster, const Rows& rows) {
  using trainer::metrics::kZeroActiveFraction;
  std::string text = Paragraph(fmt::format(
      "k: the requested mean of active experts. tau: the cutoff in units of "
      "k/E; ~: the value expected from calibration on the first batches. "
      "start, {}: active experts per token and layer, and the {}; before the "
      "first update, from random scores through the router. AE: the mean that "
      "the active parameters, FLOPs and hours assume: the paper's Train-AE of "
      "the row (from paper), or k. active: the exact count at AE.",
      kZeroActiveFraction.title, kZeroActiveFraction.definition));
  text += Paragraph(
      "FLOPs: all training steps, a multiply-add as two; causal attention; "
      "without recomputation, calibration and validation.");
  const auto gpu_rows = std::ranges::count_if(rows, &TrainsOnGpus);
  if (gpu_rows > 0) {
    text += Paragraph(fmt::format(
        "GPU h: at an assumed {:.0f} % of {:.0f} TFLOP/s in bf16, of {:.1f} in "
        "fp32 (training.precision); paper: what the paper's own run took. What "
        "each GPU holds: see the ranks of each corpus.",
        100 * cluster.assumed_mfu, cluster.peak_flops / 1e12,
        cluster.fp32_peak_flops / 1e12));
  }
  if (gpu_rows < std::ssize(rows)) {
    text += Paragraph(fmt::format(
        "memory: weights, moments, gradients, three arrays of the weights' "
        "size for a checkpoint, activations of one balance group with as many "
        "active experts as the caps allow, and the soft weights that are "
        "ranked to calibrate tau, all in fp32; without the program, its "
        "tokens and the buffers of threads. Core time: at an assumed {:.0f} "
        "GFLOP/s of one core; divide by the cores.",
        cluster.core_flops / 1e9));
  }
  return text + Paragraph(
                    "disk: the most that a run's folder holds at one time, "
                    "while one checkpoint replaces another.");
}

// ---- The protocol.

std::string DescribeStillRuns(const Rows& rows) {
  using trainer::metrics::kZeroActiveFraction;
  const std::string zero = kZeroActiveFraction.title;
  TextTable table({"row", "tau", "fallback", "start", zero, "middle", zero,
                   "end", "Train-AE"});
  std::map<std::string, StillRun> known;  // most rows are on several corpora
  std::set<std::string> shown;
  for (const RowEstimate& row : rows) {
    const Config& config = row.run.config;
    if (TraitsOf(config).exact_k) continue;
    Config key;
    key.model = config.model;
    key.router = config.router;
    // Corpora differ in their steps, which the printed digits do not show.
    const std::string hash = ConfigHash(key);
    if (!shown.insert(row.run.row.id + "/" + hash).second) continue;
    const auto [entry, is_new] = known.try_emplace(hash);
    if (is_new) entry->second = EstimateStillRun(config, row.initial);
    const StillRun& run = entry->second;
    std::vector<std::string> line = {
        row.run.row.id, Tau(row),
        config.router.fallback == Fallback::kTop1 ? "top1" : "none"};
    for (const InitialActivity* at : {&row.initial, &run.middle}) {
      line.push_back(fmt::format("{:.2f}", at->active_experts));
      line.push_back(Shown(kZeroActiveFraction, at->zero_active_fraction));
    }
    line.push_back(fmt::format("{:.2f}", run.end.active_experts));
    line.push_back(fmt::format("{:.2f}", run.train.active_experts));
    table.Add(std::move(line));
  }
  if (table.num_rows() == 0) return "";
  return "Protocol\n" +
         Paragraph(
             "How many experts soft rows would activate if their scores kept "
             "the spread with which they are drawn, and every layer its "
             "allocation, by quadrature: where T starts, halfway, where it "
             "ends (without noise, as in Infer-AE), and in the mean of all "
             "steps.") +
         "\n" + table.Text();
}

// ---- Totals.

namespace {

// The time of the paper's own runs of the rows listed here, each counted once.
std::string PaperTotal(const Rows& rows) {
  std::set<std::string> seen;
  double hours = 0;
  for (const RowEstimate& row : rows) {
    if (TrainsOnGpus(row) && row.paper_gpu_hours &&
        seen.insert(row.run.paper_id()).second) {
      hours += *row.paper_gpu_hours;
    }
  }
  if (seen.empty()) return "";
  return fmt::format(" (the paper's {}: {})",
                     Count(static_cast<int64_t>(seen.size()), "row"),
                     Amount(hours));
}

}  // namespace

std::string CostInWords(const GridTotal& total, const std::string& of_paper) {
  const std::string gpus = Amount(total.gpu_hours) + " GPU hours" + of_paper;
  if (total.gpu_runs == total.runs) return gpus;
  const std::string cores =
      total.core_hours < 1 ? Amount(60 * total.core_hours) + " core minutes"
                           : Amount(total.core_hours) + " core hours";
  return total.gpu_runs == 0 ? cores : gpus + " and " + cores;
}

std::string TotalLine(const std::string& name, const Rows& rows,
                      size_t at_work) {
  const GridTotal total = Total(rows, at_work);
  return fmt::format("{}: {}, {} tokens, {} FLOPs, {}, {} on disk", name,
                     Count(total.runs, "run"), Scientific(total.tokens),
                     Scientific(total.train_flops),
                     CostInWords(total, PaperTotal(rows)),
                     FormatBytes(total.disk_bytes));
}

// ---- Disk space.

namespace {

// One row per distinct text, and one per distinct token file.
struct Sources {
  std::vector<const RowEstimate*> texts, tokens;
};

Sources DifferentSources(const Rows& rows) {
  Sources sources;
  std::set<std::string> texts, tokens;
  for (const RowEstimate& row : rows) {
    const Config& config = row.run.config;
    if (texts.insert(config.data.corpus).second) sources.texts.push_back(&row);
    if (tokens.insert(TokensKey(config)).second) sources.tokens.push_back(&row);
  }
  return sources;
}

trainer::CorpusSize SizeOf(const RowEstimate& row, const fs::path& cache) {
  return trainer::SizeOfCorpus(row.run.config.data.corpus, cache,
                               trainer::PlacesOf(row.run.runtime));
}

std::string TextLine(const RowEstimate& row, const fs::path& cache) {
  const std::string& name = row.run.config.data.corpus;
  const trainer::CorpusSize size = SizeOf(row, cache);
  if (size.here) {
    return fmt::format("{}: {}, there: {}", name, FormatBytes(size.bytes),
                       size.place.string());
  }
  return fmt::format("{}: {}, not there yet: {}", name,
                     size.bytes > 0 ? "about " + FormatBytes(size.bytes)
                                    : "as large as its publishers' files",
                     size.place.string());
}

std::optional<trainer::TokenDisk> TokensOf(const RowEstimate& row,
                                           const fs::path& cache) {
  const Config& config = row.run.config;
  return trainer::ExpectedDisk(config.data, config.model.vocab_size,
                               SizeOf(row, cache));
}

std::string TokenLine(const RowEstimate& row, const fs::path& cache) {
  const Config& config = row.run.config;
  const std::string& corpus = config.data.corpus;
  if (row.prepared) {
    return fmt::format("{}: there: {}", corpus, row.prepared->prefix.string());
  }
  return fmt::format(
      "{}, vocabulary {}{}: {}", corpus, config.model.vocab_size,
      config.data.normalise == Normalise::kNone ? "" : ", normalised",
      Describe(TokensOf(row, cache)));
}

std::string CheckpointLine(const Rows& rows) {
  int64_t kept = 0, one = 0;
  for (const RowEstimate& row : rows) {
    one = std::max(one, row.checkpoint_bytes);
    if (row.run.evaluations.keep_checkpoint) {
      kept += row.seeds * row.checkpoint_bytes;
    }
  }
  return fmt::format(
      "up to {} each, two for every run at work; {}", FormatBytes(one),
      kept == 0 ? "those of finished runs are deleted"
                : FormatBytes(kept) + " once all runs are finished");
}

int64_t ResultBytes(const Rows& rows) {
  int64_t bytes = 0;
  for (const RowEstimate& row : rows) {
    bytes += row.seeds * (row.disk_bytes - 2 * row.checkpoint_bytes);
  }
  return bytes;
}

}  // namespace

std::string TokenDiskProblem(const Rows& rows, const fs::path& cache) {
  int64_t need = 0;
  for (const RowEstimate* row : DifferentSources(rows).tokens) {
    const auto disk = TokensOf(*row, cache);
    if (row->prepared || !disk || disk->at_most) continue;
    need += disk->total();
  }
  const int64_t free = FreeDiskBytes(cache);
  if (need <= free) return "";
  return fmt::format(
      "tokens of corpora that are not prepared yet take up to {} in {}, which "
      "has {} free; set XDG_CACHE_HOME to a folder on a larger disk",
      FormatBytes(need), cache.string(), FormatBytes(free));
}

std::string DescribeDisk(const Rows& rows, const fs::path& folder,
                         const fs::path& cache) {
  const Sources sources = DifferentSources(rows);
  std::string text = "Disk\n";
  const auto add = [&](const std::string& line) { text += Paragraph(line, 2); };
  for (const RowEstimate* row : sources.texts) {
    add("corpus " + TextLine(*row, cache));
  }
  for (const RowEstimate* row : sources.tokens) {
    add("tokens of " + TokenLine(*row, cache));
  }
  add(fmt::format("both are for {}, free there: {}", cache.string(),
                  FormatBytes(FreeDiskBytes(cache))));
  add("checkpoints: " + CheckpointLine(rows));
  add(fmt::format("results: {}, with the metrics of every step",
                  FormatBytes(ResultBytes(rows))));
  add(fmt::format("both are for {}, free there: {}", folder.string(),
                  FormatBytes(FreeDiskBytes(folder))));
  return text;
}

// ---- Warnings.

namespace {

// Below this, experts hardly train (DESIGN.md, ruling 7).
constexpr double kFewActiveExperts = 0.5;
constexpr int64_t kScheduleSamples = 50;

// Share of the steps after which the falling temperature alone, without
// learning, raises the mean of active experts to kFewActiveExperts, rounded up
// to 1/kScheduleSamples; above 1 if it never does.
double ShareOfStepsUntilActive(const Config& config) {
  for (int64_t i = 1; i <= kScheduleSamples; ++i) {
    const int64_t updates = config.training.steps * i / kScheduleSamples;
    if (EstimateInitialActivity(config, updates).active_experts >=
        kFewActiveExperts) {
      return static_cast<double>(i) / kScheduleSamples;
    }
  }
  return 2;
}

std::string ActivityProblem(const RowEstimate& row) {
  const InitialActivity& initial = row.initial;
  if (!(initial.active_experts < kFewActiveExperts)) return "";
  const RouterConfig& router = row.run.config.router;
  std::string problem = fmt::format(
      "with tau = {:.4g} at T = {:.4g}, {:.3g} experts are active on average "
      "at the start ({}): experts get {} gradient. ",
      initial.tau, trainer::Temperature(row.run.config, 0),
      std::round(1e4 * initial.active_experts) / 1e4,
      Titled(trainer::metrics::kZeroActiveFraction,
             initial.zero_active_fraction),
      initial.active_experts < 0.005 ? "no" : "little");
  const double share = ShareOfStepsUntilActive(row.run.config);
  problem += share <= 1 ? fmt::format(
                              "If the scores never changed, falling T would "
                              "raise the mean to {} after about {:.0f} % of "
                              "the steps. ",
                              kFewActiveExperts, 100 * share)
                        : fmt::format(
                              "If the scores never changed, the mean would "
                              "stay below {} to the end. ",
                              kFewActiveExperts);
  return problem + (router.tau ? "router.tau = \"calibrated\" or "
                                 "router.fallback = \"top1\" would avoid it"
                               : "router.fallback = \"top1\" would avoid it");
}

std::string PrecisionProblem(const RowEstimate& row) {
  try {
    CheckPrecisionOfTasks(row.run);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// What is wrong with a name that no corpus has; looks up and loads no file.
std::string CorpusProblem(const RowEstimate& row) {
  const std::string& name = row.run.config.data.corpus;
  const std::string kind = name.substr(0, name.find(':'));
  const bool published = kind == "owt" || kind == "c4";
  const bool has_path = name.size() > kind.size() + 1;
  if (row.prepared || trainer::FindStandin(name) != nullptr ||
      (published && name == kind) ||
      ((published || kind == "jsonl" || kind == "path") && has_path)) {
    return "";
  }
  try {
    (void)trainer::FindCorpus(name, {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string VocabularyProblem(const RowEstimate& row) {
  if (row.prepared) return "";
  try {
    trainer::RequireVocabSize(row.run.config.model.vocab_size);
  } catch (const ConfigError& error) {
    return fmt::format(
        "{}; choose such a size, or pass prepared tokens with --tokens",
        error.what());
  }
  return "";
}

std::string BatchProblem(const RowEstimate& row) {
  const int64_t gpus = row.run.corpus.gpus;
  return gpus == 0 ? "" : SplitBatch(row.run.config.training, gpus).problem;
}

std::string MemoryProblem(const RowEstimate& row, const Cluster& cluster) {
  const int64_t gpus = row.run.corpus.gpus;
  if (gpus == 0 || !BatchProblem(row).empty()) return "";
  const Config& config = row.run.config;
  const int64_t need =
      RankMemory(config, gpus, row.run.runtime.recompute).bytes();
  const auto has = static_cast<int64_t>(cluster.gpu_bytes);
  const int64_t room = optimized::PlannableMemory(has, static_cast<int>(gpus));
  if (need <= room) return "";
  const auto fits = RecomputeThatFits(config, gpus, cluster.gpu_bytes);
  const auto gib = [](int64_t bytes) {
    return static_cast<double>(bytes) / kGibibyte;
  };
  return fmt::format(
      "needs {:.1f} GiB on each GPU, and {:.1f} more for what is loaded "
      "later, but the GPU has {:.1f} (cluster.gpu_bytes); {}",
      gib(need), gib(has - room), gib(has),
      fits ? fmt::format("runtime.recompute = \"{}\" makes it fit",
                         EnumName(*fits))
           : "no runtime.recompute makes it fit: lower "
             "training.balance_group_sequences (which changes the "
             "load-balancing loss), or take more GPUs");
}

}  // namespace

std::vector<std::string> PlanWarnings(const Grid& grid, const Rows& rows,
                                      int64_t free_disk_bytes, size_t at_work) {
  // Problems, each with the rows that have it, ordered by first row.
  std::vector<std::pair<std::string, std::vector<std::string>>> problems;
  for (const RowEstimate& row : rows) {
    for (const std::string& problem :
         {ActivityProblem(row), PrecisionProblem(row), CorpusProblem(row),
          VocabularyProblem(row), BatchProblem(row),
          MemoryProblem(row, grid.cluster)}) {
      if (problem.empty()) continue;
      auto known = problems.begin();
      while (known != problems.end() && known->first != problem) ++known;
      if (known == problems.end()) {
        problems.push_back({problem, {}});
        known = problems.end() - 1;
      }
      known->second.push_back(row.run.corpus.id + "/" + row.run.row.id);
    }
  }
  std::vector<std::string> warnings;
  warnings.reserve(problems.size() + 1);
  for (const auto& [problem, where] : problems) {
    warnings.push_back(fmt::format("{}: {}", fmt::join(where, ", "), problem));
  }
  const int64_t need = Total(rows, at_work).disk_bytes;
  if (need > free_disk_bytes) {
    warnings.push_back(fmt::format(
        "all runs together will write up to {}, but the disk has {} free; "
        "choose a folder on another disk with --out",
        FormatBytes(need), FormatBytes(free_disk_bytes)));
  }
  return warnings;
}

}  // namespace softmoe::experiments
