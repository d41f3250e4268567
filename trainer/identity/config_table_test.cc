// SPDX-License-Identifier: Apache-2.0
#include "trainer/identity/config_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "core/config/config_toml.h"
#include "core/files/paths.h"

namespace softmoe::trainer {
namespace {

TEST(ConfigTable, MarksWhatIsNotTheDefaultAndEndsWithTheHash) {
  Config config;
  config.training.steps = 77;
  config.router.tau = 1.2;
  const std::string table = ConfigTable(config);
  EXPECT_NE(table.find("* training.steps "), std::string::npos) << table;
  EXPECT_NE(table.find("* router.tau "), std::string::npos) << table;
  EXPECT_NE(table.find("  model.num_layers "), std::string::npos) << table;
  EXPECT_NE(table.find(ConfigHash(config)), std::string::npos) << table;
  // Two marked rows and the legend.
  EXPECT_EQ(std::count(table.begin(), table.end(), '*'), 3) << table;
}

// Runs are found by their hash, and a changed file would have another one.
TEST(ConfigTable, TheFilesThatShipKeepTheirHashes) {
  for (const auto& [name, hash] :
       {std::pair("tiny", "f3962f23dfffedb1"), {"small", "ce359fcbccc24559"}}) {
    const std::filesystem::path path =
        RunfilePath(std::string("trainer/configs/") + name + ".toml");
    EXPECT_EQ(ConfigHash(LoadConfig(path, {}).config), hash) << name;
  }
}

}  // namespace
}  // namespace softmoe::trainer
