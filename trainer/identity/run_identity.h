// SPDX-License-Identifier: Apache-2.0
//
// run_identity.h - what identifies a run. Results, checkpoints, prepared
// corpora and grids hold, compare, store and show it.
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
// continue the other. The code version is not part of it; it is recorded and
// reported, but is no reason to refuse or retrain a run.
struct RunIdentity {
  Config config;  // as given: tau may still be "calibrated"
  TokenIdentity tokens;
  // Where the run is computed (optimized/device.h).
  std::string isa;
  // GPU only; empty on the CPU, whose files lack these attributes.
  std::string backend = {};    // "cuda"
  std::string device = {};     // its model
  std::string libraries = {};  // with their versions
  // The number of ranks if they add gradients in an order of their own
  // (optimized/rank_groups.h); empty if they add as one process does.
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

// Call visit(part, name, text) for every part of an identity (const or not)
// except the configuration, with the names used in files. The bindings fail to
// compile if a struct gains a member.
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

// Return how `here` differs from `there`, an earlier run, as far as is known;
// empty if they are the same.
IdentityDifferences CompareConfigs(const Config& there, const Config& here);
IdentityDifferences CompareTokens(const TokenIdentity& there,
                                  const TokenIdentity& here);
IdentityDifferences CompareIdentities(const RunIdentity& there,
                                      const RunIdentity& here);

bool Differs(const IdentityDifferences& differences, IdentityPart part);

// Return texts for a message: "training.steps is 100 there and 200 here; ..."
// for the result of CompareConfigs, and "another tokenizer, ...: SHA-256 ...
// there, ... here", with a remedy if there is one, for that of CompareTokens.
std::string DescribeConfigDifferences(const IdentityDifferences& differences);
std::string DescribeTokenDifferences(const IdentityDifferences& differences);
std::string DescribeTokenDifferences(const TokenIdentity& there,
                                     const TokenIdentity& here);

// Whether both runs are computed on the same device with the same libraries, or
// on the CPU with the same instruction set.
bool SamePlace(const RunIdentity& a, const RunIdentity& b);

// Returns the place of a run for messages: "v3", or "cuda (NVIDIA H100 80GB
// HBM3, sm_90; driver 13.0, CUDA runtime 13.0, cuBLASLt 13.1.0)".
std::string PlaceText(const RunIdentity& run);

// Returns how the run `there` can go on if `here` is not the same place:
// "Continue with --isa v3".
std::string HowToGoOn(const RunIdentity& there, const RunIdentity& here);

// The remedy for each kind of difference, as sentences.
struct IdentityRemedies {
  std::string config, tokens, place;
};

// Throws if `here` is not the run `there` that `path` holds: ConfigError if the
// configuration, the instruction set, the device or the ranks differ, DataError
// if the tokens do. The message has the differences and the remedy.
void RequireSameRun(const std::filesystem::path& path, const RunIdentity& there,
                    const RunIdentity& here, const IdentityRemedies& remedies);

// Returns the resolved configuration as a table for people: aligned lines
// "section.key  value", those that differ from the default marked with '*', and
// the hash. It ends with a newline.
std::string ConfigTable(const Config& config);

// Writes a RunIdentity to result.h5, checkpoint.h5 or a record of runs: the
// attributes config_hash, data_sha256, index_sha256, tokenizer_sha256 and isa
// of a group, which is the root in a file of one run; for a GPU also backend,
// device and libraries; and ranks if it is not empty. Each kind of file stores
// the configuration in its own way.
void WriteIdentity(const RunIdentity& identity, const std::string& group,
                   Hdf5Writer& file);

// Reads it back. `config` is the file's configuration as given to the run.
// Throws DataError if its hash is not the stored one.
RunIdentity ReadIdentity(const Hdf5Reader& file, const std::string& group,
                         const Config& config);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_IDENTITY_RUN_IDENTITY_H_
