// SPDX-License-Identifier: Apache-2.0
#include "trainer/identity/run_identity.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/config/config_fields.h"
#include "core/config/config_text.h"
#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"

namespace softmoe::trainer {
namespace {

// Returns ("section.key", value as TOML) of every key, in canonical order.
std::vector<std::pair<std::string, std::string>> ConfigRows(
    const Config& config) {
  std::vector<std::pair<std::string, std::string>> rows;
  VisitConfig(config, [&](const auto& section, const auto& key,
                          const auto& field, const AllowedRange&) {
    rows.emplace_back(fmt::format("{}.{}", section, key), TomlText(field));
  });
  return rows;
}

const IdentityDifference* Find(const IdentityDifferences& differences,
                               IdentityPart part) {
  const auto found =
      std::find_if(differences.begin(), differences.end(),
                   [&](const IdentityDifference& d) { return d.part == part; });
  return found == differences.end() ? nullptr : &*found;
}

// Visitors for two identities: Collect visits the first, Compare the second.
auto Collect(std::vector<std::string>* texts) {
  return [texts](IdentityPart, const char*, const std::string& text) {
    texts->push_back(text);
  };
}
auto Compare(const std::vector<std::string>& texts,
             IdentityDifferences* differences) {
  return
      [&texts, differences, i = size_t{0}](IdentityPart part, const char* name,
                                           const std::string& here) mutable {
        const std::string& there = texts.at(i++);
        const bool unknown = part == IdentityPart::kDocuments && there.empty();
        if (there == here || unknown) return;
        differences->push_back({part, name, there, here});
      };
}

std::string RanksText(const RunIdentity& run) {
  return run.ranks.empty() ? "a number of ranks that gives the bits of one"
                           : run.ranks + " ranks";
}

std::string Digests(const IdentityDifference& difference) {
  return fmt::format("SHA-256 {}... there, {}... here",
                     difference.there.substr(0, 16),
                     difference.here.substr(0, 16));
}

}  // namespace

IdentityDifferences CompareConfigs(const Config& there, const Config& here) {
  const auto before = ConfigRows(there);
  const auto after = ConfigRows(here);
  SOFTMOE_CHECK(before.size() == after.size());
  IdentityDifferences differences;
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [key, value] = before[i];
    if (value == after[i].second) continue;
    differences.push_back({IdentityPart::kConfig, key, value, after[i].second});
  }
  return differences;
}

IdentityDifferences CompareTokens(const TokenIdentity& there,
                                  const TokenIdentity& here) {
  IdentityDifferences differences;
  std::vector<std::string> texts;
  VisitTokenTexts(there, Collect(&texts));
  VisitTokenTexts(here, Compare(texts, &differences));
  return differences;
}

IdentityDifferences CompareIdentities(const RunIdentity& there,
                                      const RunIdentity& here) {
  IdentityDifferences differences = CompareConfigs(there.config, here.config);
  std::vector<std::string> texts;
  VisitIdentityTexts(there, Collect(&texts));
  VisitIdentityTexts(here, Compare(texts, &differences));
  return differences;
}

bool Differs(const IdentityDifferences& differences, IdentityPart part) {
  return Find(differences, part) != nullptr;
}

std::string DescribeConfigDifferences(const IdentityDifferences& differences) {
  std::string text;
  for (const IdentityDifference& d : differences) {
    if (d.part != IdentityPart::kConfig) continue;
    text += fmt::format("{}{} is {} there and {} here",
                        text.empty() ? "" : "; ", d.name, d.there, d.here);
  }
  return text;
}

std::string DescribeTokenDifferences(const IdentityDifferences& differences) {
  const auto* tokens = Find(differences, IdentityPart::kTokens);
  // The tokenizer comes first: with another vocabulary all else differs, too.
  if (const auto* d = Find(differences, IdentityPart::kTokenizer)) {
    const char* same = tokens == nullptr ? "the tokens are the same, but " : "";
    if (d->here.empty()) {
      return fmt::format(
          "{}nothing here says which tokenizer made them: put back the .json "
          "file that was beside the .bin file there",
          same);
    }
    if (d->there.empty()) {
      return fmt::format(
          "{}nothing there said which tokenizer made them, but the .json file "
          "here does: move it away if the vocabulary is the same",
          same);
    }
    return "another tokenizer, whose ids mean other words: " + Digests(*d);
  }
  if (tokens != nullptr) return "other tokens: " + Digests(*tokens);
  if (const auto* d = Find(differences, IdentityPart::kDocuments)) {
    return "other documents, hence another split, of the same tokens (.idx): " +
           Digests(*d);
  }
  return "";
}

