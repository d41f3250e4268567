// SPDX-License-Identifier: Apache-2.0
//
// fault_table.h - reads faults from tables:
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
// text that is replaced by `instead` ("" leaves a statement out). `before` and
// `after` are needed only to make it unique in the file. White space is free
// (FindOnce). `offset`, in bytes from the beginning of the file, gives the
// place of a text that another program has found.
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

// The faults of one table. Throws DataError, naming the place, for anything
// that is not a table of faults, and for an id outside the area that the name
// of the file gives, e.g. lapsum.toml; throws ConfigError if the file is not
// TOML.
std::vector<Fault> ReadFaults(const std::filesystem::path& table);

// The faults of every faults/*.toml among the runfiles.
const std::vector<Fault>& AllFaults();

// The text of a file, or nothing if it is not among the sources.
using SourceReader =
    std::function<std::optional<std::string>(const std::string& file)>;

// Each file that has a fault, with all its faults written into it. Throws
// DataError with one line for each fault that cannot be planted, with its place
// in the table: the file does not exist, the text is not found or not unique,
// the id occurs twice, or it overlaps another.
std::map<std::string, std::string> PlantFaults(const std::vector<Fault>& faults,
                                               const SourceReader& read);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_TABLE_H_
