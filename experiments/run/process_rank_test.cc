// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/process_rank.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"

namespace softmoe::experiments {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// The rank in an environment with no other variables of a launcher.
ProcessRank In(const Variables& variables) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS",
        "PMIX_RANK", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NNODES"}) {
    ::unsetenv(name);
  }
  for (const auto& [name, value] : variables) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  return RankOfEnvironment();
}

void ExpectRank(const ProcessRank& got, int64_t rank, int64_t size,
                int64_t neighbours) {
  EXPECT_EQ(got.rank, rank);
  EXPECT_EQ(got.size, size);
  EXPECT_EQ(got.neighbours, neighbours);
}

TEST(ProcessRank, IsThatOfTheLauncher) {
  ExpectRank(In({{"OMPI_COMM_WORLD_RANK", "3"},
                 {"OMPI_COMM_WORLD_SIZE", "8"},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
             3, 8, 4);
  ExpectRank(
      In({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}}), 1,
      2, 2);
  ExpectRank(In({{"PMIX_RANK", "5"}}), 5, 0, 0);
  // 7 tasks on 2 nodes: up to 4 on one.
  ExpectRank(
      In({{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "7"}, {"SLURM_NNODES", "2"}}),
      6, 7, 4);
  ExpectRank(In({{"SLURM_PROCID", "6"},
                 {"SLURM_NTASKS", "9223372036854775807"},
                 {"SLURM_NNODES", "2"}}),
             6, INT64_MAX, int64_t{1} << 62);
}

TEST(ProcessRank, MpirunInAJobOfSlurmCounts) {
  ExpectRank(In({{"SLURM_PROCID", "0"},
                 {"SLURM_NTASKS", "4"},
                 {"OMPI_COMM_WORLD_RANK", "2"},
                 {"OMPI_COMM_WORLD_SIZE", "4"}}),
             2, 4, 4);
}

// A process of srun --mpi=pmix has both ranks, and its share of the cores.
TEST(ProcessRank, SlurmSaysHowManyItHasStartedWithPmix) {
  ExpectRank(In({{"PMIX_RANK", "6"},
                 {"SLURM_PROCID", "6"},
                 {"SLURM_NTASKS", "7"},
                 {"SLURM_NNODES", "2"}}),
             6, 7, 4);
  // Another launcher in a job of Slurm.
  ExpectRank(
      In({{"PMIX_RANK", "6"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}), 6,
      0, 0);
}

TEST(ProcessRank, RefusesWhatNoLauncherSays) {
  EXPECT_THROW(In({}), ConfigError);
  EXPECT_THROW(In({{"SLURM_NTASKS", "2"}}), ConfigError);
  for (const char* bad : {"", "x", "-1", "1x", " 1", "99999999999999999999"}) {
    EXPECT_THROW(In({{"PMI_RANK", bad}}), EnvironmentError) << bad;
  }
  EXPECT_THROW(In({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}), EnvironmentError);
  EXPECT_THROW(In({{"PMI_RANK", "0"}, {"PMI_SIZE", "two"}}), EnvironmentError);
}

TEST(ProcessRank, SharesTheCoresOfTheMachine) {
  const int64_t machine = sysconf(_SC_NPROCESSORS_ONLN);
  EXPECT_EQ(ShareOfCores({.rank = 0, .size = 1, .neighbours = 1}),
            AvailableCores());
  EXPECT_EQ(ShareOfCores({.rank = 0, .size = 0, .neighbours = 0}),
            AvailableCores());
  EXPECT_EQ(ShareOfCores({.rank = 1, .neighbours = machine}), 1);
  EXPECT_EQ(ShareOfCores({.rank = 1, .neighbours = 2 * machine}), 1);
}

}  // namespace
}  // namespace softmoe::experiments
