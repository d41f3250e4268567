// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/regime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/text/suggestion.h"
#include "golden/verdict/definition_reader.h"

namespace softmoe::golden {
namespace {

using Seeds = std::vector<int64_t>;

constexpr const char* kRegimeFile = "golden/paper/regime.toml";
// Leaving one out must leave three for the smooth curve, which has three
// parameters.
constexpr size_t kLeastSparseRows = 4;

bool Contains(const Seeds& seeds, int64_t seed) {
  return std::ranges::find(seeds, seed) != seeds.end();
}

bool ContainsAll(const Seeds& seeds, const Seeds& some) {
  return std::ranges::all_of(
      some, [&](int64_t seed) { return Contains(seeds, seed); });
}

class RegimeReader {
 public:
  RegimeDefinitions Read(const toml::table& file) {
    TomlReader reader(&file);
    ReadRule(RequiredTable(&reader, "rule"));
    for (const toml::table* row : reader.Tables("rows")) ReadRow(*row);
    RequireSparseRows(&reader);
    RequirePrimaryRows(&reader);
    ReadControls(RequiredTable(&reader, "controls"));
    reader.Finish();
    return std::move(regime_);
  }

 private:
  static double Positive(TomlReader* reader, const std::string& key) {
    const double value = reader->Number(key);
    if (!(value > 0) || !std::isfinite(value)) {
      reader->FailAt(key, "must be positive and finite");
    }
    return value;
  }

  static Interval PositiveInterval(TomlReader* reader, const std::string& key) {
    const std::vector<double> ends = reader->Numbers(key);
    if (ends.size() != 2 || !(ends[0] > 0 && ends[0] < ends[1]) ||
        !std::isfinite(ends[1])) {
      reader->FailAt(key, "must be two positive numbers, ascending");
    }
    return {ends[0], ends[1]};
  }

  void ReadRule(const toml::table& table) {
    TomlReader reader(&table);
    if (reader.Integer("procedure") != kRegimeProcedure) {
      reader.FailAt("procedure", fmt::format("must be {}, the only one that "
                                             "this program follows",
                                             kRegimeProcedure));
    }
    regime_.corpus = reader.Text("corpus");
    regime_.confidence = NumberIn(&reader, "confidence", 0, 1);
    regime_.margin = Positive(&reader, "margin");
    regime_.infer_ae_within = Positive(&reader, "infer_ae_within");
    regime_.train_ae_within = Positive(&reader, "train_ae_within");
    regime_.exponents = PositiveInterval(&reader, "exponents");
    regime_.pilot_seeds = DistinctSeeds(&reader, "pilot_seeds");
    regime_.known_seeds = DistinctSeeds(&reader, "known_seeds");
    reader.Finish();
  }

  void ReadRow(const toml::table& table) {
    TomlReader reader(&table);
    RegimeRow row;
    row.id = reader.Text("id");
    if (regime_.Row(row.id) != nullptr) {
      reader.FailAt("id", fmt::format("is '{}' a second time", row.id));
    }
    row.role = reader.Text("role");
    const std::vector<std::string> roles = {"sparse", "primary", "secondary",
                                            "learned"};
    if (std::ranges::find(roles, row.role) == roles.end()) {
      reader.FailAt("role", fmt::format("is '{}', but one of {} is needed",
                                        row.role, fmt::join(roles, ", ")));
    }
    row.seeds = DistinctSeeds(&reader, "seeds");
    for (const int64_t seed : row.seeds) {
      if (Contains(regime_.pilot_seeds, seed)) {
        reader.FailAt("seeds",
                      fmt::format("judges {}, which is a pilot's", seed));
      }
    }
    if (row.role == "sparse" || reader.Has("infer_ae")) {
      row.infer_ae_aim = Positive(&reader, "infer_ae");
    }
    if (row.role == "sparse") {
      if (!regime_.rows.empty() &&
          !(row.infer_ae_aim > regime_.rows.back().infer_ae_aim)) {
        reader.FailAt("infer_ae", "must be above that of the row before it");
      }
    } else {
      ReadSoftRow(&reader, &row);
    }
    reader.Finish();
    regime_.rows.push_back(std::move(row));
  }

