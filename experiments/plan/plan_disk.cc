// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/files/paths.h"
#include "core/text/text_table.h"
#include "experiments/plan/plan_tables.h"
#include "trainer/corpora/corpus.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

using Rows = std::vector<RowEstimate>;

// One row per distinct text, and one per distinct token file.
struct Sources {
  std::vector<const RowEstimate*> texts, tokens;
};

Sources DifferentSources(const Rows& rows) {
  Sources sources;
  std::set<std::string> texts;
  std::set<std::tuple<std::string, int64_t, int64_t>> tokens;
  for (const RowEstimate& row : rows) {
    const Config& config = row.run.config;
    const std::string& corpus = config.data.corpus;
    if (texts.insert(corpus).second) sources.texts.push_back(&row);
    if (tokens.emplace(corpus, config.data.max_bytes, config.model.vocab_size)
            .second) {
      sources.tokens.push_back(&row);
    }
  }
  return sources;
}

int64_t BytesPerToken(const RowEstimate& row) {
  return row.run.config.model.vocab_size < 65500 ? 2 : 4;
}

std::string TextLine(const RowEstimate& row, const fs::path& cache) {
  const std::string& name = row.run.config.data.corpus;
  const trainer::CorpusSize size = trainer::SizeOfCorpus(name, cache);
  if (size.here) {
    return fmt::format("{}: {}, there: {}", name, FormatBytes(size.bytes),
                       size.place.string());
  }
  return fmt::format("{}: {}, not there yet: {}", name,
                     size.bytes > 0 ? "about " + FormatBytes(size.bytes)
                                    : "as large as its publishers' files",
                     size.place.string());
}

std::string TokenLine(const RowEstimate& row, int64_t text_bytes) {
  const Config& config = row.run.config;
  // Publishers' packed files say little about the size of the text.
  if (row.run.corpus.paper_dataset.empty() && text_bytes > 0) {
    return fmt::format("{}, vocabulary {}: at most {}", config.data.corpus,
                       config.model.vocab_size,
                       FormatBytes(TokenBytesAtMost(row, text_bytes)));
  }
  const double tokens = static_cast<double>(row.cost.tokens) /
                        (1 - config.data.validation_fraction);
  return fmt::format(
      "{}, vocabulary {}: about {}, if a run reads its corpus once ({} bytes a "
      "token, with the validation split)",
      config.data.corpus, config.model.vocab_size,
      FormatBytes(static_cast<int64_t>(static_cast<double>(BytesPerToken(row)) *
                                       tokens)),
      BytesPerToken(row));
}

std::string CheckpointLine(const Rows& rows) {
  int64_t kept = 0, one = 0;
  for (const RowEstimate& row : rows) {
    one = std::max(one, row.checkpoint_bytes);
    if (row.run.evaluations.keep_checkpoint) {
      kept += row.seeds * row.checkpoint_bytes;
    }
  }
  return fmt::format(
      "up to {} each, two for every run at work; {}", FormatBytes(one),
      kept == 0 ? "those of finished runs are deleted"
                : FormatBytes(kept) + " once all runs are finished");
}

int64_t ResultBytes(const Rows& rows) {
  int64_t bytes = 0;
  for (const RowEstimate& row : rows) {
    bytes += row.seeds * (row.disk_bytes - 2 * row.checkpoint_bytes);
  }
  return bytes;
}

}  // namespace

int64_t TokenBytesAtMost(const RowEstimate& row, int64_t text_bytes) {
  const int64_t read = row.run.config.data.max_bytes;
  if (read > 0) text_bytes = std::min(text_bytes, read);
  return BytesPerToken(row) * text_bytes;
}

std::string DescribeDisk(const Rows& rows, const fs::path& folder,
                         const fs::path& cache) {
  const Sources sources = DifferentSources(rows);
  std::string text = "Disk\n";
  const auto add = [&](const std::string& line) { text += Paragraph(line, 2); };
  for (const RowEstimate* row : sources.texts) {
    add("corpus " + TextLine(*row, cache));
  }
  for (const RowEstimate* row : sources.tokens) {
    const std::string& corpus = row->run.config.data.corpus;
    add("tokens of " +
        TokenLine(*row, trainer::SizeOfCorpus(corpus, cache).bytes));
  }
  add(fmt::format("both are for {}, free there: {}", cache.string(),
                  FormatBytes(FreeDiskBytes(cache))));
  add("checkpoints: " + CheckpointLine(rows));
  add(fmt::format("results: {}, with the metrics of every step",
                  FormatBytes(ResultBytes(rows))));
  add(fmt::format("both are for {}, free there: {}", folder.string(),
                  FormatBytes(FreeDiskBytes(folder))));
  return text;
}

}  // namespace softmoe::experiments
