// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_corpora.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "core/errors.h"
#include "core/files/sha256.h"
#include "experiments/run/grid_requirements.h"
#include "experiments/run/run_device.h"
#include "experiments/run/run_folder.h"
#include "trainer/corpora/corpus.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/trainer.h"
#include "trainer/tokens/prepare.h"

namespace softmoe::experiments {

namespace fs = std::filesystem;

namespace {

// Whether a text is the one that the tokens were made from.
enum class TextNow { kUnknown, kSame, kOther };

// Compares the text of the corpus recorded at `prefix`. Nobody edits a
// stand-in's packages, and a text file's provenance has its hash.
TextNow CompareText(const GridRun& run, const fs::path& prefix) {
  const trainer::PreparedCorpus corpus = trainer::ReadPreparedCorpus(prefix);
  if (corpus.stand_in) return TextNow::kSame;
  const std::string& name = run.config.data.corpus;
  if (!name.starts_with("path:") ||
      corpus.provenance.find("(SHA-256 ") == std::string::npos) {
    return TextNow::kUnknown;
  }
  const fs::path text = trainer::SizeOfCorpus(name, /*cache=*/{}).place;
  std::error_code unreadable;
  if (!fs::is_regular_file(text, unreadable)) return TextNow::kUnknown;
  try {
    const std::string now = fmt::format("(SHA-256 {})", Sha256OfFile(text));
    return corpus.provenance.find(now) == std::string::npos ? TextNow::kOther
                                                            : TextNow::kSame;
  } catch (const EnvironmentError&) {
    return TextNow::kUnknown;  // it need not be readable
  }
}

}  // namespace

void GridCorpora::RequireDevice(const RunOutcome& run) {
  if (run.state == RunState::kFinished) return;
  optimized::CheckPrecision(run.run.config, run.run.runtime);
  (void)PlaceOf(run.run.runtime);
}

void GridCorpora::Prepare(const GridOutcome& outcome,
                          const std::function<void()>& stop_if_asked,
                          const std::function<void(const std::string&)>& note) {
  std::map<fs::path, TextNow> not_needed;
  for (const size_t r : options_.selected) {
    const RunOutcome& run = outcome.runs[r];
    const fs::path prefix = CorpusPrefix(run.run, options_.folder);
    if (prepared_.contains(prefix)) continue;
    stop_if_asked();
    if (run.state == RunState::kFinished &&
        fs::exists(prefix.string() + ".json") &&
        !options_.tokens.contains(run.run.config.data.corpus) &&
        !CanBeMeasured(run)) {
      const auto [text, is_new] = not_needed.try_emplace(prefix);
      if (is_new) text->second = CompareText(run.run, prefix);
      if (text->second != TextNow::kOther) continue;
    }
    PrepareAt(prefix, run.run);
  }
  for (const auto& [prefix, text] : not_needed) {
    if (text != TextNow::kUnknown || prepared_.contains(prefix)) continue;
    note(fmt::format(
        "corpus {}: all its runs are finished, so its text was not looked at",
        trainer::ReadPreparedCorpus(prefix).corpus));
  }
}

trainer::PreparedCorpus GridCorpora::CorpusOf(const GridRun& run) {
  const fs::path prefix = CorpusPrefix(run, options_.folder);
  if (!prepared_.contains(prefix)) PrepareAt(prefix, run);
  trainer::PreparedCorpus corpus = prepared_.at(prefix);
  corpus.prefix = prefix;
  return corpus;
}

const fs::path& GridCorpora::TokensOf(const GridRun& run) const {
  return prepared_.at(CorpusPrefix(run, options_.folder)).prefix;
}

void GridCorpora::CheckFinishedRuns(const GridOutcome& outcome,
                                    bool only_reads) {
  for (const RunOutcome& run : outcome.runs) {
    // Recorded runs may have been computed anywhere; the record says where.
    if (run.state != RunState::kFinished || run.recorded) continue;
    const trainer::RunIdentity& there = run.result->identity;
    trainer::RunIdentity here = there;  // ReadRun compared the configuration
    const auto corpus = prepared_.find(CorpusPrefix(run.run, options_.folder));
    if (corpus != prepared_.end()) here.tokens = corpus->second.tokens;
    if (const auto place = RequiredPlace(run.run.runtime, only_reads)) {
      trainer::SetPlace(*place, here);
    }
    // If runs are only read, one rank is the default and constrains nothing.
    if (const int ranks = NumRanks(options_); ranks > 1 || !only_reads) {
      here.ranks = trainer::RanksInIdentity(run.run.config, ranks);
    }
    trainer::RequireSameRun(
        run.folder / trainer::kResultName, there, here,
        {.config = "",
         .tokens = fmt::format(
             "Corpus '{}' has other tokens now: use another folder (--out), "
             "or, to train anew, delete the folders of all runs on it and "
             "{}.json",
             run.run.config.data.corpus,
             CorpusPrefix(run.run, options_.folder).string()),
         .place = fmt::format("{}, or use another folder (--out)",
                              trainer::HowToGoOn(there, here))});
  }
  RequireSameTokens(outcome);
  // There may also be runs of other seeds, which this grid does not read.
  for (const trainer::PreparedCorpus& there : outcome.corpora) {
    const auto here = prepared_.find(there.prefix);
    if (here == prepared_.end()) continue;
    const std::string other =
        trainer::DescribeTokenDifferences(there.tokens, here->second.tokens);
    if (other.empty()) continue;
    throw ConfigError(fmt::format(
        "{}.json: corpus '{}' has other tokens now: {}; use another folder "
        "(--out), or, to train anew, delete that file and the folders of all "
        "runs on its tokens",
        there.prefix.string(), there.corpus, other));
  }
}

void GridCorpora::WriteRecords() const {
  for (const auto& [prefix, corpus] : prepared_) {
    trainer::PreparedCorpus copy = corpus;
    copy.prefix = prefix;
    copy.from_cache = false;
    trainer::WritePreparedCorpus(copy);
  }
}

void GridCorpora::PrepareAt(const fs::path& prefix, const GridRun& run) {
  const Config& config = run.config;
  if (options_.tokens.contains(config.data.corpus)) {
    prepared_[prefix] = FindTokens(run, options_);
    return;
  }
  trainer::PrepareOptions options;
  options.threads = run.runtime.threads;
  options.places = trainer::PlacesOf(run.runtime);
  options.quiet = options_.quiet;
  options.only_find = only_find_;
  prepared_[prefix] =
      trainer::PrepareCorpus(config.data, config.model.vocab_size, options);
}

// Where finished runs must have been computed: where the user asks, or else
// where later runs will be or this session's runs were. nullopt if that is
// open: reading uses no kernels.
std::optional<optimized::DeviceIdentity> GridCorpora::RequiredPlace(
    const RuntimeConfig& asked, bool only_reads) {
  if (asked.isa.empty() && asked.device.empty() && only_reads) {
    return std::nullopt;
  }
  return PlaceOf(asked);
}

const optimized::DeviceIdentity& GridCorpora::PlaceOf(
    const RuntimeConfig& asked) {
  const auto [place, is_new] = places_.try_emplace({asked.device, asked.isa});
  if (is_new) place->second = IdentifyDevice(asked);
  return place->second;
}

}  // namespace softmoe::experiments
