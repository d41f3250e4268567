// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/equivalents.h"

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"

namespace softmoe::mutation {

std::map<std::string, Equivalent> ReadEquivalents(
    const std::filesystem::path& file) {
  const toml::table parsed = ParseTomlFile(file);
  TomlReader reader(&parsed);
  std::map<std::string, Equivalent> result;
  for (const toml::table* table : reader.Tables("equivalent")) {
    TomlReader one(table);
    const std::string id = one.Text("id");
    const Equivalent equivalent = {TomlPosition(*table), one.Text("because"),
                                   one.TextOr("read_by", "")};
    one.Finish();
    if (equivalent.because.size() < 10) {
      one.FailAt("because", "says too little");
    }
    if (!result.emplace(id, equivalent).second) {
      one.FailAt("id", id + " is argued already");
    }
  }
  reader.Finish();
  return result;
}

}  // namespace softmoe::mutation
