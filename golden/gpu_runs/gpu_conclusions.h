// SPDX-License-Identifier: Apache-2.0
//
// gpu_conclusions.h - conclusions of a record (gpu_record.h) from its own
// lines: its writer adds them, and its readers check them.
#ifndef SOFTMOE_GOLDEN_GPU_RUNS_GPU_CONCLUSIONS_H_
#define SOFTMOE_GOLDEN_GPU_RUNS_GPU_CONCLUSIONS_H_

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace softmoe::golden {

// The ceilings of a device, and the share of them that was reached.
class GpuCeilings {
 public:
  void Look(const nlohmann::ordered_json& line);
  // The share of a line of kind "time" or "algorithm"; nullopt if it has no
  // time, or if its ceilings are not known.
  std::optional<double> ShareOf(const nlohmann::ordered_json& line) const;

 private:
  std::map<std::string, double> values_;
};

// The names of what failed.
class GpuFailures {
 public:
  // Takes the lines in the order of the record. A stage that ran and did not
  // pass is named itself if none of its lines failed.
  void Look(const nlohmann::ordered_json& line);
  bool empty() const { return names_.empty(); }
  // "operation gemm (fp32); stage "model" (crashed)"
  std::string Text() const;

 private:
  std::vector<std::string> names_;
  size_t before_ = 0;  // names before the lines of this stage
};

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_GPU_RUNS_GPU_CONCLUSIONS_H_
