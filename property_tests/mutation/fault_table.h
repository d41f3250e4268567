// SPDX-License-Identifier: Apache-2.0
//
// fault_table.h - reads faults from tables of their own:
//
//   [[fault]]
//   id = "kernels.tail_dropped"
//   fault = "the last element of a row is not summed"
//   suite = "kernels/rows_test"
//   file = "kernels/x.cc"
//   before = "for (int i = 0; i < "
//   expression = "size"
//   instead = "size - 1"
//
// The first three say what a Mutant is; `equivalent_because` and `counts_with`
// may. `file` is the path from the root. `expression`, or `statement`, is the
// text that is replaced by `instead` ("": a statement is left out); with
// `before` and `after`, which are needed only for that, it is in the file once.
// White space is free (FindOnce). `offset`, in bytes from the beginning of the
// file, says where a text is that somebody else has found.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_TABLE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_TABLE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/mutation/mutants.h"
#include "property_tests/mutation/rewrite.h"

namespace softmoe::mutation {

struct Fault {
  Mutant mutant;
  std::string where;  // TABLE:LINE:COLUMN
  std::string file;
  Pattern pattern;
  std::optional<int64_t> offset;  // of the original
  Syntax syntax = Syntax::kExpression;
  std::string instead;
};

// The faults of one table. Throws DataError naming the place for anything that
// is not a table of faults, and for an id that is not of the area that the
// file's name says, e.g. lapsum.toml; ConfigError for what is not TOML.
std::vector<Fault> ReadFaults(const std::filesystem::path& table);

// Those of every faults/*.toml among the runfiles.
const std::vector<Fault>& AllFaults();

// The text of a file, or nothing if it is not among the sources.
using SourceReader =
    std::function<std::optional<std::string>(const std::string& file)>;

// Each file that has a fault, with all of its faults written into it. Throws
// DataError, one line for each fault that cannot be planted, with its place in
// the table: no such file, a text that is nowhere or not unique, an id that
// occurs twice, overlaps.
std::map<std::string, std::string> PlantFaults(const std::vector<Fault>& faults,
                                               const SourceReader& read);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_TABLE_H_
