// SPDX-License-Identifier: Apache-2.0
//
// vectors_command.h - `verify export-vectors` and `verify check-vectors`: for
// frameworks that compute elsewhere and exchange files.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_VECTORS_COMMAND_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_VECTORS_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/suite.h"

namespace softmoe::verify {

// Draws `cases` cases of each of `ops`, from number `first` on, with the keys
// of `fixed` as given, writes them to the user's path `out`, and says what they
// are. Throws ConfigError before anything is written.
void ExportVectors(const std::vector<std::string>& ops,
                   const CasePattern& fixed, uint64_t seed, uint32_t first,
                   int64_t cases, const std::string& out);

// Judges the user's file `outputs` by `vectors`, prints every new failure and
// returns the suite. Throws as MakeRecordedImplementation does.
Suite CheckVectors(const std::string& vectors, const std::string& outputs);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_VECTORS_COMMAND_H_
