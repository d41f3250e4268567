// SPDX-License-Identifier: Apache-2.0
#include "trainer/identity/identity_attributes.h"

#include <fmt/format.h>

#include "core/errors.h"

namespace softmoe::trainer {

void WriteIdentity(const RunIdentity& identity, const std::string& group,
                   Hdf5Writer& file) {
  file.WriteAttribute(group, "config_hash", ConfigHash(identity.config));
  VisitIdentityTexts(identity, [&](IdentityPart part, const char* name,
                                   const std::string& text) {
    // The CPU has no device, and most numbers of ranks leave no trace.
    const bool optional =
        part == IdentityPart::kDevice || part == IdentityPart::kRanks;
    if (optional && text.empty()) return;
    file.WriteAttribute(group, name, text);
  });
}

RunIdentity ReadIdentity(const Hdf5Reader& file, const std::string& group,
                         const Config& config) {
  RunIdentity identity;
  identity.config = config;
  if (ConfigHash(config) != file.ReadString(group, "config_hash")) {
    throw DataError(fmt::format(
        "{}: its configuration does not have the hash it was stored with: it "
        "was written by another version of this program; delete it to begin "
        "anew, or use the version that wrote it",
        file.path().string()));
  }
  VisitIdentityTexts(
      identity, [&](IdentityPart part, const char* name, std::string& text) {
        // Results without a recorded document index lack it, too.
        const bool optional = part == IdentityPart::kDocuments ||
                              part == IdentityPart::kDevice ||
                              part == IdentityPart::kRanks;
        if (optional && !file.HasAttribute(group, name)) return;
        text = file.ReadString(group, name);
      });
  return identity;
}

}  // namespace softmoe::trainer
