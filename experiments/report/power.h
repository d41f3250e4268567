// SPDX-License-Identifier: Apache-2.0
//
// power.h - what a design can show, estimated before any training: made-up
// records with known truths, judged by the real judges.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_POWER_H_
#define SOFTMOE_EXPERIMENTS_REPORT_POWER_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/run/run_record.h"

namespace softmoe::experiments {

// One true value of a measure, and how many made-up records got each verdict,
// by name.
struct PowerAt {
  double truth = 0;    // the difference that is tested, in the measure's unit
  bool holds = false;  // whether it makes the claim true
  std::map<std::string, int> verdicts;
};

struct MeasurePower {
  std::string claim, id, unit;
  std::string target;  // the verdict that the claim hopes for
  std::vector<PowerAt> at;
  // The judge's reason, if no truth lets the measure reach its target.
  std::string obstacle;
  bool asked = true;  // whether the design is meant to show it
};

struct DesignPower {
  std::vector<MeasurePower> measures;
  std::string basis;  // the means and deviations assumed
  // "C3: C3.early cannot be SHOWN at any of these effects: ...", for claims
  // that the design is meant to show but that, at every truth where they hold,
  // reach their target in fewer than half of the records. Empty: ready.
  std::vector<std::string> not_ready;
};

// The power of the mini grid for the claims in miniature, or of the experiment
// `regime`; no measures for any other grid. The runs are those of the frozen
// plan. Means and deviations come from `known`, the records of earlier runs,
// or, where these lack them, from stated defaults. Draws `draws` records for
// each truth from a fixed seed: the same call gives the same numbers.
DesignPower PowerOf(const Grid& grid, const std::vector<RunRecord>& known,
                    int draws);

// The plan's section on power; "" without measures.
std::string DescribePower(const DesignPower& power, int draws);

// The record at `from`, or those that ship with the program if it is empty.
std::vector<RunRecord> KnownRecords(const std::filesystem::path& from);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_POWER_H_
