// SPDX-License-Identifier: Apache-2.0
#include "trainer/token_identity.h"

#include <fmt/format.h>

namespace softmoe::trainer {
namespace {

std::string Both(const std::string& there, const std::string& here) {
  return fmt::format("SHA-256 {}... there, {}... here", there.substr(0, 16),
                     here.substr(0, 16));
}

}  // namespace

std::string DescribeTokenDifference(const TokenIdentity& there,
                                    const TokenIdentity& here) {
  const bool same_data = there.data_sha256 == here.data_sha256;
  if (there.tokenizer_sha256 != here.tokenizer_sha256) {
    if (here.tokenizer_sha256.empty()) {
      return fmt::format(
          "{}nothing here says which tokenizer made them: put the .json file "
          "back that was beside the .bin file there",
          same_data ? "the tokens are the same, but " : "");
    }
    if (there.tokenizer_sha256.empty()) {
      return fmt::format(
          "{}nothing there said which tokenizer made them, and the .json file "
          "here does: move it away if they are of the same vocabulary",
          same_data ? "the tokens are the same, but " : "");
    }
    return fmt::format("another tokenizer, whose ids mean other words: {}",
                       Both(there.tokenizer_sha256, here.tokenizer_sha256));
  }
  if (!same_data) {
    return "other tokens: " + Both(there.data_sha256, here.data_sha256);
  }
  if (!there.index_sha256.empty() && there.index_sha256 != here.index_sha256) {
    return "other documents, hence another split, of the same tokens (.idx): " +
           Both(there.index_sha256, here.index_sha256);
  }
  return "";
}

}  // namespace softmoe::trainer
