// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/config/config_enums.h"
#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "golden/document/document_format.h"
#include "golden/verdict/definition_reader.h"

namespace softmoe {

// ---- The names of enumerations in paper/miniature.toml.

template <>
struct EnumNames<golden::Quantity> {
  static constexpr std::pair<golden::Quantity, const char*> kNames[] = {
      {golden::Quantity::kLoss, "loss"},
      {golden::Quantity::kInferAe, "infer_ae"},
      {golden::Quantity::kLogLoadVariance, "log_load_variance"},
      {golden::Quantity::kHellaswag, "hellaswag"},
      {golden::Quantity::kLateShare, "late_share"},
      {golden::Quantity::kDepthOrder, "depth_order"},
      {golden::Quantity::kEarlyMovement, "early_movement"},
      {golden::Quantity::kHalvingCost, "halving_cost"},
      {golden::Quantity::kLogThroughput, "log_throughput"}};
};
template <>
struct EnumNames<golden::Against> {
  static constexpr std::pair<golden::Against, const char*> kNames[] = {
      {golden::Against::kZero, "zero"},
      {golden::Against::kBudgetGroup, "budget_group"},
      {golden::Against::kSparseCurve, "sparse_curve"},
      {golden::Against::kRows, "rows"},
      {golden::Against::kHalfOfSparseRange, "half_of_sparse_range"},
      {golden::Against::kNextActiveExperts, "next_active_experts"}};
};
template <>
struct EnumNames<golden::Holds> {
  static constexpr std::pair<golden::Holds, const char*> kNames[] = {
      {golden::Holds::kBelow, "below"},
      {golden::Holds::kAbove, "above"},
      {golden::Holds::kWithin, "within"}};
};
template <>
struct EnumNames<golden::OfCases> {
  static constexpr std::pair<golden::OfCases, const char*> kNames[] = {
      {golden::OfCases::kEvery, "every"},
      {golden::OfCases::kMost, "most"},
      {golden::OfCases::kMean, "mean"},
      {golden::OfCases::kNone, "none"}};
};
template <>
struct EnumNames<golden::Noise> {
  static constexpr std::pair<golden::Noise, const char*> kNames[] = {
      {golden::Noise::kPaired, "paired"}, {golden::Noise::kPlain, "plain"}};
};

}  // namespace softmoe

