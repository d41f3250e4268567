// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/paper_remarks.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/errors.h"
#include "golden/document/claims.h"

namespace softmoe::golden {
namespace {

using Strings = std::vector<std::string>;

void AddNoteToCells(const Note& note, const std::string& place, Table* table) {
  for (Row& row : table->rows) {
    for (size_t c = 0; c < row.cells.size(); ++c) {
      const std::string& column = table->columns[c].id;
      const std::string prefix = table->id + "/";
      const bool concerned = place == prefix + row.id ||
                             place == prefix + column ||
                             place == prefix + row.id + "/" + column;
      Strings& notes = row.cells[c].notes;
      if (concerned &&
          std::find(notes.begin(), notes.end(), note.id) == notes.end()) {
        notes.push_back(note.id);
      }
    }
  }
}

// "claim/ID" -> all of "claim/ID.1", "claim/ID.2", ...; otherwise the place
// itself.
Strings Places(const std::string& place, const Document& document) {
  Strings places;
  for (const Claim& claim : document.claims) {
    const std::string name = "claim/" + claim.id;
    if (name.substr(0, name.rfind('.')) == place) places.push_back(name);
  }
  return places.empty() ? Strings{place} : places;
}

}  // namespace

void AddClaims(const std::filesystem::path& path, Document* document) {
  const toml::table source = ParseTomlFile(path);
  TomlReader reader(&source);
  for (const toml::table* entry : reader.Tables("claims")) {
    TomlReader claim_reader(entry);
    Claim claim;
    const std::string id = claim_reader.Text("id");
    claim.text = claim_reader.Text("text");
    claim.scope = claim_reader.Text("scope");
    claim.op = claim_reader.Text("op");
    const std::vector<Strings> pairs = claim_reader.TextLists("pairs");
    const Strings published = claim_reader.Texts("published");
    if (pairs.empty() || published.size() != pairs.size()) {
      claim_reader.FailAt("published",
                          fmt::format("has {} verdicts for {} pairs",
                                      published.size(), pairs.size()));
    }
    claim_reader.Finish();
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].size() != 2) {
        claim_reader.FailAt("pairs", "must be pairs [LEFT, RIGHT]");
      }
      claim.id = pairs.size() == 1 ? id : fmt::format("{}.{}", id, i + 1);
      claim.left = pairs[i][0];
      claim.right = pairs[i][1];
      claim.published_verdict = published[i];
      const std::string verdict = PublishedVerdict(*document, claim);
      if (verdict != claim.published_verdict) {
        claim_reader.FailAt(
            "published",
            fmt::format("says {} of {}, but the numbers give {}: {} {} {}",
                        claim.published_verdict, claim.id, verdict, claim.left,
                        claim.op, claim.right));
      }
      document->claims.push_back(claim);
    }
  }
  reader.Finish();
}

void AddNotes(const std::filesystem::path& path, Document* document) {
  const toml::table source = ParseTomlFile(path);
  TomlReader reader(&source);
  for (const toml::table* entry : reader.Tables("notes")) {
    TomlReader note_reader(entry);
    Note note;
    note.id = note_reader.Text("id");
    note.text = note_reader.Text("text");
    for (const std::string& place : note_reader.Texts("concerns")) {
      const Strings places = Places(place, *document);
      note.concerns.insert(note.concerns.end(), places.begin(), places.end());
    }
    if (note.concerns.empty()) {
      note_reader.FailAt("concerns", "must name at least one place");
    }
    note_reader.Finish();
    for (const std::string& place : note.concerns) {
      for (Table& table : document->tables) {
        AddNoteToCells(note, place, &table);
      }
    }
    document->notes.push_back(std::move(note));
  }
  reader.Finish();
}

}  // namespace softmoe::golden
