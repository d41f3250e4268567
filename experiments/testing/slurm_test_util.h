// SPDX-License-Identifier: Apache-2.0
//
// slurm_test_util.h - a one-node Slurm cluster for tests, from Debian's
// packages, isolated from this machine and leaving no traces.
#ifndef SOFTMOE_EXPERIMENTS_TESTING_SLURM_TEST_UTIL_H_
#define SOFTMOE_EXPERIMENTS_TESTING_SLURM_TEST_UTIL_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/process/process.h"

namespace softmoe::experiments {

// Calls `body` and returns its result. Where the system permits, `body` runs in
// its own namespaces: processes (all end with this program's last one, whatever
// happens), mounts (/run is empty and vanishes), network (ports are free) and
// host name.
int CallInNamespaces(const std::function<int()>& body);

// Why no SlurmCluster can be started in this process; "" if it can.
std::string ObstacleToSlurm();

// munged, slurmctld and slurmd with their own configuration in /run, to which
// SLURM_CONF points Slurm's commands, and a node with two processors.
class SlurmCluster {
 public:
  // Waits until the node is idle. Throws EnvironmentError with the tails of the
  // logs if this takes longer than a minute.
  SlurmCluster();
  ~SlurmCluster() = default;
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  // The tails of the daemons' logs.
  std::string Logs() const;

 private:
  void Start(const std::string& name, std::vector<std::string> arguments);

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<Process>> daemons_;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_TESTING_SLURM_TEST_UTIL_H_
