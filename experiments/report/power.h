// SPDX-License-Identifier: Apache-2.0
//
// power.h - what a design can show, before a machine runs for it: made-up
// records with known truths, judged by the judges themselves.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_POWER_H_
#define SOFTMOE_EXPERIMENTS_REPORT_POWER_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/run/run_record.h"

namespace softmoe::experiments {

// One truth of one measure, and how many of the made-up records got which
// verdict, by its name.
struct PowerAt {
  double truth = 0;  // the difference that is tested, in the measure's unit
  std::map<std::string, int> verdicts;
};

struct MeasurePower {
  std::string claim, id, unit;
  std::string target;  // the verdict that the claim hopes for
  std::vector<PowerAt> at;
  // Of a measure that no truth lets reach it: the judge's reason.
  std::string obstacle;
};

struct DesignPower {
  std::vector<MeasurePower> measures;
  std::string basis;  // on which means and deviations it rests
  // "C3: C3.early cannot be SHOWN at any of these effects: ...": of the claims for which
  // the design is made; empty: it is ready.
  std::vector<std::string> not_ready;
};

// The power of the mini grid for the claims in miniature, or of the experiment
// `regime`; no measures for any other grid. The runs are those that the frozen
// definitions plan. Means and deviations are those of `known`, the records of
// earlier runs, or stated defaults for what these lack. `draws` records for each
// truth, from a fixed seed: the same call gives the same numbers.
DesignPower PowerOf(const Grid& grid, const std::vector<RunRecord>& known,
                    int draws);

// The section of a plan; "" without measures.
std::string DescribePower(const DesignPower& power, int draws);

// The records of --from, or those that ship with the program.
std::vector<RunRecord> KnownRecords(const std::filesystem::path& from);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_POWER_H_
