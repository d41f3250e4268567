// SPDX-License-Identifier: Apache-2.0
#include "trainer/identity/config_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "core/config/config_toml.h"
#include "core/files/runfiles.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

TEST(ConfigTable, MarksWhatIsNotTheDefaultAndEndsWithTheHash) {
  Config config;
  config.training.steps = 77;
  config.router.tau = 1.2;
  const std::string table = ConfigTable(config);
  EXPECT_TRUE(Says(table, "* training.steps ", "* router.tau ",
                   "  model.num_layers ", ConfigHash(config)));
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
