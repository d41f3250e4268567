// SPDX-License-Identifier: Apache-2.0
//
// equivalents.h - survivors that no test can tell from the original, and why:
// equivalent.toml.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_EQUIVALENTS_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_EQUIVALENTS_H_

#include <filesystem>
#include <map>
#include <string>

namespace softmoe::mutation {

struct Equivalent {
  std::string where;  // FILE:LINE:COLUMN
  std::string because;
  // A second person, who has read the argument and agrees; until then it does
  // not count.
  std::string read_by;
};

// By id. Throws ConfigError or DataError, with the place, for any other file, an
// id that is there twice, and an argument of fewer than ten letters.
std::map<std::string, Equivalent> ReadEquivalents(
    const std::filesystem::path& file);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_EQUIVALENTS_H_
