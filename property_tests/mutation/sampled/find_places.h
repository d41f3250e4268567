// SPDX-License-Identifier: Apache-2.0
//
// find_places.h - finds the places of all product sources.
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
  int64_t units = 0;  // units examined
  // Product sources that belong to no unit, or of which clang made no tree.
  std::vector<std::string> unseen;
};

// Searches every unit of the CPU and of the simulator that is not a test for
// places in files of `part`. Throws ConfigError if there are none. Calls `done`
// with the number of finished units and of all.
FoundPlaces FindPlaces(const Project& project, SourceTree& tree,
                       const Compiler& compiler, const Part& part, int jobs,
                       const std::function<bool()>& stop,
                       const std::function<void(size_t, size_t)>& done);

// Converts to text and back. Reading throws DataError for any other text.
std::string PlacesText(const FoundPlaces& found);
FoundPlaces ReadPlaces(const std::string& text);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_FIND_PLACES_H_
