// SPDX-License-Identifier: Apache-2.0
//
// run_identity.h - what identifies a run: results, checkpoints, prepared
// corpora and grids hold and compare it.
#ifndef SOFTMOE_TRAINER_IDENTITY_RUN_IDENTITY_H_
#define SOFTMOE_TRAINER_IDENTITY_RUN_IDENTITY_H_

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace softmoe::trainer {

// The tokens, by the hashes of their files.
struct TokenIdentity {
  std::string data_sha256;  // of PREFIX.bin
  // Of PREFIX.idx: the documents, hence the split. Empty in results from before
  // it was recorded.
  std::string index_sha256;
  std::string tokenizer_sha256;  // empty if the tokens came without one
};

// What must be equal for two runs to give the same bits, and for one to go on
// from what the other left. The version of the code is not part of it: it is
// recorded and reported, and is no reason to refuse a run or to train it again.
struct RunIdentity {
  Config config;  // as given: tau may still be "calibrated"
  TokenIdentity tokens;
  // Where the run is computed (ruling 9): the instruction set of the kernels.
  // Backend, device and library versions will belong here, too.
  std::string isa;
};

enum class IdentityPart { kConfig, kTokenizer, kTokens, kDocuments, kIsa };

// Calls visit(part, name, text) for everything in an identity but the
// configuration, under the names that files use; const or not. The bindings do
// not compile when a struct has gained a member.
template <typename Tokens, typename Visitor>
void VisitTokenTexts(Tokens& tokens, Visitor&& visit) {
  auto& [data, index, tokenizer] = tokens;
  visit(IdentityPart::kTokens, "data_sha256", data);
  visit(IdentityPart::kDocuments, "index_sha256", index);
  visit(IdentityPart::kTokenizer, "tokenizer_sha256", tokenizer);
}
template <typename Identity, typename Visitor>
void VisitIdentityTexts(Identity& identity, Visitor&& visit) {
  auto& [config, tokens, isa] = identity;
  VisitTokenTexts(tokens, visit);
  visit(IdentityPart::kIsa, "isa", isa);
}

// One thing in which two runs are not the same.
struct IdentityDifference {
  IdentityPart part;
  std::string name;         // "training.steps", "data_sha256", "isa"
  std::string there, here;  // a value as TOML, a digest, a level
  bool operator==(const IdentityDifference&) const = default;
};
using IdentityDifferences = std::vector<IdentityDifference>;

// What distinguishes `here` from `there`, an earlier run, as far as is known;
// empty if they are the same.
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

// What to do about a difference, as sentences, by what differs.
struct IdentityRemedies {
  std::string config, tokens, isa;
};

// Throws if `here` is not the run `there` that `path` holds: ConfigError for
// the configuration or the instruction set, DataError for the tokens, with what
// differs and the remedy.
void RequireSameRun(const std::filesystem::path& path, const RunIdentity& there,
                    const RunIdentity& here, const IdentityRemedies& remedies);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_IDENTITY_RUN_IDENTITY_H_
