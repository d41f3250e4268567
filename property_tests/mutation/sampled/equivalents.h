// SPDX-License-Identifier: Apache-2.0
//
// equivalents.h - reads equivalent.toml: survivors that no test can tell from
// the original, and why.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_EQUIVALENTS_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_EQUIVALENTS_H_

#include <filesystem>
#include <map>
#include <string>

namespace softmoe::mutation {

struct Equivalent {
  std::string where;  // FILE:LINE:COLUMN
  std::string because;
  // A second person who has read the argument and agrees; without one it does
  // not count.
  std::string read_by;
};

// Keyed by id. Throws ConfigError or DataError, with the place, for an invalid
// file, a repeated id, and an argument of fewer than ten letters.
std::map<std::string, Equivalent> ReadEquivalents(
    const std::filesystem::path& file);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_EQUIVALENTS_H_
