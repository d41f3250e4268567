// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/results_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/config/config.h"
#include "core/config/config_fields.h"
#include "core/config/config_text.h"
#include "experiments/report/results_columns.h"
#include "experiments/run/run_folder.h"
#include "golden/document/fingerprint.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {
namespace {

using golden::Document;
using golden::Field;
using golden::FieldClass;
using golden::Known;
using golden::Table;
using trainer::RunResult;

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

// `setting`, with the multiples of tau that came of it.
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

// The corpus that a row was trained on. For a published one, what its documents
// are, wherever they lay: the name if they are all, else what is missing.
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

}  // namespace

std::string JoinDistinct(const std::vector<std::string>& values) {
  std::string text;
  std::set<std::string> seen;
  for (const std::string& value : values) {
    if (!seen.insert(value).second) continue;
    text += (text.empty() ? "" : ", ") + value;
  }
  return text;
}

std::string CalibratedTauText(const RowSummary& row, double factor) {
  return WithTau(row, fmt::format("calibrated x {}", factor), factor);
}

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
    // At its default it changes nothing, and older results do not have it.
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
  // What really ran: a row whose seeds ran in several places names them all,
  // and of one that has not run nothing is known.
  add_over("framework", FrameworkText, FieldClass::kReport);
  add_over("gpus", GpusText, FieldClass::kReport);
  const std::string hardware =
      TextOverSeeds(row, [](const RunResult& r) { return r.identity.device; });
  if (!hardware.empty()) add("hardware", hardware, FieldClass::kReport);
  return fields;
}

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

}  // namespace softmoe::experiments
