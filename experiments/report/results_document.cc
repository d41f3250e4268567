// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/results_document.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/config_fields.h"
#include "core/config/config_text.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "experiments/grids/cost_model.h"
#include "experiments/report/results_columns.h"
#include "experiments/report/row_summary.h"
#include "experiments/report/task_comparison.h"
#include "experiments/run/run_folder.h"
#include "golden/document/fingerprint.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {
namespace {

using golden::Cell;
using golden::Column;
using golden::Document;
using golden::Field;
using golden::FieldClass;
using golden::Known;
using golden::Table;
using trainer::RunResult;
using trainer::TaskMeasure;
namespace metrics = trainer::metrics;

// ---- Fields: what a document states beside its numbers: configuration,
// corpus, versions, and where the runs were trained.

// "a, b": each value once, in the order of first occurrence.
std::string JoinDistinct(const std::vector<std::string>& values) {
  std::string text;
  std::set<std::string> seen;
  for (const std::string& value : values) {
    if (!seen.insert(value).second) continue;
    text += (text.empty() ? "" : ", ") + value;
  }
  return text;
}

// One text for the finished seeds of a row; "" if there is none.
std::string TextOverSeeds(
    const RowSummary& row,
    const std::function<std::string(const RunResult&)>& read) {
  std::vector<std::string> values;
  for (const RunOutcome* run : row.Finished()) {
    values.push_back(read(*run->result));
  }
  return JoinDistinct(values);
}

// "SETTING: TAU, ...", with `factor` times the tau of each finished run.
std::string WithTau(const RowSummary& row, const std::string& setting,
                    double factor) {
  const std::string used = TextOverSeeds(row, [factor](const RunResult& r) {
    return fmt::format("{:.6g}", factor * r.tau);
  });
  return used.empty() ? setting : setting + ": " + used;
}

// tau as configured; if calibrated, with the result.
std::string TauText(const RowSummary& row) {
  if (row.config().router.tau) return TomlText(*row.config().router.tau);
  return WithTau(row, "calibrated", 1);
}

// "calibrated x 0.5: 0.587": the setting of a row with calibrated tau that is
// validated at `factor` times that, and the resulting tau.
std::string CalibratedTauText(const RowSummary& row, double factor) {
  return WithTau(row, fmt::format("calibrated x {}", factor), factor);
}

std::string FrameworkText(const RunResult& result) {
  const std::string& backend = result.identity.backend;
  return fmt::format("the {} backend of this project", backend.empty() ? "CPU"
                                                       : backend == "cuda"
                                                           ? "CUDA"
                                                           : backend);
}

std::string GpusText(const RunResult& result) {
  if (result.identity.backend.empty()) return "0";
  return result.devices > 0 ? std::to_string(result.devices) : "not recorded";
}

// The corpus that a row was trained on: for a published one, wherever its files
// lay, the name if it has all its documents, else what is missing.
std::string CorpusField(const RowSummary& row,
                        const std::vector<trainer::PreparedCorpus>& corpora) {
  const std::string& name = row.config().data.corpus;
  std::string text_of;
  for (const trainer::PreparedCorpus& corpus : corpora) {
    const bool own = IsCorpusOf(row.runs.front()->run, corpus);
    if (own || (corpus.corpus == name && text_of.empty())) {
      text_of = corpus.text_of;
    }
    if (own) break;
  }
  return TomlText(text_of.empty() ? name : text_of);
}

// The fields of a row: its configuration, and facts about its finished runs.
// `corpora` are the grid's.
std::vector<Field> FieldsOf(
    const RowSummary& row,
    const std::vector<trainer::PreparedCorpus>& corpora) {
  std::vector<Field> fields;
  const auto add = [&](const std::string& name, const std::string& value,
                       FieldClass field_class) {
    const Known known = value.empty() ? Known::kUnknown : Known::kStated;
    fields.push_back({name, value, field_class, known});
  };
  const auto add_over =
      [&](const char* name,
          const std::function<std::string(const RunResult&)>& read,
          FieldClass field_class) {
        add(name, TextOverSeeds(row, read), field_class);
      };
  const Config& config = row.config();
  VisitConfig(config, [&](const std::string& section, const std::string& key,
                          const auto& value, const AllowedRange&) {
    const std::string name = section + "." + key;
    if (name == "training.seed" || name == "training.precision") return;
    // Its default changes nothing, and older results lack the key.
    if (name == "data.normalise" && config.data.normalise == Normalise::kNone) {
      return;
    }
    add(name,
        name == "router.tau"    ? TauText(row)
        : name == "data.corpus" ? CorpusField(row, corpora)
                                : TomlText(value),
        golden::ChangesNoResult(name) ? FieldClass::kIgnore
                                      : FieldClass::kMustMatch);
  });
  std::vector<std::string> seeds;
  for (const RunOutcome* run : row.Finished()) {
    seeds.push_back(std::to_string(run->run.seed));
  }
  add("training.seed", JoinDistinct(seeds), FieldClass::kIgnore);
  add_over(
      "config_hash",
      [](const RunResult& r) { return ConfigHash(r.identity.config); },
      FieldClass::kIgnore);
  add_over(
      "data.sha256",
      [](const RunResult& r) { return r.identity.tokens.data_sha256; },
      FieldClass::kReport);
  add_over(
      "data.tokenizer_sha256",
      [](const RunResult& r) { return r.identity.tokens.tokenizer_sha256; },
      FieldClass::kMustMatch);
  const std::string bytes = TextOverSeeds(row, [](const RunResult& r) {
    return r.val_bytes_per_token ? fmt::format("{:.4f}", *r.val_bytes_per_token)
                                 : "unknown";
  });
  if (!bytes.empty() && bytes != "unknown") {
    add(golden::kBytesField, bytes, FieldClass::kReport);
  }
  for (const AccuracyColumn& column : AccuracyColumns()) {
    const std::string items = TextOverSeeds(row, [&](const RunResult& r) {
      const auto* task = FindTask(r, column.split);
      return task == nullptr ? "" : task->sha256;
    });
    if (items.empty()) continue;
    add(fmt::format("eval.{}.sha256", column.split), items,
        FieldClass::kReport);
  }
  add_over(
      "code.version", [](const RunResult& r) { return r.code_version; },
      FieldClass::kReport);
  add("precision",
      config.training.precision == Precision::kFp32 ? "float32"
                                                    : "bfloat16 and float32",
      FieldClass::kReport);
  // Where the runs really ran: a row whose seeds ran in several places names
  // them all; for a row that has not run nothing is known.
  add_over("framework", FrameworkText, FieldClass::kReport);
  add_over("gpus", GpusText, FieldClass::kReport);
  const std::string hardware =
      TextOverSeeds(row, [](const RunResult& r) { return r.identity.device; });
  if (!hardware.empty()) add("hardware", hardware, FieldClass::kReport);
  return fields;
}

// Moves the fields that all rows share to the document.
void HoistCommonFields(Document* document) {
  std::vector<std::vector<Field>*> lists;
  for (Table& table : document->tables) {
    for (golden::Row& row : table.rows) lists.push_back(&row.fields);
  }
  if (lists.empty()) return;
  for (const Field& field : *lists.front()) {
    const bool common =
        std::all_of(lists.begin(), lists.end(), [&](const auto* list) {
          return std::find(list->begin(), list->end(), field) != list->end();
        });
    if (common) document->fields.push_back(field);
  }
  for (std::vector<Field>* list : lists) {
    std::erase_if(*list, [&](const Field& field) {
      const auto& shared = document->fields;
      return std::find(shared.begin(), shared.end(), field) != shared.end();
    });
  }
}

// ---- Cells and columns.

// Whether a model has the paper's sizes, for which the Active-Param column is
// 58.54464 + 49.2 AE (ruling 17); for other sizes the formula is meaningless.
bool HasPaperSizes(const ModelConfig& model) {
  const ModelConfig paper;  // compares with the defaults, the paper's sizes
  return model.num_layers == paper.num_layers &&
         model.d_model == paper.d_model && model.d_ffn == paper.d_ffn &&
         model.num_experts == paper.num_experts &&
         model.vocab_size == paper.vocab_size;
}

Cell EmptyCell(const std::string& flag) {
  Cell cell;
  if (!flag.empty()) cell.flags.push_back(flag);
  return cell;
}

// A setting as a cell can hold it, a plain decimal of at most 18 digits
// (golden/document/decimal.h).
std::string PlainSetting(double value) {
  std::string text = Setting(value);
  if (text.find('e') == text.npos) return text;
  text = fmt::format("{:.{}f}", value,
                     std::fabs(value) < 1 ? 17 : golden::kMeasuredDecimals);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Cell MakeCell(const RowSummary& row, const ResultsColumn& measure) {
  if (measure.applies && !measure.applies(row.config())) return EmptyCell("");
  if (!measure.read) return EmptyCell("NOT_MEASURED");
  const Sample sample = row.Over(measure.read);
  // The mean of the survivors is not the result of a row of which some seeds
  // failed. A setting that all survivors share is still known.
  const bool is_known =
      measure.setting && sample.runs > 0 && sample.deviation.value_or(0) == 0;
  if (row.AnyFailed() && !is_known) return EmptyCell("DIVERGED");
  if (sample.runs == 0) return EmptyCell("NOT_RUN");
  if (!std::isfinite(sample.mean)) return EmptyCell("NOT_MEASURED");
  if (std::fabs(sample.mean) > golden::kLargestMeasured) {
    return EmptyCell("DIVERGED");  // an explosion that ended before infinity
  }
  Cell cell;
  cell.value = cell.low = cell.high = sample.mean;
  cell.text = measure.setting ? PlainSetting(sample.mean)
                              : fmt::format("{:.{}f}", sample.mean,
                                            golden::kMeasuredDecimals);
  cell.runs = sample.runs;
  if (!measure.setting) cell.deviation = sample.deviation;
  if (measure.by_k && TraitsOf(row.config()).exact_k) {
    cell.flags.push_back("DERIVED");
  }
  if (measure.accuracy != nullptr) {
    // A mean over several runs has no count.
    cell.proportion =
        golden::Proportion{static_cast<int64_t>(measure.accuracy->items), {}};
    std::vector<const trainer::TaskResult*> answers;
    for (const RunOutcome* run : row.Finished()) {
      answers.push_back(measure.answers(*run->result));
    }
    if (sample.runs == 1) {
      cell.proportion->counts = {
          answers.front()->measures[static_cast<size_t>(measure.by)].correct};
    }
    cell.flip_share = FlipShare(answers, measure.by);
  }
  return cell;
}

// Parameters that one more active expert in each layer adds, in millions.
double PerActiveExpert(const ModelConfig& model) {
  return (ActiveParameters(model, 1) - ActiveParameters(model, 0)) / 1e6;
}

const Column& GoldenColumn(const Table& golden_table, const std::string& id) {
  const int64_t index = golden_table.FindColumn(id);
  SOFTMOE_CHECK(index >= 0) << golden_table.id << " has no column " << id;
  return golden_table.columns[static_cast<size_t>(index)];
}

// The golden's definition of a column, unless ours says more exactly what was
// measured. `per_expert`: PerActiveExpert of the smallest model; nullopt if all
// have the paper's sizes.
Column MakeColumn(const Table& golden_table, const ResultsColumn& measure,
                  std::optional<double> per_expert) {
  if (measure.own) return *measure.own;
  Column column = GoldenColumn(golden_table, measure.column);
  // A quantity that the golden knows exactly, such as the sum of an allocation,
  // is measured here. As a golden for later runs, it must not bind their
  // rounding errors and seeds. Claims about it remain the golden's, and exact.
  if (column.lane == golden::Lane::kExact && !measure.setting) {
    column.lane = golden::Lane::kReportOnly;
  }
  if (measure.column == "active_params" && per_expert) {
    column.metric = metrics::kActiveParameters.definition;
    // The paper's margin is more than all parameters of a small model.
    const double experts =
        GoldenColumn(golden_table, "infer_ae").margin.value();
    column.margin = *per_expert * experts;
    column.margin_basis = fmt::format(
        "{:.6g} per active expert of this grid's smallest model x "
        "the margin {:g} of Infer-AE",
        *per_expert, experts);
  }
  if (measure.accuracy != nullptr && measure.read) {
    column.metric = fmt::format(
        "{} of {}", trainer::kTaskMeasureNames[static_cast<size_t>(measure.by)],
        measure.accuracy->metric);
  }
  return column;
}

// Whether the golden has this row with exactly this tau; the row id gives tau
// with only one digit, which other tau share.
bool HasTau(const Table& golden_table, const std::string& row, double tau) {
  const golden::Row* found = golden_table.FindRow(row);
  if (found == nullptr) return false;
  const auto column = golden_table.FindColumn("infer_tau");
  SOFTMOE_CHECK(column >= 0) << golden_table.id << " has no column infer_tau";
  const double own = found->cells[static_cast<size_t>(column)].value;
  return std::abs(tau - own) <= 1e-9 * own;  // a product, rounded
}

// The grid's name for a corpus that was prepared.
std::string CorpusId(const GridOutcome& outcome,
                     const trainer::PreparedCorpus& corpus) {
  std::string id = "other";
  for (const RunOutcome& run : outcome.runs) {
    if (IsCorpusOf(run.run, corpus)) return run.run.corpus.id;
    if (id == "other" && run.run.config.data.corpus == corpus.corpus) {
      id = run.run.corpus.id;
    }
  }
  return id;
}

// ---- Tables.

class Builder {
 public:
  Builder(const GridOutcome& outcome, const std::string& variant,
          const Document& paper)
      : paper_(paper),
        corpora_(outcome.corpora),
        rows_(SummarizeRows(outcome, variant)) {
    const bool paper_sizes =
        std::ranges::all_of(rows_, [](const RowSummary& row) {
          return HasPaperSizes(row.config().model);
        });
    for (const RowSummary& row : rows_) {
      if (paper_sizes) break;
      const double own = PerActiveExpert(row.config().model);
      per_expert_ = std::min(per_expert_.value_or(own), own);
    }
    std::set<std::string> taken;
    for (const RowSummary& row : rows_) {
      const std::string paper_id = row.paper_id();
      const std::string own_id = row.corpus->id + "/" + row.row->id;
      // The row stands for none of the paper's rows, or for one that is taken.
      const bool none = paper_id.empty() || !taken.insert(paper_id).second;
      table_ids_.push_back(none ? own_id : paper_id);
      // A row that repeats one of a table other than Table 1 has its own id.
      ids_.push_back(row.row->paper_dataset.empty() ? table_ids_.back()
                                                    : own_id);
    }
  }

  bool paper_sizes() const { return !per_expert_; }

  // The golden's table with this id, filled with our numbers.
  Table Make(const std::string& id, std::vector<ResultsColumn> measures,
             bool RouterTraits::*applies) const {
    DropUnasked(&measures);
    Table table = MakeEmpty(id, measures);
    AddRows(measures, applies, ids_, &table);
    return table;
  }

  // Like Make, for the table that an experiment repeats.
  Table MakeRepeated(const std::string& id,
                     std::vector<ResultsColumn> measures) const {
    DropUnasked(&measures);
    Table table = MakeEmpty(id, measures);
    AddRows(measures, nullptr, table_ids_, &table);
    return table;
  }

  // The paper's Table 7: every row at every multiple of its tau.
  Table MakeInferenceTau(const std::string& id, TaskMeasure by) const {
    const auto measures_at = [this, by](double factor) {
      std::vector<ResultsColumn> measures = InferenceTauColumns(factor, by);
      DropUnasked(&measures);
      return measures;
    };
    Table table = MakeEmpty(id, measures_at(1));
    std::set<double> factors;
    for (const RowSummary& row : rows_) {
      const auto& listed =
          row.runs.front()->run.evaluations.inference_tau_factors;
      factors.insert(listed.begin(), listed.end());
    }
    const golden::Table& golden_table = *paper_.FindTable(id);
    for (const double factor : factors) {
      std::vector<std::string> ids;
      for (size_t r = 0; r < rows_.size(); ++r) {
        const double tau = factor * rows_[r].config().router.tau.value_or(0);
        const std::string paper_id =
            fmt::format("{}/infer_tau{:.1f}", table_ids_[r], tau);
        ids.push_back(
            HasTau(golden_table, paper_id, tau)
                ? paper_id
                : fmt::format("{}/infer_tau_x{}", table_ids_[r], factor));
      }
      const size_t before = table.rows.size();
      AddRows(measures_at(factor), &RouterTraits::cutoff, ids, &table);
      size_t r = before;
      for (const RowSummary& row : rows_) {
        if (!HasTrait(row.config(), &RouterTraits::cutoff)) continue;
        golden::Row& out = table.rows[r++];
        // The first cell holds the tau that was set, or nothing if nothing ran.
        const std::string tau = row.config().router.tau
                                    ? out.cells.front().text
                                    : CalibratedTauText(row, factor);
        out.fields.push_back({"eval.tau", tau, FieldClass::kMustMatch,
                              tau.empty() ? Known::kUnknown : Known::kStated});
      }
    }
    return table;
  }

  // A table that the golden does not have: k_l of every layer.
  Table MakeLayers() const {
    int64_t layers = 0;
    for (const RowSummary& row : rows_) {
      layers = std::max(layers, row.config().model.num_layers);
    }
    const std::vector<ResultsColumn> measures = LayerColumns(layers);
    Table table;
    table.id = "layers";
    table.title = "Learned allocation of every layer at the end of training";
    for (const ResultsColumn& measure : measures) {
      table.columns.push_back(*measure.own);
    }
    AddRows(measures, &RouterTraits::learned_budget, ids_, &table);
    return table;
  }

  // One text for all finished runs.
  std::string OverRuns(
      const std::function<std::string(const RunResult&)>& read) const {
    std::vector<std::string> values;
    for (const RowSummary& row : rows_) {
      for (const RunOutcome* run : row.Finished()) {
        values.push_back(read(*run->result));
      }
    }
    return JoinDistinct(values);
  }

 private:
  // Accuracies that no run's plan lists and no result has are not measured;
  // their columns stay the golden's.
  void DropUnasked(std::vector<ResultsColumn>* measures) const {
    for (ResultsColumn& measure : *measures) {
      if (measure.accuracy == nullptr) continue;
      const std::string split = measure.accuracy->split;
      const bool asked = std::ranges::any_of(rows_, [&](const RowSummary& row) {
        return std::ranges::any_of(row.runs, [&](const RunOutcome* run) {
          return std::ranges::count(run->run.evaluations.tasks, split) > 0 ||
                 (run->result && FindTask(*run->result, split) != nullptr);
        });
      });
      if (!asked) measure.read = nullptr;
    }
  }

  // The golden's table with our columns, without rows.
  Table MakeEmpty(const std::string& id,
                  const std::vector<ResultsColumn>& measures) const {
    const Table* golden_table = paper_.FindTable(id);
    SOFTMOE_CHECK(golden_table != nullptr) << "no table " << id;
    Table table;
    table.id = id;
    table.title = golden_table->title + ", as measured by this grid";
    for (const ResultsColumn& measure : measures) {
      table.columns.push_back(MakeColumn(*golden_table, measure, per_expert_));
    }
    return table;
  }

  void AddRows(const std::vector<ResultsColumn>& measures,
               bool RouterTraits::*applies, const std::vector<std::string>& ids,
               Table* table) const {
    for (size_t r = 0; r < rows_.size(); ++r) {
      const RowSummary& row = rows_[r];
      if (!HasTrait(row.config(), applies)) continue;
      golden::Row out;
      out.id = ids[r];
      out.labels = {row.corpus->title, row.row->label,
                    "k=" + Setting(row.config().router.mean_active_experts)};
      out.fields = FieldsOf(row, corpora_);
      for (const ResultsColumn& measure : measures) {
        out.cells.push_back(MakeCell(row, measure));
      }
      table->rows.push_back(std::move(out));
    }
  }

  const Document& paper_;
  const std::vector<trainer::PreparedCorpus>& corpora_;
  std::vector<RowSummary> rows_;
  // The ids of rows_, the paper's where there is one: `ids_` in Table 1 and
  // similar tables, `table_ids_` in the table that the experiment repeats.
  std::vector<std::string> ids_, table_ids_;
  // PerActiveExpert of the smallest model; nullopt if all have the paper's
  // sizes.
  std::optional<double> per_expert_;
};

}  // namespace

std::vector<std::string> Variants(const Grid& grid) {
  // The readings in which rows of the paper appear, if more than one.
  std::vector<std::string> variants;
  bool repeated = false;
  std::set<std::string> rows;
  for (const GridRow& row : grid.rows) {
    if (row.variant.empty()) continue;
    repeated |= !rows.insert(row.paper_row).second;
    if (std::find(variants.begin(), variants.end(), row.variant) ==
        variants.end()) {
      variants.push_back(row.variant);
    }
  }
  if (!repeated) return {""};
  // Published values come first, since the tables are about them.
  std::stable_partition(variants.begin(), variants.end(),
                        [](const std::string& v) { return v == "paper"; });
  return variants;
}

std::vector<TaskMeasure> AccuracyReadings(const GridOutcome& outcome) {
  const bool answered =
      std::ranges::any_of(outcome.runs, [](const RunOutcome& run) {
        return run.result && !TasksOf(*run.result).empty();
      });
  if (!answered) return {TaskMeasure::kAcc};
  return {TaskMeasure::kAcc, TaskMeasure::kAccNorm};
}

std::string ResultsName(const Grid& grid, const std::string& variant,
                        TaskMeasure by) {
  return std::string("results") +
         (variant == Variants(grid).front() ? "" : "-" + variant) +
         (by == TaskMeasure::kAcc ? "" : "-acc_norm") + ".h5";
}

Document ResultsDocument(const GridOutcome& outcome, const std::string& variant,
                         const Document& paper, TaskMeasure by) {
  const Grid& grid = outcome.grid;
  const Builder builder(outcome, variant, paper);
  Document document;
  document.provenance.origin = golden::Origin::kOurRun;
  document.provenance.source = fmt::format(
      "grid {} ({} scale){}{}: {}", grid.name, grid.scale,
      variant.empty() ? "" : ", tau: " + variant,
      by == TaskMeasure::kAcc ? "" : ", accuracies: acc_norm", grid.title);
  document.provenance.generator = "//:grid";
  document.provenance.compiler = "g++ " __VERSION__;
  document.provenance.isa = builder.OverRuns(
      [](const RunResult& r) { return trainer::PlaceText(r.identity); });
  document.provenance.git_commit =
      builder.OverRuns([](const RunResult& r) { return r.code_version; });
  for (const trainer::PreparedCorpus& corpus : outcome.corpora) {
    const auto add = [&](const std::string& name, const std::string& value) {
      if (value.empty()) return;
      document.provenance.more.push_back(
          {"corpus." + CorpusId(outcome, corpus) + name, value,
           FieldClass::kReport, Known::kStated});
    };
    add("", corpus.description);
    add(".provenance", corpus.provenance);
    add(".sha256", corpus.corpus_sha256);
    add(".tokens_sha256", corpus.tokens.data_sha256);
    add(".tokenizer_sha256", corpus.tokens.tokenizer_sha256);
  }
  document.tables = {
      builder.Make("main_results", MainColumns(builder.paper_sizes(), by),
                   nullptr),
      builder.Make("load_variance", LoadVarianceColumns(), nullptr)};
  Table allocation = builder.Make("allocation", AllocationColumns(),
                                  &RouterTraits::learned_budget);
  if (!allocation.rows.empty()) {
    document.tables.push_back(std::move(allocation));
    document.tables.push_back(builder.MakeLayers());
  }
  if (grid.table == "tau_ablation") {
    document.tables.push_back(builder.MakeRepeated(grid.table, TauColumns(by)));
  } else if (grid.table == "jitter") {
    document.tables.push_back(
        builder.MakeRepeated(grid.table, JitterColumns(by)));
  } else if (grid.table == "inference_tau_ablation") {
    document.tables.push_back(builder.MakeInferenceTau(grid.table, by));
  }
  HoistCommonFields(&document);
  return document;
}

}  // namespace softmoe::experiments
