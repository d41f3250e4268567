// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/testing.h"

#include <gtest/gtest.h>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"

namespace softmoe::mutation {

TestProject::TestProject(const std::map<std::string, std::string>& sources) {
  static int number = 0;
  folder_ = std::filesystem::path(::testing::TempDir()) /
            ("project" + std::to_string(++number));
  ReadFlags(RunfilePath("property_tests/mutation/flags.json"), project_);
  std::map<std::string, std::string> all = sources;
  for (const char* name : {"switch.h", "switch.cc"}) {
    const std::string path = std::string("property_tests/mutation/") + name;
    all[path] = ReadWholeFile(RunfilePath(path));
  }
  for (const auto& [path, text] : all) {
    const std::filesystem::path file = folder_ / "sources" / path;
    MakeFolder(file.parent_path());
    WriteFileAtomically(file, text);
    project_.sources[path] = file;
    if (!path.ends_with(".cc")) continue;
    const bool is_switch = path.ends_with("/switch.cc");
    const std::string key =
        is_switch ? "property_tests/mutation/switch/switch.cc.o" : path + ".o";
    const bool is_test = path.ends_with("_test.cc");
    project_.units[key] = {key, path, {}, is_test, "", is_test};
  }
  for (const auto& [key, unit] : project_.units) {
    if (!unit.is_test) continue;
    Program program;
    program.path = unit.source.substr(0, unit.source.size() - 3);
    program.is_test = true;
    program.compiler = project_.compiler;
    program.units = {key};
    for (const auto& [other, linked] : project_.units) {
      const bool is_switch = linked.source.ends_with("/switch.cc");
      if (!linked.is_test && !is_switch) program.units.push_back(other);
    }
    project_.programs[program.path] = program;
  }
}

}  // namespace softmoe::mutation
