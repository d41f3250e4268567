// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/regime.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "golden/verdict/definition_reader.h"

namespace softmoe::golden {
namespace {

using Seeds = std::vector<int64_t>;

constexpr const char* kRegimeFile = "golden/paper/regime.toml";

bool Contains(const Seeds& seeds, int64_t seed) {
  return std::ranges::find(seeds, seed) != seeds.end();
}

class RegimeReader {
 public:
  RegimeDefinitions Read(const toml::table& file) {
    TomlReader reader(&file);
    ReadRule(RequiredTable(&reader, "rule"));
    for (const toml::table* row : reader.Tables("rows")) ReadRow(*row);
    ReadControls(RequiredTable(&reader, "controls"));
    reader.Finish();
    return std::move(regime_);
  }

 private:
  // [LOW, HIGH].
  static Interval Ends(TomlReader* reader, const std::string& key) {
    const std::vector<double> ends = reader->Numbers(key);
    if (ends.size() != 2) reader->FailAt(key, "must be [LOW, HIGH]");
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
    regime_.confidence = reader.Number("confidence");
    regime_.margin = reader.Number("margin");
    regime_.infer_ae_within = reader.Number("infer_ae_within");
    regime_.train_ae_within = reader.Number("train_ae_within");
    regime_.exponents = Ends(&reader, "exponents");
    regime_.pilot_seeds = reader.Integers("pilot_seeds");
    regime_.known_seeds = reader.Integers("known_seeds");
    reader.Finish();
  }

  void ReadRow(const toml::table& table) {
    TomlReader reader(&table);
    RegimeRow row;
    row.id = reader.Text("id");
    row.role = reader.Text("role");
    row.seeds = reader.Integers("seeds");
    if (row.role == "sparse" || reader.Has("infer_ae")) {
      row.infer_ae_aim = reader.Number("infer_ae");
    }
    if (reader.Has("paper_train_ae")) {
      const Interval paper = Ends(&reader, "paper_train_ae");
      row.paper_train_low = paper.low;
      row.paper_train_high = paper.high;
    }
    if (row.role == "learned") row.fixed = reader.Text("fixed");
    reader.Finish();
    regime_.rows.push_back(std::move(row));
  }

  void ReadControls(const toml::table& table) {
    TomlReader reader(&table);
    RegimeControls& controls = regime_.controls;
    controls.relabelled = reader.Text("relabelled");
    controls.relabelled_at = reader.Number("relabelled_at");
    controls.left_out = reader.Text("left_out");
    controls.halved = reader.Text("halved");
    controls.halves_level = reader.Number("halves_level");
    controls.first_half = reader.Integers("first_half");
    controls.second_half = reader.Integers("second_half");
    reader.Finish();
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
