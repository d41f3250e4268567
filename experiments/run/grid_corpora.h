// SPDX-License-Identifier: Apache-2.0
//
// grid_corpora.h - the corpora that the runs of a grid are trained on and the
// devices that train them: each is prepared or queried once for all runs, and
// compared with that of finished runs.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_CORPORA_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_CORPORA_H_

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/config/config.h"
#include "experiments/grids/grid_file.h"
#include "experiments/run/run_grid.h"
#include "experiments/run/run_outcome.h"
#include "optimized/device.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {

class GridCorpora {
 public:
  // `only_find`: prepares nothing, since at the paper's scale GPUs would wait
  // for it. `options` must outlive this.
  GridCorpora(const GridRunOptions& options, bool only_find)
      : options_(options), only_find_(only_find) {}

  // Throws, before a corpus is prepared, if the device of a run that is not
  // finished is missing or cannot train in its precision.
  void RequireDevice(const RunOutcome& run);

  // Prepares every corpus that a selected run of `outcome` still needs for
  // training or evaluation, whose record is missing, whose text file has
  // changed, or that --tokens replaces: finished runs must have been trained on
  // those tokens. Calls `stop_if_asked` before each corpus, and `note` with a
  // line about each corpus that nothing needs and whose text may have changed.
  void Prepare(const GridOutcome& outcome,
               const std::function<void()>& stop_if_asked,
               const std::function<void(const std::string&)>& note);

  // Returns the corpus of `run`, under the prefix of its record in the grid's
  // folder; prepares it first if necessary.
  trainer::PreparedCorpus CorpusOf(const GridRun& run);

  // The PREFIX of the token files of `run`, whose corpus must be prepared.
  const std::filesystem::path& TokensOf(const GridRun& run) const;

  // Refuses finished runs on other tokens, or with other kernels or ranks than
  // later runs: they do not belong to this grid. `only_reads`: nothing is left
  // to train, and nothing was trained in this session.
  void CheckFinishedRuns(const GridOutcome& outcome, bool only_reads);

  // Writes the record of every corpus into the grid's folder.
  void WriteRecords() const;

 private:
  void PrepareAt(const std::filesystem::path& prefix, const GridRun& run);
  std::optional<optimized::DeviceIdentity> RequiredPlace(
      const RuntimeConfig& asked, bool only_reads);
  const optimized::DeviceIdentity& PlaceOf(const RuntimeConfig& asked);

  const GridRunOptions& options_;
  const bool only_find_;
  // Keyed by CorpusPrefix.
  std::map<std::filesystem::path, trainer::PreparedCorpus> prepared_;
  // Keyed by runtime.device and runtime.isa; cached, since asking takes time.
  std::map<std::pair<std::string, std::string>, optimized::DeviceIdentity>
      places_;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_CORPORA_H_
