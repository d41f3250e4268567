// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/config/config_enums.h"
#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/text/suggestion.h"
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

// Whether the mean over rows is one sum of rows: not if the curve, or a task's
// items, have their own error.
bool HasMean(const MiniatureMeasure& measure) {
  return measure.quantity != Quantity::kHellaswag &&
         (measure.against == Against::kZero ||
          measure.against == Against::kRows ||
          measure.against == Against::kBudgetGroup);
}

// Whether this quantity can be compared with this.
bool GoTogether(Quantity quantity, Against against) {
  switch (quantity) {
    case Quantity::kLoss:
      return against == Against::kBudgetGroup ||
             against == Against::kSparseCurve || against == Against::kRows;
    case Quantity::kInferAe:
      return against == Against::kRows;
    case Quantity::kLogLoadVariance:
    case Quantity::kHellaswag:
      return against == Against::kBudgetGroup || against == Against::kRows;
    case Quantity::kLateShare:
    case Quantity::kDepthOrder:
    case Quantity::kEarlyMovement:
      return against == Against::kZero;
    case Quantity::kHalvingCost:
      return against == Against::kHalfOfSparseRange;
    case Quantity::kLogThroughput:
      return against == Against::kNextActiveExperts;
  }
  return false;
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
    claims_.level = NumberIn(&reader, "level", 0, 1);
    claims_.confidence = NumberIn(&reader, "confidence", 0, 1);
    claims_.own_deviation = NumberIn(&reader, "own_deviation", 1, 1e6);
    claims_.own_deviation_rows = NumberIn(&reader, "own_deviation_rows", 0, 1);
    claims_.equal_deviations = NumberIn(&reader, "equal_deviations", 0, 1);
    const int64_t measures = reader.Integer("measures");
    reader.Finish();
    return measures;
  }

  void ReadPlanned(const toml::table& table) {
    TomlReader reader(&table);
    PlannedRuns runs;
    runs.rows = reader.Texts("rows");
    runs.corpus = reader.Text("corpus");
    runs.seeds = DistinctSeeds(&reader, "seeds");
    if (runs.rows.empty()) reader.FailAt("rows", "names no row");
    for (const std::string& row : runs.rows) {
      if (claims_.PlannedSeeds(row, runs.corpus) != nullptr ||
          std::count(runs.rows.begin(), runs.rows.end(), row) > 1) {
        reader.FailAt(
            "rows", fmt::format("plans '{}' on '{}' twice", row, runs.corpus));
      }
    }
    reader.Finish();
    claims_.planned.push_back(std::move(runs));
  }

  void ReadGroups(TomlReader* file) {
    const toml::table& table = RequiredTable(file, "groups");
    TomlReader reader(&table);
    for (const auto& [key, node] : table) {
      const std::string name(key);
      groups_[name] = reader.Texts(name);
      for (const std::string& row : groups_[name]) {
        const bool planned = std::any_of(
            claims_.planned.begin(), claims_.planned.end(),
            [&](const PlannedRuns& runs) { return Contains(runs.rows, row); });
        if (!planned) reader.FailAt(name, NotPlanned(row));
      }
    }
    claims_.sparse = groups_["sparse"];
    if (claims_.sparse.size() < 2) {
      reader.FailAt("sparse", "must name two rows or more, from k = 1 on");
    }
  }

  std::string NotPlanned(const std::string& row) const {
    Strings known;
    for (const auto& [name, rows] : groups_) known.push_back(name);
    for (const PlannedRuns& runs : claims_.planned) {
      known.insert(known.end(), runs.rows.begin(), runs.rows.end());
    }
    return fmt::format("names '{}', which is not a planned row; {}", row,
                       Suggestion(row, known));
  }

  void ReadClaim(const toml::table& table, bool of_paper) {
    TomlReader reader(&table);
    MiniatureClaim claim;
    claim.of_paper = of_paper;
    claim.id = reader.Text("id");
    claim.title = reader.Text("title");
    // For who reads the file: the paper's words or what suggested a hypothesis,
    // and when no verdict is possible.
    for (const char* remark : {"sentence", "where", "not_testable"}) {
      reader.Text(remark);
    }
    claim.assumes = reader.Text("assumes");
    if (!ids_.insert(claim.id).second) {
      reader.FailAt("id", fmt::format("is '{}' a second time", claim.id));
    }
    for (const toml::table* measure : reader.Tables("measures")) {
      claim.measures.push_back(ReadMeasure(*measure));
    }
    if (std::ranges::none_of(claim.measures, &MiniatureMeasure::judged)) {
      reader.FailAt("measures", "has none that is judged");
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
    const bool is_hash =
        earlier.hash.size() == 64 &&
        earlier.hash.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_hash) reader.FailAt("hash", "must be 64 hexadecimal digits");
    if (!ids_.insert(earlier.hash).second) {
      reader.FailAt("hash", "is there a second time");
    }
    for (const toml::table* verdict : reader.Tables("verdicts")) {
      earlier.verdicts.push_back(ReadEarlierVerdict(*verdict, earlier));
    }
    if (earlier.verdicts.empty()) reader.FailAt("verdicts", "has none");
    reader.Finish();
    claims_.history.push_back(std::move(earlier));
  }

  EarlierVerdict ReadEarlierVerdict(const toml::table& table,
                                    const EarlierClaims& earlier) const {
    TomlReader reader(&table);
    EarlierVerdict verdict;
    verdict.claim = reader.Text("claim");
    verdict.verdict = reader.Text("verdict");
    verdict.now = reader.Texts("now");
    verdict.why = reader.Text("why");
    for (const std::string& id : verdict.now) {
      if (std::ranges::find(claims_.claims, id, &MiniatureClaim::id) ==
          claims_.claims.end()) {
        reader.FailAt("now", fmt::format("names '{}', which is no claim", id));
      }
      if (earlier.Before(id) != nullptr) {
        reader.FailAt("now", fmt::format("names '{}' a second time", id));
      }
    }
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
    if (!ids_.insert(measure.id).second) {
      reader.FailAt("id", fmt::format("is '{}' a second time", measure.id));
    }
    if (!GoTogether(measure.quantity, measure.against)) {
      reader.FailAt("against", fmt::format("'{}' does not go with '{}'",
                                           EnumName(measure.against),
                                           EnumName(measure.quantity)));
    }
    if (!std::isfinite(measure.margin) ||
        (measure.holds == Holds::kWithin && measure.margin <= 0)) {
      reader.FailAt("margin", "must be finite, and positive for 'within'");
    }
    if (measure.of_cases == OfCases::kMean && !HasMean(measure)) {
      reader.FailAt(
          "of_cases",
          fmt::format("'mean' does not go with '{}' against '{}'",
                      EnumName(measure.quantity), EnumName(measure.against)));
    }
    ReadRows(&reader, &measure);
    ReadDetails(&reader, &measure);
    reader.Finish();
    return measure;
  }

  void ReadRows(TomlReader* reader, MiniatureMeasure* measure) {
    if (measure->quantity == Quantity::kLogThroughput) return;  // no rows
    measure->corpora = reader->Texts("corpora");
    if (measure->corpora.empty()) reader->FailAt("corpora", "names none");
    measure->rows = PlannedRows(reader, "rows", *measure);
    measure->pooled = PlannedRows(reader, "pooled", *measure);
    if (measure->against == Against::kRows) {
      measure->against_rows = PlannedRows(reader, "against_rows", *measure);
      if (measure->against_rows.size() != measure->rows.size()) {
        reader->FailAt("against_rows", "must name one row for each of 'rows'");
      }
    }
    if (measure->against == Against::kHalfOfSparseRange) {
      measure->against_pooled = PlannedRows(reader, "against_pooled", *measure);
    }
    const bool with_sparse = measure->against == Against::kBudgetGroup ||
                             measure->against == Against::kSparseCurve ||
                             measure->against == Against::kHalfOfSparseRange;
    if (with_sparse)
      RequirePlanned(reader, "against", claims_.sparse, *measure);
    // Every row whose noise a case uses must be in the pool.
    Strings compared = measure->rows;
    compared.insert(compared.end(), measure->against_rows.begin(),
                    measure->against_rows.end());
    Strings others = with_sparse ? claims_.sparse : Strings();
    if (measure->against == Against::kHalfOfSparseRange) {
      RequirePooled(reader, "against_pooled", others, measure->against_pooled);
    } else {
      compared.insert(compared.end(), others.begin(), others.end());
    }
    RequirePooled(reader, "pooled", compared, measure->pooled);
    // Rows with a pool of their own are compared seed by seed, too.
    compared.insert(compared.end(), others.begin(), others.end());
    for (const std::string& corpus : measure->corpora) {
      for (const std::string& row : compared) {
        if (*claims_.PlannedSeeds(row, corpus) !=
            *claims_.PlannedSeeds(compared[0], corpus)) {
          reader->FailAt("rows", fmt::format("'{}' and '{}' have other seeds "
                                             "on '{}', so no pairs",
                                             compared[0], row, corpus));
        }
      }
    }
  }

  // The rows that a list names, directly or by group.
  Strings PlannedRows(TomlReader* reader, const std::string& key,
                      const MiniatureMeasure& measure) const {
    Strings rows;
    for (const std::string& name : reader->Texts(key)) {
      const auto group = groups_.find(name);
      for (const std::string& row :
           group == groups_.end() ? Strings{name} : group->second) {
        if (Contains(rows, row)) {
          reader->FailAt(key, fmt::format("names '{}' twice", row));
        }
        rows.push_back(row);
      }
    }
    if (rows.empty()) reader->FailAt(key, "names no row");
    RequirePlanned(reader, key, rows, measure);
    return rows;
  }

  void RequirePlanned(TomlReader* reader, const std::string& key,
                      const Strings& rows,
                      const MiniatureMeasure& measure) const {
    for (const std::string& row : rows) {
      bool known = false;
      for (const PlannedRuns& runs : claims_.planned) {
        known = known || Contains(runs.rows, row);
      }
      if (!known) reader->FailAt(key, NotPlanned(row));
      for (const std::string& corpus : measure.corpora) {
        if (claims_.PlannedSeeds(row, corpus) == nullptr) {
          reader->FailAt(key, fmt::format("names '{}', which is not planned on "
                                          "'{}'",
                                          row, corpus));
        }
      }
    }
  }

  static void RequirePooled(TomlReader* reader, const std::string& key,
                            const Strings& rows, const Strings& pooled) {
    for (const std::string& row : rows) {
      if (!Contains(pooled, row)) {
        reader->FailAt(key, fmt::format("lacks '{}', whose noise is in the "
                                        "difference",
                                        row));
      }
    }
  }

  // Reads the keys that only one quantity has.
  static void ReadDetails(TomlReader* reader, MiniatureMeasure* measure) {
    switch (measure->quantity) {
      case Quantity::kLateShare:
        measure->share_of_layers = NumberIn(reader, "share_of_layers", 0, 1);
        break;
      case Quantity::kEarlyMovement:
        measure->share_of_layers = NumberIn(reader, "share_of_layers", 0, 1);
        measure->share_of_steps = NumberIn(reader, "share_of_steps", 0, 1);
        measure->share_of_movement =
            NumberIn(reader, "share_of_movement", 0, 1);
        measure->final_share =
            NumberIn(reader, "final_share", measure->share_of_layers, 1);
        measure->least_movement = NumberIn(reader, "least_movement", 0, 1);
        break;
      case Quantity::kLogLoadVariance:
        measure->readings = reader->Texts("readings");
        for (const std::string& reading : measure->readings) {
          if (!ParseEnum<LoadBalanceKind>(reading)) {
            reader->FailAt(
                "readings",
                fmt::format(
                    "names '{}', which is no reading of the balance "
                    "loss; {}",
                    reading,
                    Suggestion(reading, EnumChoices<LoadBalanceKind>())));
          }
        }
        break;
      case Quantity::kHellaswag:
        measure->chance = NumberIn(reader, "chance", 0, 1);
        measure->items = reader->Integer("items");
        if (measure->items < 1) reader->FailAt("items", "must be positive");
        break;
      case Quantity::kLogThroughput: {
        const std::vector<double> experts = reader->Numbers("active_experts");
        const bool ascending =
            std::adjacent_find(experts.begin(), experts.end(),
                               [](double a, double b) { return !(a < b); }) ==
            experts.end();
        if (experts.size() < 2 || !ascending || !(experts.front() > 0)) {
          reader->FailAt("active_experts",
                         "must be two or more positive numbers, ascending");
        }
        measure->active_experts = experts;
        measure->router = reader->Text("router");
        measure->least_samples = reader->Integer("least_samples");
        if (measure->least_samples < 2) {
          reader->FailAt("least_samples", "must be at least 2");
        }
        break;
      }
      default:
        break;
    }
  }

  MiniatureClaims claims_;
  std::map<std::string, Strings> groups_;
  std::set<std::string> ids_;
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
