// SPDX-License-Identifier: Apache-2.0
//
// slurm_test_util.h - a Slurm cluster of one node for tests, from Debian's
// packages, that nothing of this machine sees and that leaves nothing.
#ifndef SOFTMOE_EXPERIMENTS_TESTING_SLURM_TEST_UTIL_H_
#define SOFTMOE_EXPERIMENTS_TESTING_SLURM_TEST_UTIL_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/process/process.h"

namespace softmoe::experiments {

// Calls `body` and returns what it returns; where the system permits, in
// namespaces of its own: processes (with the last one of this program all of
// them end, whatever happens), mounts (/run is empty and vanishes), network
// (ports are free) and the machine's name.
int CallInNamespaces(const std::function<int()>& body);

// Why no SlurmCluster can be started in this process; "" if it can.
std::string ObstacleToSlurm();

// munged, slurmctld and slurmd with a configuration of their own in /run, the
// commands of Slurm directed there (SLURM_CONF), and a node of two processors.
class SlurmCluster {
 public:
  // Waits until the node is idle. Throws EnvironmentError with the ends of the
  // logs if that takes longer than a minute.
  SlurmCluster();
  ~SlurmCluster() = default;
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  // The ends of the daemons' logs.
  std::string Logs() const;

 private:
  void Start(const std::string& name, std::vector<std::string> arguments);

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<Process>> daemons_;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_TESTING_SLURM_TEST_UTIL_H_
