// SPDX-License-Identifier: Apache-2.0
//
// The simulated device answers as real ones did: every record in
// golden/gpu_runs is a golden for it.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/files/paths.h"
#include "golden/gpu_runs/gpu_runs.h"
#include "kernels/cuda/device_probes.h"

namespace softmoe::gpu {
namespace {

namespace fs = std::filesystem;
using golden::GpuRecord;

// Returns the statements on which a record's device and the simulated one
// differ; statements that only one of them has are ignored.
std::vector<std::string> Disagreements(const GpuRecord& record) {
  std::map<std::string, bool> simulated;
  for (const auto& probe : kernels::isa_shim::AskDevice()) {
    simulated[probe.name] = probe.holds;
  }
  std::vector<std::string> names;
  for (const auto& line : record.All("probe")) {
    const auto found = simulated.find(line["name"].get<std::string>());
    if (found != simulated.end() && found->second != (line["passed"] == true)) {
      names.push_back(found->first);
    }
  }
  return names;
}

TEST(RecordedProbes, TheSimulatedDeviceAnswersAsDevicesDid) {
  const fs::path folder =
      RunfilePath("golden/gpu_runs/README.md").parent_path();
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".h5") continue;
    const GpuRecord record = golden::ReadGpuRun(entry.path());
    EXPECT_EQ(entry.path().stem(), golden::GpuRunName(record));
    for (const std::string& name : Disagreements(record)) {
      ADD_FAILURE() << entry.path().filename() << ": " << name
                    << ": the device says otherwise; kernels/simt/device must "
                       "do as it does";
    }
  }
}

TEST(RecordedProbes, ADeviceThatSaysOtherwiseIsNoticed) {
  GpuRecord record;
  for (const auto& probe : kernels::isa_shim::AskDevice()) {
    record.lines.push_back({{"kind", "probe"},
                            {"name", probe.name},
                            {"passed", probe.holds},
                            {"answer", probe.answer}});
  }
  EXPECT_TRUE(Disagreements(record).empty());
  record.lines[2]["passed"] = false;
  EXPECT_EQ(Disagreements(record),
            std::vector<std::string>{record.lines[2]["name"]});
  record.lines[2]["name"] = "the sky is blue";
  EXPECT_TRUE(Disagreements(record).empty());
}

}  // namespace
}  // namespace softmoe::gpu
