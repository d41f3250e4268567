// SPDX-License-Identifier: Apache-2.0
//
// sampled_list.h - the fates of one seed's faults, one line each, appended as
// they are found.
//
//   {"format":1,"seed":1,"faults":300,"sources":"...","clang":"...",...}
//   {"id":"s1.0","file":"...","line":12,...,"outcome":"KILLED","suite":"..."}
//
// An interrupted run resumes after its last whole line. A list is bound to the
// sources and compilers that its first line names.
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
  int64_t faults = 0;           // number of faults that compile
  std::string sources;          // SourceTree::digest
  std::string clang, compiler;  // versions
  std::string part;             // Part::Text; "": all sources
  int64_t places = 0;
  int64_t units = 0;  // units examined
  LeftOut left_out;
  std::vector<std::string> unseen;  // FoundPlaces::unseen
};

// The prefix of ids: "s3" or, for a part of the sources, "s3-1f2e3d4c", so that
// nothing said about one draw applies to another.
std::string IdPrefix(const SampledRun& run);

class SampledList {
 public:
  // Reads the list, if there is one, without changing it. Throws DataError
  // naming FILE:LINE if it is damaged, has another format, or repeats an id.
  explicit SampledList(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::optional<SampledRun>& run() const { return run_; }
  const std::vector<MeasuredFault>& faults() const { return faults_; }
  const MeasuredFault* Find(const std::string& id) const;
  // Whether as many faults have a fate as the run asks for.
  bool IsComplete() const;

  // Throws DataError if the list has another seed, number of faults or part of
  // the sources than asked for.
  void RequireAskedFor(const SampledRun& run) const;
  // Begins or resumes the list. Throws DataError if it has another seed, number
  // of faults or state of the sources, and EnvironmentError if it has another
  // compiler; the list is then unchanged.
  void Begin(const SampledRun& run);
  // Throws DataError if the list has another fault with this id than `fault`,
  // as drawn.
  void RequireSame(const PlacedFault& fault) const;
  // Writes a line at once. Can be called from any thread, after Begin.
  void Add(const MeasuredFault& fault);

 private:
  void Read();

  std::filesystem::path path_;
  std::optional<SampledRun> run_;
  std::vector<MeasuredFault> faults_;
  std::map<std::string, size_t> by_id_;
  std::optional<JsonLinesWriter> writer_;
  std::mutex mutex_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_LIST_H_
