// SPDX-License-Identifier: Apache-2.0
//
// find_places.h - the places of all product sources.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_FIND_PLACES_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_FIND_PLACES_H_

#include <functional>
#include <string>
#include <vector>

#include "property_tests/mutation/compile.h"
#include "property_tests/mutation/project.h"
#include "property_tests/mutation/sampled/part.h"
#include "property_tests/mutation/sampled/places.h"
#include "property_tests/mutation/source_tree.h"

namespace softmoe::mutation {

struct FoundPlaces {
  std::vector<Place> places;
  LeftOut left_out;
  int64_t units = 0;  // that were looked at
  // Product sources that no unit has, or of which clang made no tree.
  std::vector<std::string> unseen;
};

// Looks at every unit of the CPU and of the simulator that is no test, for
// places in files of `part`.
// Throws ConfigError if it has none. `done` is called as units are done, with their number and that of all.
FoundPlaces FindPlaces(const Project& project, SourceTree& tree,
                       const Compiler& compiler, const Part& part, int jobs,
                       const std::function<bool()>& stop,
                       const std::function<void(size_t, size_t)>& done);

// As text, to be read again. Reading throws DataError for any other text.
std::string PlacesText(const FoundPlaces& found);
FoundPlaces ReadPlaces(const std::string& text);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_FIND_PLACES_H_
