// SPDX-License-Identifier: Apache-2.0
//
// Checks that the cells, rows and tables that claims and notes name exist.
#include <fmt/format.h>

#include <set>
#include <string_view>

#include "golden/document/decimal.h"
#include "golden/document/document_check.h"

namespace softmoe::golden::internal {
namespace {

// "ROW:COLUMN" of a table.
bool IsCell(const Table& table, std::string_view reference) {
  const size_t colon = reference.rfind(':');
  return colon != std::string_view::npos &&
         table.FindRow(std::string(reference.substr(0, colon))) != nullptr &&
         table.FindColumn(std::string(reference.substr(colon + 1))) >= 0;
}

}  // namespace

void CheckClaims(const Document& document) {
  static const std::set<std::string> kOperators = {"<",  "<=", ">",
                                                   ">=", ">~", "=="};
  static const std::set<std::string> kVerdicts = {
      "HOLDS", "REFUTED", "NOT_RESOLVED_BY_PAPER", "NO_DATA"};
  std::set<std::string> seen;
  for (size_t i = 0; i < document.claims.size(); ++i) {
    const Claim& claim = document.claims[i];
    auto place = [&](const char* name) {
      return fmt::format("/claims/{}[{}]", name, i);
    };
    CheckId(place("id"), claim.id);
    CheckUnique(place("id"), claim.id, &seen);
    CheckNonEmpty(place("text"), claim.text);
    const Table* table = document.FindTable(claim.scope);
    if (table == nullptr) {
      Fail(place("scope"), fmt::format("names no table: '{}'", claim.scope),
           "use the id of a table of this file");
    }
    if (!kOperators.contains(claim.op)) {
      Fail(place("op"), fmt::format("is '{}'", claim.op),
           "use <, <=, >, >=, >~ or ==");
    }
    if (!IsCell(*table, claim.left)) {
      Fail(place("lhs"), fmt::format("names no cell: '{}'", claim.left),
           "write ROW:COLUMN of the table " + claim.scope);
    }
    if (!IsCell(*table, claim.right) && !Decimal::Parse(claim.right)) {
      Fail(place("rhs"),
           fmt::format("is neither cell nor number: '{}'", claim.right),
           "write ROW:COLUMN of the table " + claim.scope + ", or a number");
    }
    if (!kVerdicts.contains(claim.published_verdict)) {
      Fail(place("published_verdict"),
           fmt::format("is '{}'", claim.published_verdict),
           "use HOLDS, REFUTED, NOT_RESOLVED_BY_PAPER or NO_DATA");
    }
  }
}

namespace {

bool IsTableOrPart(const Document& document, const std::string& place) {
  for (const Table& table : document.tables) {
    if (place == table.id) return true;
    if (!place.starts_with(table.id + "/")) continue;
    const std::string rest = place.substr(table.id.size() + 1);
    if (table.FindRow(rest) != nullptr) return true;
    const size_t slash = rest.rfind('/');
    if (slash == std::string::npos) {
      return table.FindColumn(rest) >= 0;
    }
    return table.FindRow(rest.substr(0, slash)) != nullptr &&
           table.FindColumn(rest.substr(slash + 1)) >= 0;
  }
  return false;
}

}  // namespace

void CheckNotes(const Document& document) {
  std::set<std::string> places;
  for (const Claim& claim : document.claims) places.insert("claim/" + claim.id);
  std::set<std::string> seen;
  for (size_t i = 0; i < document.notes.size(); ++i) {
    const Note& note = document.notes[i];
    CheckId(fmt::format("/notes/id[{}]", i), note.id);
    CheckUnique(fmt::format("/notes/id[{}]", i), note.id, &seen);
    CheckNonEmpty(fmt::format("/notes/text[{}]", i), note.text);
    for (const std::string& concern : note.concerns) {
      const bool known = (concern.starts_with("text/") && concern.size() > 5) ||
                         places.contains(concern) ||
                         IsTableOrPart(document, concern);
      if (!known) {
        Fail("/notes/concerns",
             fmt::format("of {} is '{}', which is not here", note.id, concern),
             "write TABLE, TABLE/ROW, TABLE/COLUMN, TABLE/ROW/COLUMN, "
             "claim/ID or text/PLACE");
      }
    }
  }
  for (const Table& table : document.tables) {
    for (const Row& row : table.rows) {
      for (const Cell& cell : row.cells) {
        for (const std::string& note : cell.notes) {
          if (!seen.contains(note)) {
            Fail(fmt::format("/tables/{}/cells", table.id),
                 fmt::format("refers in row {} to the note '{}', which is not "
                             "in /notes",
                             row.id, note),
                 "add the note, or remove the reference");
          }
        }
      }
    }
  }
}

}  // namespace softmoe::golden::internal