std::string DescribeTokenDifferences(const TokenIdentity& there,
                                     const TokenIdentity& here) {
  return DescribeTokenDifferences(CompareTokens(there, here));
}

bool SamePlace(const RunIdentity& a, const RunIdentity& b) {
  return a.isa == b.isa && a.backend == b.backend && a.device == b.device &&
         a.libraries == b.libraries;
}

std::string PlaceText(const RunIdentity& run) {
  return run.backend.empty() ? run.isa
                             : fmt::format("{} ({}, {}; {})", run.backend,
                                           run.device, run.isa, run.libraries);
}

std::string HowToGoOn(const RunIdentity& there, const RunIdentity& here) {
  if (there.backend.empty()) {
    return fmt::format("Continue with {}--isa {}",
                       here.backend.empty() ? "" : "--device=cpu ", there.isa);
  }
  return here.backend == there.backend
             ? "Continue on a machine with that device and those libraries"
             : "Continue with --device=cuda on a machine with that device and "
               "those libraries";
}

void RequireSameRun(const std::filesystem::path& path, const RunIdentity& there,
                    const RunIdentity& here, const IdentityRemedies& remedies) {
  const IdentityDifferences differences = CompareIdentities(there, here);
  const std::string config = DescribeConfigDifferences(differences);
  if (!config.empty()) {
    throw ConfigError(
        fmt::format("{}: belongs to another configuration: {}. {}",
                    path.string(), config, remedies.config));
  }
  const std::string tokens = DescribeTokenDifferences(differences);
  if (!tokens.empty()) {
    throw DataError(fmt::format("{}: was trained on other token files: {}. {}",
                                path.string(), tokens, remedies.tokens));
  }
  if (!SamePlace(there, here)) {
    throw ConfigError(fmt::format(
        "{}: was trained with {}{}, this run uses {}{}: the bits would differ. "
        "{}",
        path.string(), there.backend.empty() ? "instruction set " : "",
        PlaceText(there),
        here.backend.empty() && !there.backend.empty() ? "instruction set "
                                                       : "",
        PlaceText(here), remedies.place));
  }
  if (there.ranks != here.ranks) {
    throw ConfigError(fmt::format(
        "{}: was trained by {}, this run has {}: they add gradients in another "
        "order, so the bits would differ. Continue with {}",
        path.string(), RanksText(there), RanksText(here),
        there.ranks.empty()
            ? "1, 2, 4, ... ranks that divide the balance groups of a batch, "
              "or with one rank for each group"
            : "--ranks " + there.ranks));
  }
}

std::string ConfigTable(const Config& config) {
  const auto rows = ConfigRows(config);
  const auto defaults = ConfigRows(Config());
  size_t width = 0;
  for (const auto& [key, value] : rows) width = std::max(width, key.size());
  std::string table;
  for (size_t i = 0; i < rows.size(); ++i) {
    table += fmt::format("{} {:<{}}  {}\n", rows[i] == defaults[i] ? ' ' : '*',
                         rows[i].first, width, rows[i].second);
  }
  table += fmt::format("  {:<{}}  {}   (* differs from the default)\n",
                       "config hash", width, ConfigHash(config));
  return table;
}

void WriteIdentity(const RunIdentity& identity, const std::string& group,
                   Hdf5Writer& file) {
  file.WriteAttribute(group, "config_hash", ConfigHash(identity.config));
  VisitIdentityTexts(identity, [&](IdentityPart part, const char* name,
                                   const std::string& text) {
    // A CPU's run has no device, and most numbers of ranks are not recorded.
    const bool optional =
        part == IdentityPart::kDevice || part == IdentityPart::kRanks;
    if (optional && text.empty()) return;
    file.WriteAttribute(group, name, text);
  });
}

RunIdentity ReadIdentity(const Hdf5Reader& file, const std::string& group,
                         const Config& config) {
  RunIdentity identity;
  identity.config = config;
  if (ConfigHash(config) != file.ReadString(group, "config_hash")) {
    throw DataError(fmt::format(
        "{}: its configuration does not have the hash it was stored with: it "
        "was written by another version of this program; delete it to begin "
        "anew, or use the version that wrote it",
        file.path().string()));
  }
  VisitIdentityTexts(
      identity, [&](IdentityPart part, const char* name, std::string& text) {
        // Results without a recorded document index lack it, too.
        const bool optional = part == IdentityPart::kDocuments ||
                              part == IdentityPart::kDevice ||
                              part == IdentityPart::kRanks;
        if (optional && !file.HasAttribute(group, name)) return;
        text = file.ReadString(group, name);
      });
  return identity;
}

}  // namespace softmoe::trainer
