// SPDX-License-Identifier: Apache-2.0
//
// token_identity.h - which tokens a run was trained on, by their hashes.
#ifndef SOFTMOE_TRAINER_TOKEN_IDENTITY_H_
#define SOFTMOE_TRAINER_TOKEN_IDENTITY_H_

#include <string>

namespace softmoe::trainer {

struct TokenIdentity {
  std::string data_sha256;  // of PREFIX.bin
  // Of PREFIX.idx: the documents, hence the split. Empty in results that were
  // written before it was recorded.
  std::string index_sha256;
  std::string tokenizer_sha256;  // empty if the tokens came without one
};

// What distinguishes the tokens `here` from those `there` (of an earlier run),
// with the remedy, for a message: "another tokenizer: SHA-256 ... there, ...
// here"; empty if they are the same as far as is known.
std::string DescribeTokenDifference(const TokenIdentity& there,
                                    const TokenIdentity& here);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKEN_IDENTITY_H_