namespace softmoe::golden {

// ---- The definitions.

namespace {

using Strings = std::vector<std::string>;

constexpr const char* kMiniatureFile = "golden/paper/miniature.toml";

bool Contains(const Strings& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

class MiniatureReader {
 public:
  MiniatureClaims Read(const toml::table& file) {
    TomlReader reader(&file);
    const int64_t measures = ReadFamily(&reader);
    for (const toml::table* planned : reader.Tables("planned")) {
      ReadPlanned(*planned);
    }
    ReadGroups(&reader);
    for (const toml::table* claim : reader.Tables("claims")) {
      ReadClaim(*claim, /*of_paper=*/true);
    }
    for (const toml::table* claim : reader.Tables("hypotheses")) {
      ReadClaim(*claim, /*of_paper=*/false);
    }
    for (const toml::table* earlier : reader.Tables("history")) {
      ReadEarlier(*earlier);
    }
    if (claims_.num_measures() != measures) {
      reader.FailAt("family",
                    fmt::format("says {} measures, but the claims have {}",
                                measures, claims_.num_measures()));
    }
    reader.Finish();
    return std::move(claims_);
  }

 private:
  int64_t ReadFamily(TomlReader* file) {
    TomlReader reader(&RequiredTable(file, "family"));
    if (reader.Integer("procedure") != kMiniatureProcedure) {
      reader.FailAt("procedure", fmt::format("must be {}, the only one that "
                                             "this program follows",
                                             kMiniatureProcedure));
    }
    claims_.level = reader.Number("level");
    claims_.confidence = reader.Number("confidence");
    claims_.own_deviation = reader.Number("own_deviation");
    claims_.own_deviation_rows = reader.Number("own_deviation_rows");
    claims_.equal_deviations = reader.Number("equal_deviations");
    const int64_t measures = reader.Integer("measures");
    reader.Finish();
    return measures;
  }

  void ReadPlanned(const toml::table& table) {
    TomlReader reader(&table);
    PlannedRuns runs;
    runs.rows = reader.Texts("rows");
    runs.corpus = reader.Text("corpus");
    runs.seeds = reader.Integers("seeds");
    reader.Finish();
    claims_.planned.push_back(std::move(runs));
  }

  void ReadGroups(TomlReader* file) {
    const toml::table& table = RequiredTable(file, "groups");
    TomlReader reader(&table);
    for (const auto& [key, node] : table) {
      const std::string name(key);
      groups_[name] = reader.Texts(name);
    }
    claims_.sparse = groups_["sparse"];
  }

  void ReadClaim(const toml::table& table, bool of_paper) {
    TomlReader reader(&table);
    MiniatureClaim claim;
    claim.of_paper = of_paper;
    claim.id = reader.Text("id");
    claim.title = reader.Text("title");
    // For readers of the file: the paper's words, or what suggested a
    // hypothesis; and when no verdict is possible.
    for (const char* remark : {"sentence", "where", "not_testable"}) {
      reader.Text(remark);
    }
    claim.assumes = reader.Text("assumes");
    for (const toml::table* measure : reader.Tables("measures")) {
      claim.measures.push_back(ReadMeasure(*measure));
    }
    reader.Finish();
    claims_.claims.push_back(std::move(claim));
  }

  void ReadEarlier(const toml::table& table) {
    TomlReader reader(&table);
    EarlierClaims earlier;
    earlier.hash = reader.Text("hash");
    earlier.procedure = reader.Integer("procedure");
    earlier.frozen = reader.Text("frozen");
    earlier.why = reader.Text("why");
    for (const toml::table* verdict : reader.Tables("verdicts")) {
      earlier.verdicts.push_back(ReadEarlierVerdict(*verdict));
    }
    reader.Finish();
    claims_.history.push_back(std::move(earlier));
  }

  static EarlierVerdict ReadEarlierVerdict(const toml::table& table) {
    TomlReader reader(&table);
    EarlierVerdict verdict;
    verdict.claim = reader.Text("claim");
    verdict.verdict = reader.Text("verdict");
    verdict.now = reader.Texts("now");
    verdict.why = reader.Text("why");
    reader.Finish();
    return verdict;
  }

  MiniatureMeasure ReadMeasure(const toml::table& table) {
    TomlReader reader(&table);
    MiniatureMeasure measure;
    measure.id = reader.Text("id");
    measure.text = reader.Text("text");
    measure.unit = reader.Text("unit");
    measure.quantity = ReadEnum<Quantity>(&reader, "quantity");
    measure.against = ReadEnum<Against>(&reader, "against");
    measure.of_cases = ReadEnum<OfCases>(&reader, "of_cases");
    measure.holds = ReadEnum<Holds>(&reader, "holds");
    measure.noise = ReadEnum<Noise>(&reader, "noise");
    measure.margin = reader.Number("margin");
    ReadRows(&reader, &measure);
    ReadDetails(&reader, &measure);
    reader.Finish();
    return measure;
  }

  void ReadRows(TomlReader* reader, MiniatureMeasure* measure) {
    if (measure->quantity == Quantity::kLogThroughput) return;  // no rows
    measure->corpora = reader->Texts("corpora");
    measure->rows = RowsOf(reader, "rows");
    measure->pooled = RowsOf(reader, "pooled");
    if (measure->against == Against::kRows) {
      measure->against_rows = RowsOf(reader, "against_rows");
    }
    if (measure->against == Against::kHalfOfSparseRange) {
      measure->against_pooled = RowsOf(reader, "against_pooled");
    }
  }

  // The rows that a list names, directly or by group.
  Strings RowsOf(TomlReader* reader, const std::string& key) const {
    Strings rows;
    for (const std::string& name : reader->Texts(key)) {
      const auto group = groups_.find(name);
      if (group == groups_.end()) {
        rows.push_back(name);
      } else {
        rows.insert(rows.end(), group->second.begin(), group->second.end());
      }
    }
    return rows;
  }

  // Reads the keys that only one quantity has.
  static void ReadDetails(TomlReader* reader, MiniatureMeasure* measure) {
    switch (measure->quantity) {
      case Quantity::kLateShare:
        measure->share_of_layers = reader->Number("share_of_layers");
        break;
      case Quantity::kEarlyMovement:
        measure->share_of_layers = reader->Number("share_of_layers");
        measure->share_of_steps = reader->Number("share_of_steps");
        measure->share_of_movement = reader->Number("share_of_movement");
        measure->final_share = reader->Number("final_share");
        measure->least_movement = reader->Number("least_movement");
        break;
      case Quantity::kLogLoadVariance:
        measure->readings = reader->Texts("readings");
        break;
      case Quantity::kHellaswag:
        measure->chance = reader->Number("chance");
        measure->items = reader->Integer("items");
        break;
      case Quantity::kLogThroughput:
        measure->active_experts = reader->Numbers("active_experts");
        measure->router = reader->Text("router");
        measure->least_samples = reader->Integer("least_samples");
        break;
      default:
        break;
    }
  }

  MiniatureClaims claims_;
  std::map<std::string, Strings> groups_;
};

nlohmann::json MeasureJson(const MiniatureMeasure& measure) {
  return {{"id", measure.id},
          {"unit", measure.unit},
          {"quantity", EnumName(measure.quantity)},
          {"rows", measure.rows},
          {"against", EnumName(measure.against)},
          {"against_rows", measure.against_rows},
          {"corpora", measure.corpora},
          {"of_cases", EnumName(measure.of_cases)},
          {"holds", EnumName(measure.holds)},
          {"margin", measure.margin},
          {"noise", EnumName(measure.noise)},
          {"pooled", measure.pooled},
          {"against_pooled", measure.against_pooled},
          {"share_of_layers", measure.share_of_layers},
          {"share_of_steps", measure.share_of_steps},
          {"least_movement", measure.least_movement},
          {"final_share", measure.final_share},
          {"share_of_movement", measure.share_of_movement},
          {"readings", measure.readings},
          {"router", measure.router},
          {"chance", measure.chance},
          {"items", measure.items},
          {"active_experts", measure.active_experts},
          {"least_samples", measure.least_samples}};
}

}  // namespace

const EarlierVerdict* EarlierClaims::Before(const std::string& id) const {
  const auto found = std::ranges::find_if(
      verdicts,
      [&](const EarlierVerdict& each) { return Contains(each.now, id); });
  return found == verdicts.end() ? nullptr : &*found;
}

bool MiniatureMeasure::Uses(const std::string& row) const {
  return Contains(pooled, row) || Contains(against_pooled, row);
}

int64_t MiniatureClaims::num_measures() const {
  int64_t count = 0;
  for (const MiniatureClaim& claim : claims) {
    count += std::ranges::count_if(claim.measures, &MiniatureMeasure::judged);
  }
  return count;
}

bool MiniatureClaims::Uses(const std::string& row) const {
  return std::ranges::any_of(claims, [&](const MiniatureClaim& claim) {
    return std::ranges::any_of(
        claim.measures,
        [&](const MiniatureMeasure& measure) { return measure.Uses(row); });
  });
}

const std::vector<int64_t>* MiniatureClaims::PlannedSeeds(
    const std::string& row, const std::string& corpus) const {
  for (const PlannedRuns& runs : planned) {
    if (runs.corpus == corpus && Contains(runs.rows, row)) return &runs.seeds;
  }
  return nullptr;
}

std::string MiniatureClaims::Hash() const {
  nlohmann::json json = {{"procedure", kMiniatureProcedure},
                         {"level", level},
                         {"confidence", confidence},
                         {"own_deviation", own_deviation},
                         {"own_deviation_rows", own_deviation_rows},
                         {"equal_deviations", equal_deviations},
                         {"sparse", sparse}};
  for (const PlannedRuns& runs : planned) {
    json["planned"].push_back(
        {{"rows", runs.rows}, {"corpus", runs.corpus}, {"seeds", runs.seeds}});
  }
  for (const MiniatureClaim& claim : claims) {
    nlohmann::json measures = nlohmann::json::array();
    for (const MiniatureMeasure& measure : claim.measures) {
      measures.push_back(MeasureJson(measure));
    }
    json["claims"].push_back({{"id", claim.id}, {"measures", measures}});
  }
  return Sha256Hex(json.dump());
}

MiniatureClaims ParseMiniatureClaims(const std::string& text,
                                     const std::string& name) {
  return MiniatureReader().Read(ParseToml(text, name));
}

MiniatureClaims LoadMiniatureClaims() {
  return MiniatureReader().Read(ParseTomlFile(RunfilePath(kMiniatureFile)));
}

}  // namespace softmoe::golden