  // A soft row is compared with the sparse rows seed by seed, a learned one
  // also with its fixed row.
  void ReadSoftRow(TomlReader* reader, RegimeRow* row) const {
    for (const RegimeRow* sparse : regime_.RowsOf("sparse")) {
      RequireSeedsOf(reader, *row, *sparse);
    }
    if (reader->Has("paper_train_ae")) {
      const Interval paper = PositiveInterval(reader, "paper_train_ae");
      row->paper_train_low = paper.low;
      row->paper_train_high = paper.high;
    }
    if (row->role != "learned") return;
    row->fixed = reader->Text("fixed");
    const RegimeRow* fixed = regime_.Row(row->fixed);
    if (fixed == nullptr || fixed->role == "sparse" ||
        fixed->role == "learned") {
      std::vector<std::string> known;
      for (const char* role : {"primary", "secondary"}) {
        for (const RegimeRow* each : regime_.RowsOf(role)) {
          known.push_back(each->id);
        }
      }
      reader->FailAt("fixed",
                     fmt::format("is '{}', which is no soft row of fixed "
                                 "allocation before this one; {}",
                                 row->fixed, Suggestion(row->fixed, known)));
    }
    RequireSeedsOf(reader, *row, *fixed);
  }

  static void RequireSeedsOf(TomlReader* reader, const RegimeRow& row,
                             const RegimeRow& other) {
    for (const int64_t seed : row.seeds) {
      if (!Contains(other.seeds, seed)) {
        reader->FailAt("seeds", fmt::format("has {}, which '{}' lacks: they "
                                            "are compared seed by seed",
                                            seed, other.id));
      }
    }
  }

  void RequireSparseRows(TomlReader* reader) const {
    const size_t count = regime_.RowsOf("sparse").size();
    for (size_t i = 0; i < regime_.rows.size(); ++i) {
      if ((regime_.rows[i].role == "sparse") != (i < count)) {
        reader->FailAt("rows", "must begin with the sparse ones");
      }
    }
    if (count < kLeastSparseRows) {
      reader->FailAt("rows", fmt::format("has {} sparse ones, but the curve "
                                         "needs {}",
                                         count, kLeastSparseRows));
    }
    for (const RegimeRow* sparse : regime_.RowsOf("sparse")) {
      if (!ContainsAll(sparse->seeds, regime_.known_seeds)) {
        reader->FailAt("rows", fmt::format("'{}' lacks a seed of "
                                           "'known_seeds'",
                                           sparse->id));
      }
    }
  }

  // The rows' mean is judged seed by seed, and again without the known seeds.
  void RequirePrimaryRows(TomlReader* reader) const {
    const std::vector<const RegimeRow*> rows = regime_.RowsOf("primary");
    if (rows.empty()) reader->FailAt("rows", "has no primary one");
    for (const RegimeRow* row : rows) {
      if (row->seeds != rows[0]->seeds) {
        reader->FailAt("rows", fmt::format("'{}' and '{}' are primary, but "
                                           "have other seeds",
                                           rows[0]->id, row->id));
      }
    }
  }

  void ReadControls(const toml::table& table) {
    TomlReader reader(&table);
    RegimeControls& controls = regime_.controls;
    const std::vector<const RegimeRow*> sparse = regime_.RowsOf("sparse");
    auto find = [&](const std::string& id) {
      return std::ranges::find(sparse, id, &RegimeRow::id);
    };
    controls.relabelled = reader.Text("relabelled");
    const auto relabelled = find(controls.relabelled);
    if (relabelled == sparse.end()) {
      reader.FailAt("relabelled", "must name a sparse row");
    }
    controls.relabelled_at = Positive(&reader, "relabelled_at");
    if (!(controls.relabelled_at >= sparse.front()->infer_ae_aim &&
          controls.relabelled_at < (*relabelled)->infer_ae_aim)) {
      reader.FailAt(
          "relabelled_at",
          fmt::format("must lie on the curve, at fewer experts than "
                      "the {:g} of '{}'",
                      (*relabelled)->infer_ae_aim, controls.relabelled));
    }
    controls.left_out = reader.Text("left_out");
    const auto left_out = find(controls.left_out);
    if (left_out == sparse.begin() || left_out >= sparse.end() - 1) {
      reader.FailAt("left_out", "must name a sparse row between two others");
    }
    ReadHalves(&reader);
    reader.Finish();
  }

