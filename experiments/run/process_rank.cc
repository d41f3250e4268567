// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/process_rank.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/text/ascii.h"

namespace softmoe::experiments {
namespace {

// The names of a launcher's variables; "" where it has none.
struct Variables {
  const char* rank;
  const char* size;
  const char* neighbours;
  const char* machines;
};

constexpr Variables kSlurm = {"SLURM_PROCID", "SLURM_NTASKS", "",
                              "SLURM_NNODES"};
constexpr Variables kPmix = {"PMIX_RANK", "", "", ""};

// Launchers started by another launcher come first: within a job of Slurm,
// mpirun passes SLURM_PROCID = 0 on to all of its processes.
constexpr Variables kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", ""},
    kPmix,
    kSlurm};

// Empty if the variable is not set.
std::optional<int64_t> Whole(const char* name) {
  if (name[0] == '\0') return std::nullopt;
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = ParseNumber<int64_t>(value);
  if (!number || *number < 0) {
    throw EnvironmentError(fmt::format(
        "{}='{}' is not a whole number: start the processes with mpirun or "
        "srun, or unset it",
        name, value));
  }
  return number;
}

}  // namespace

ProcessRank RankOfEnvironment() {
  for (Variables names : kLaunchers) {
    const auto number = Whole(names.rank);
    if (!number) continue;
    // srun --mpi=pmix gives the rank twice, but the number of ranks only once.
    if (std::string_view(names.rank) == kPmix.rank &&
        Whole(kSlurm.rank) == number) {
      names = kSlurm;
    }
    ProcessRank rank;
    rank.rank = *number;
    rank.size = Whole(names.size).value_or(0);
    if (rank.size > 0 && rank.rank >= rank.size) {
      throw EnvironmentError(fmt::format(
          "{}={} is not below {}={}: start the processes with mpirun or srun, "
          "or unset both",
          names.rank, rank.rank, names.size, rank.size));
    }
    const int64_t machines =
        std::max<int64_t>(1, Whole(names.machines).value_or(1));
    rank.neighbours =
        Whole(names.neighbours)
            .value_or(rank.size / machines + (rank.size % machines != 0));
    return rank;
  }
  throw ConfigError(
      "--launcher=mpi: mpirun or srun must start the processes, and no rank is "
      "in the environment (OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK or "
      "SLURM_PROCID): mpirun -n 4 grid run GRID --launcher=mpi. Without them, "
      "--jobs 4 does the same on one machine");
}

int64_t ShareOfCores(const ProcessRank& rank) {
  const int64_t machine = sysconf(_SC_NPROCESSORS_ONLN);
  const int64_t share = machine / std::max<int64_t>(1, rank.neighbours);
  return std::clamp<int64_t>(share, 1, AvailableCores());
}

}  // namespace softmoe::experiments
