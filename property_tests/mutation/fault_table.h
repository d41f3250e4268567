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
// `suite` (suites.h) must kill it. `equivalent_because` and `counts_with` are
// optional. `file` is the path from the root. `expression`, or `statement`, is
// the text that is replaced by `instead` ("" leaves a statement out). `before`
// and `after` are needed only to make it unique in the file. White space is
// free (FindOnce).
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_TABLE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_TABLE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "property_tests/mutation/fault.h"
#include "property_tests/mutation/source_tree.h"

namespace softmoe::mutation {

struct Fault {
  std::string id;     // "AREA.what_is_wrong"
  std::string suite;  // the one that must kill it
  std::string fault;  // what is wrong, in a sentence
  // Why no test can distinguish it from the original; "" for all but a few.
  std::string equivalent_because = "";
  // The id of another fault with the same kind of change in the same function,
  // so that the two count once; "" for most.
  std::string counts_with = "";
  std::string where = "";  // TABLE:LINE:COLUMN
  std::string file = "";
  Pattern pattern = {};
  Syntax syntax = Syntax::kExpression;
  std::string instead = "";

  std::string area() const { return id.substr(0, id.find('.')); }
};

// The two faults of this area do not count: one is equivalent and must survive,
// one is gross and must be killed, or the whole measurement is void.
inline constexpr char kCanaryArea[] = "canary";

// Reads the faults of one table. Throws DataError, naming the place, for
// anything that is not a table of faults, and for an id outside the area that
// the file is named after, e.g. lapsum.toml. Throws ConfigError if the file is
// not TOML.
std::vector<Fault> ReadFaults(const std::filesystem::path& table);

// The faults of every faults/*.toml among the runfiles, by area in alphabetical
// order.
const std::vector<Fault>& AllFaults();

// The places of all `faults`, in their order. Throws DataError with one line
// for each that cannot be planted, with its place in the table: the file is not
// among the sources, the text is not found or not unique, the id occurs twice.
std::vector<PlacedFault> PlaceFaults(const std::vector<Fault>& faults,
                                     const SourceReader& read);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_FAULT_TABLE_H_