  void ReadHalves(TomlReader* reader) {
    RegimeControls& controls = regime_.controls;
    controls.halved = reader->Text("halved");
    const RegimeRow* halved = regime_.Row(controls.halved);
    if (halved == nullptr || halved->role != "primary") {
      reader->FailAt("halved", "must name a primary row");
    }
    controls.halves_level = NumberIn(reader, "halves_level", 0, 1);
    controls.first_half = DistinctSeeds(reader, "first_half");
    controls.second_half = DistinctSeeds(reader, "second_half");
    Seeds both = controls.first_half;
    both.insert(both.end(), controls.second_half.begin(),
                controls.second_half.end());
    if (both.size() != halved->seeds.size() ||
        !ContainsAll(both, halved->seeds)) {
      reader->FailAt("second_half",
                     fmt::format("and 'first_half' must be the seeds of '{}', "
                                 "each once",
                                 controls.halved));
    }
  }

  RegimeDefinitions regime_;
};

}  // namespace

const RegimeRow* RegimeDefinitions::Row(const std::string& id) const {
  const auto found = std::ranges::find(rows, id, &RegimeRow::id);
  return found == rows.end() ? nullptr : &*found;
}

std::vector<const RegimeRow*> RegimeDefinitions::RowsOf(
    const std::string& role) const {
  std::vector<const RegimeRow*> found;
  for (const RegimeRow& row : rows) {
    if (row.role == role) found.push_back(&row);
  }
  return found;
}

bool RegimeDefinitions::Judges(const std::string& row, int64_t seed) const {
  const RegimeRow* found = Row(row);
  return found != nullptr && Contains(found->seeds, seed);
}

bool RegimeDefinitions::IsPilot(const std::string& row, int64_t seed) const {
  const RegimeRow* found = Row(row);
  return found != nullptr && found->role != "sparse" &&
         found->infer_ae_aim > 0 && Contains(pilot_seeds, seed);
}

std::string RegimeDefinitions::Hash() const {
  nlohmann::json json = {{"procedure", kRegimeProcedure},
                         {"corpus", corpus},
                         {"confidence", confidence},
                         {"margin", margin},
                         {"infer_ae_within", infer_ae_within},
                         {"train_ae_within", train_ae_within},
                         {"exponents", {exponents.low, exponents.high}},
                         {"pilot_seeds", pilot_seeds},
                         {"known_seeds", known_seeds},
                         {"controls",
                          {{"relabelled", controls.relabelled},
                           {"relabelled_at", controls.relabelled_at},
                           {"halved", controls.halved},
                           {"halves_level", controls.halves_level},
                           {"first_half", controls.first_half},
                           {"second_half", controls.second_half},
                           {"left_out", controls.left_out}}}};
  for (const RegimeRow& row : rows) {
    json["rows"].push_back(
        {{"id", row.id},
         {"role", row.role},
         {"seeds", row.seeds},
         {"infer_ae", row.infer_ae_aim},
         {"paper_train_ae", {row.paper_train_low, row.paper_train_high}},
         {"fixed", row.fixed}});
  }
  return Sha256Hex(json.dump());
}

RegimeDefinitions ParseRegime(const std::string& text,
                              const std::string& name) {
  return RegimeReader().Read(ParseToml(text, name));
}

RegimeDefinitions LoadRegime() {
  return RegimeReader().Read(ParseTomlFile(RunfilePath(kRegimeFile)));
}

}  // namespace softmoe::golden
