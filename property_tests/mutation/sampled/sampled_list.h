// SPDX-License-Identifier: Apache-2.0
//
// sampled_list.h - what became of the faults of one seed, a line for each, as
// it was found out.
//
//   {"format":1,"seed":1,"faults":300,"sources":"...","clang":"...",...}
//   {"id":"s1.0","file":"...","line":12,...,"outcome":"KILLED","suite":"..."}
//
// A run that was interrupted goes on after its last whole line. A list belongs
// to the sources and compilers that its first line names.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_LIST_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_LIST_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/files/json_lines.h"
#include "property_tests/mutation/fault.h"
#include "property_tests/mutation/sampled/places.h"

namespace softmoe::mutation {

struct SampledRun {
  uint64_t seed = 1;
  int64_t faults = 0;           // that compile
  std::string sources;          // SourceTree::digest
  std::string clang, compiler;  // versions
  std::string part;             // of the sources: Part::Text; "": all
  int64_t places = 0;
  int64_t units = 0;  // that were looked at
  LeftOut left_out;
};

// What ids of faults begin with: "s3"; where they are of a part, "s3-1f2e3d4c",
// so that nothing that is said of one draw is taken for another.
std::string IdPrefix(const SampledRun& run);

// Texts longer than this are cut in lists.
inline constexpr size_t kKeptText = 200;

class SampledList {
 public:
  // Reads the list, if there is one, without changing it. Throws DataError
  // naming FILE:LINE for one that is damaged, of another format, or has an id
  // twice.
  explicit SampledList(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::optional<SampledRun>& run() const { return run_; }
  const std::vector<MeasuredFault>& faults() const { return faults_; }
  const MeasuredFault* Find(const std::string& id) const;
  // Whether as many faults have a fate as the run is for.
  bool IsComplete() const;

  // Throws DataError if it is of another seed, number of faults or part of the
  // sources than is asked for.
  void RequireAskedFor(const SampledRun& run) const;
  // Begins the list, or goes on with it. Throws DataError if it is of another
  // seed, number of faults or state of the sources, EnvironmentError if of
  // another compiler; then it is as it was.
  void Begin(const SampledRun& run);
  // Throws DataError if the list says something else of a fault of this id
  // than what was drawn now.
  void RequireSame(const PlacedFault& fault) const;
  // Adds a line, at once. From any thread; after Begin.
  void Add(const MeasuredFault& fault);

 private:
  std::filesystem::path path_;
  std::optional<SampledRun> run_;
  std::vector<MeasuredFault> faults_;
  std::map<std::string, size_t> by_id_;
  std::optional<JsonLinesWriter> writer_;
  std::mutex mutex_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_LIST_H_
