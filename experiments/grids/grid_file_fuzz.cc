// SPDX-License-Identifier: Apache-2.0
//
// Reads any text as a grid. An accepted grid has valid configurations, ids that
// are valid folder names, and at most corpora x rows x seeds runs.
#include "core/fuzzing/fuzz_support.h"
#include "experiments/grids/grid_file.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  const auto path = ScratchFolder() / "grid.toml";
  WriteScratch(path, input);
  experiments::Grid grid;
  if (!Accepts([&] { grid = experiments::LoadGrid(path, {}); })) return;
  Require(!grid.runs.empty() && grid.runs.size() <= grid.corpora.size() *
                                                        grid.rows.size() *
                                                        grid.seeds.size(),
          "a number of runs that nobody asked for");
  for (const experiments::GridRun& run : grid.runs) {
    Require(Accepts([&] { ValidateConfig(run.config); }),
            run.id + " has a configuration that cannot be meant");
    for (const std::string& id : {run.row.id, run.corpus.id}) {
      Require(!id.empty() && id != "." && id != ".." && id.find('/') == id.npos,
              "'" + id + "' cannot be a folder");
    }
  }
}

std::vector<std::string> Seeds() {
  const std::string head = "[grid]\nname = \"g\"\nscale = \"smoke\"\n";
  const std::string corpus = "[[corpora]]\nid = \"c\"\ntitle = \"C\"\n";
  const std::string row = "[[rows]]\nid = \"r\"\nlabel = \"R\"\n";
  return {
      head + "seeds = [1, 2]\n" + corpus + row,
      head + "title = \"T\"\nseeds = [0]\n[config.model]\nnum_layers = 2\n" +
          corpus + "stands_for = \"owt\"\ngpus = 2\n[corpora.config.data]\n" +
          "corpus = \"foldoc\"\n" + row +
          "variant = \"paper\"\npaper_row = \"sparse/k1\"\n"
          "[rows.config.router]\ntau = 1.1\nkind = \"soft_fixed\"\n",
      head +
          "seeds = [1]\n[cluster]\npeak_flops = 1e15\nassumed_mfu = 0.4\n"
          "gpu_bytes = 8e10\ngpus_per_node = 8\n"
          "core_flops = 1e10\nsbatch = [\"--partition=gpu\"]\n" +
          corpus + row,
      head + "seeds = [1, 2]\n" + corpus + "seeds = [2]\n" + row +
          "seeds = [1, 2]\ncorpora = [\"c\"]\n",
      head +
          "seeds = [1]\n[experiments]\ntau = { corpora = [\"c\"], seeds = "
          "[1], variants = [\"v\"] }\n[evaluations]\nrouter_health = true\n"
          "inference_tau_factors = [0.5, 2]\nkeep_checkpoint = false\n" +
          corpus + row + "variant = \"v\"\n",
      head + corpus + row,
      "corpora = [1]\nrows = 2\n" + head,
  };
}

}  // namespace softmoe::fuzz
