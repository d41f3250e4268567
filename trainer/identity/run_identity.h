// SPDX-License-Identifier: Apache-2.0
//
// run_identity.h - what identifies a run: results, checkpoints, prepared
// corpora and grids hold, compare and store it, and people are shown it.
#ifndef SOFTMOE_TRAINER_IDENTITY_RUN_IDENTITY_H_
#define SOFTMOE_TRAINER_IDENTITY_RUN_IDENTITY_H_

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace softmoe {
class Hdf5Reader;
class Hdf5Writer;
}  // namespace softmoe

namespace softmoe::trainer {

// The tokens, by the hashes of their files.
struct TokenIdentity {
  std::string data_sha256;  // of PREFIX.bin
  // PREFIX.idx: the documents, and hence the split. Empty in results that lack
  // it.
  std::string index_sha256;
  std::string tokenizer_sha256;  // empty for tokens without a tokenizer
};

// What must be equal for two runs to give the same bits, and for one to
// continue the other. The code version is not part of it: it is recorded and
// reported, but is no reason to refuse or retrain a run.
struct RunIdentity {
  Config config;  // as given: tau may still be "calibrated"
  TokenIdentity tokens;
  // Where the run is computed (optimized/device.h).
  std::string isa;
  // GPU only; empty on the CPU, which leaves its files without these
  // attributes.
  std::string backend = {};    // "cuda"
  std::string device = {};     // its model
  std::string libraries = {};  // with their versions
  // The number of ranks if they add gradients in their own order
  // (optimized/rank_groups.h); empty if the order is that of one process.
  std::string ranks = {};
};

enum class IdentityPart {
  kConfig,
  kTokenizer,
  kTokens,
  kDocuments,
  kIsa,
  kDevice,
  kRanks
};

// Calls visit(part, name, text) for every part of an identity except the
// configuration, with the names used in files; const or not. The bindings fail
// to compile if a struct gains a member.
template <typename Tokens, typename Visitor>
void VisitTokenTexts(Tokens& tokens, Visitor&& visit) {
  auto& [data, index, tokenizer] = tokens;
  visit(IdentityPart::kTokens, "data_sha256", data);
  visit(IdentityPart::kDocuments, "index_sha256", index);
  visit(IdentityPart::kTokenizer, "tokenizer_sha256", tokenizer);
}
template <typename Identity, typename Visitor>
void VisitIdentityTexts(Identity& identity, Visitor&& visit) {
  auto& [config, tokens, isa, backend, device, libraries, ranks] = identity;
  VisitTokenTexts(tokens, visit);
  visit(IdentityPart::kIsa, "isa", isa);
  visit(IdentityPart::kDevice, "backend", backend);
  visit(IdentityPart::kDevice, "device", device);
  visit(IdentityPart::kDevice, "libraries", libraries);
  visit(IdentityPart::kRanks, "ranks", ranks);
}

// One difference between two runs.
struct IdentityDifference {
  IdentityPart part;
  std::string name;         // "training.steps", "data_sha256", "isa"
  std::string there, here;  // a value as TOML, a digest, a level, a version
  bool operator==(const IdentityDifference&) const = default;
};
using IdentityDifferences = std::vector<IdentityDifference>;

// How `here` differs from `there`, an earlier run, as far as is known; empty if
// they are the same.
IdentityDifferences CompareConfigs(const Config& there, const Config& here);
IdentityDifferences CompareTokens(const TokenIdentity& there,
                                  const TokenIdentity& here);
IdentityDifferences CompareIdentities(const RunIdentity& there,
                                      const RunIdentity& here);

bool Differs(const IdentityDifferences& differences, IdentityPart part);

// Texts for a message: "training.steps is 100 there and 200 here; ..." for what
// CompareConfigs found, and "another tokenizer, ...: SHA-256 ... there, ...
// here", with the remedy if there is one, for what CompareTokens found.
std::string DescribeConfigDifferences(const IdentityDifferences& differences);
std::string DescribeTokenDifferences(const IdentityDifferences& differences);
std::string DescribeTokenDifferences(const TokenIdentity& there,
                                     const TokenIdentity& here);

// Whether both are computed on the same device with the same libraries, or on
// the CPU with the same instruction set.
bool SamePlace(const RunIdentity& a, const RunIdentity& b);

// The place of a run for messages: "v3", or "cuda (NVIDIA H100 80GB HBM3,
// sm_90; driver 13.0, CUDA runtime 13.0, cuBLASLt 13.1.0)".
std::string PlaceText(const RunIdentity& run);

// What can continue a run of `there` if `here` is not the same place: "Go on
// with --isa v3".
std::string HowToGoOn(const RunIdentity& there, const RunIdentity& here);

// The remedy for each kind of difference, as sentences.
struct IdentityRemedies {
  std::string config, tokens, place;
};

// Throws if `here` is not the run `there` that `path` holds: ConfigError for
// the configuration, the instruction set, the device or the ranks, DataError
// for the tokens, with what differs and the remedy.
void RequireSameRun(const std::filesystem::path& path, const RunIdentity& there,
                    const RunIdentity& here, const IdentityRemedies& remedies);

// The resolved configuration as a table for people: aligned lines
// "section.key  value", those that differ from the default marked with '*', and
// the hash. Ends with a newline.
std::string ConfigTable(const Config& config);

// A RunIdentity in result.h5, checkpoint.h5 and records of runs: the attributes
// config_hash, data_sha256, index_sha256, tokenizer_sha256 and isa of a group,
// which is the root in a file of one run; for a GPU also backend, device and
// libraries, and ranks if it is not empty. Each file stores the configuration
// itself in its own way.
void WriteIdentity(const RunIdentity& identity, const std::string& group,
                   Hdf5Writer& file);

// `config` is the file's configuration as given to the run. Throws DataError if
// its hash is not the stored one.
RunIdentity ReadIdentity(const Hdf5Reader& file, const std::string& group,
                         const Config& config);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_IDENTITY_RUN_IDENTITY_H_
