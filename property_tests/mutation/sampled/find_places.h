// SPDX-License-Identifier: Apache-2.0
//
// find_places.h - finds the places in all product sources, or in a part of
// them: folders or single files.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_FIND_PLACES_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_FIND_PLACES_H_

#include <functional>
#include <string>
#include <vector>

#include "property_tests/mutation/compile.h"
#include "property_tests/mutation/project.h"
#include "property_tests/mutation/sampled/places.h"
#include "property_tests/mutation/source_tree.h"

namespace softmoe::mutation {

class Part {
 public:
  // All sources.
  Part() = default;
  // The files that are, or lie under, any of these paths from the root, such as
  // "kernels/cuda"; one text may name several, with commas. Empty: all sources.
  // Throws ConfigError for an empty path.
  explicit Part(const std::vector<std::string>& paths);

  bool IsAll() const { return paths_.empty(); }
  bool Has(const std::string& file) const;
  // "kernels/cuda,optimized": one text for one part, however it was given; ""
  // for all.
  std::string Text() const;
  // Throws ConfigError, naming the path, if a path contains none of `files`.
  void RequireIn(const std::vector<std::string>& files) const;

 private:
  // Sorted; none lies under another.
  std::vector<std::string> paths_;
};

struct FoundPlaces {
  std::vector<Place> places;
  LeftOut left_out;
  int64_t units = 0;  // units examined
  // Product sources that no examined unit includes, or only units of which
  // clang made no tree.
  std::vector<std::string> unseen;
};

// Searches every unit of the CPU and of the simulator that is not a test for
// places in files of `part`. Throws as Part::RequireIn does. Calls `done` with
// the number of finished units and of all units.
FoundPlaces FindPlaces(const Project& project, SourceTree& tree,
                       const Compiler& compiler, const Part& part, int jobs,
                       const std::function<bool()>& stop,
                       const std::function<void(size_t, size_t)>& done);

// Convert to text and back. ReadPlaces throws DataError for any other text.
std::string PlacesText(const FoundPlaces& found);
FoundPlaces ReadPlaces(const std::string& text);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_FIND_PLACES_H_
