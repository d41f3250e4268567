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
#include "property_tests/mutation/sampled/draw.h"
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
};

// The prefix of ids: "s3" or, for a part of the sources, "s3-1f2e3d4c", so that
// nothing said about one draw applies to another.
std::string IdPrefix(const SampledRun& run);

enum class Fate {
  kDoesNotCompile,  // alone, without or behind its switch
  kBreaksTheBuild,  // together with all others
  kNotReached,      // no test evaluates its place
  kSurvived,
  kFailed,    // the three kinds of killed: a test failed,
  kCrashed,   // its program was ended by a signal,
  kTimedOut,  // or had to be killed
};
const char* FateName(Fate fate);  // "DOES_NOT_COMPILE", ...
bool IsKilled(Fate fate);
// Whether the fault counts as drawn.
bool IsDrawn(Fate fate);

struct SampledFault {
  DrawnFault fault;
  int line = 0;          // the original's
  std::string original;  // its text; the beginning, if it is long
  Fate fate = Fate::kNotReached;
  std::string suite;   // the suite that killed it
  std::string reason;  // the compiler's error
  int64_t suites = 0;  // number of suites run with it
  double seconds = 0;
  // Survivors only: object code is identical, so the mutant is equivalent.
  bool equal_objects = false;
};

// Texts longer than this are cut in lists.
inline constexpr size_t kKeptText = 200;

class SampledList {
 public:
  // Reads the list, if there is one, without changing it. Throws DataError
  // naming FILE:LINE if it is damaged, has another format, or repeats an id.
  explicit SampledList(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::optional<SampledRun>& run() const { return run_; }
  const std::vector<SampledFault>& faults() const { return faults_; }
  const SampledFault* Find(const std::string& id) const;
  // Whether as many faults as the run wants have a fate.
  bool IsComplete() const;

  // Throws DataError if the list has another seed, number of faults or part of
  // the sources than asked for.
  void RequireAskedFor(const SampledRun& run) const;
  // Begins or resumes the list. Throws DataError if it has another seed, number
  // of faults or state of the sources, EnvironmentError if another compiler;
  // the list is then unchanged.
  void Begin(const SampledRun& run);
  // Throws DataError if the list has another fault under this id than was
  // drawn.
  void RequireSame(const DrawnFault& fault) const;
  // Appends a line immediately. Thread-safe; call after Begin.
  void Add(const SampledFault& fault);

 private:
  std::filesystem::path path_;
  std::optional<SampledRun> run_;
  std::vector<SampledFault> faults_;
  std::map<std::string, size_t> by_id_;
  std::optional<JsonLinesWriter> writer_;
  std::mutex mutex_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_LIST_H_
