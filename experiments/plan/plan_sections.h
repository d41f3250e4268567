// SPDX-License-Identifier: Apache-2.0
//
// plan_sections.h - the sections of a plan, in order: what is trained and what
// that costs, the protocol, totals, disk space, and warnings. (rank_plan.h and
// slurm_jobs.h have the sections on ranks and Slurm.)
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_SECTIONS_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_SECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/cost_model.h"
#include "experiments/grids/grid_file.h"
#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

// "10 layers, d_model 640, ..."
std::string DescribeModel(const ModelConfig& model);

// The rows of one corpus: how a step is divided, what is trained, and its cost.
std::string DescribeCorpus(const std::vector<RowEstimate>& rows);

// Explains the columns of DescribeCorpus for these rows, and their assumptions.
std::string PlanLegend(const Cluster& cluster,
                       const std::vector<RowEstimate>& rows);

// How many experts soft rows would activate if their scores kept their initial
// spread: a table with one line per soft row, whatever its corpora; "" if no
// row is soft. Takes a second for a few rows. (`//:golden -- show paper
// --protocol` shows this for the paper.)
std::string DescribeStillRuns(const std::vector<RowEstimate>& rows);

// "121 GPU hours", "5 core minutes"; for corpora with and without GPUs, both:
// "121 GPU hours and 5 core minutes". `of_paper` comes after the GPU hours.
std::string CostInWords(const GridTotal& total,
                        const std::string& of_paper = "");

// "owt: 14 runs, ..., 121 GPU hours (the paper's 9 rows: 180), ... on disk",
// with as many runs at work as Total takes.
std::string TotalLine(const std::string& name,
                      const std::vector<RowEstimate>& rows, size_t at_work);

// The disk space by kind: corpora, tokens, checkpoints, results. `rows` belong
// to one grid with results in `folder`; `cache` holds corpora and tokens, which
// need not exist yet.
std::string DescribeDisk(const std::vector<RowEstimate>& rows,
                         const std::filesystem::path& folder,
                         const std::filesystem::path& cache);

// Why the tokens of published corpora do not fit into `cache`; "" if they do.
std::string TokenDiskProblem(const std::vector<RowEstimate>& rows,
                             const std::filesystem::path& cache);

// Warnings "CORPUS/ROW, ...: what is wrong and what to do", where a grid will
// not do what its author intends; rows with the same problem share one:
//   - fewer than 0.5 active experts on average at the start (DESIGN.md,
//     ruling 7)
//   - a precision in which the row's device does not train
//   - a name that no corpus has, or a vocabulary size that no tokenizer is
//     trained for, unless the tokens are given
//   - balance groups or micro-batches that do not divide over the GPUs
//   - more memory than a GPU has apart from what is reserved on the device
//   - more disk than `free_disk_bytes`, with `at_work` runs at work (Total)
std::vector<std::string> PlanWarnings(const Grid& grid,
                                      const std::vector<RowEstimate>& rows,
                                      int64_t free_disk_bytes,
                                      size_t at_work = 1);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_SECTIONS_H_
