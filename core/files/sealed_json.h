// SPDX-License-Identifier: Apache-2.0
//
// sealed_json.h - JSON objects with a checksum of themselves.
#ifndef SOFTMOE_CORE_FILES_SEALED_JSON_H_
#define SOFTMOE_CORE_FILES_SEALED_JSON_H_

#include <nlohmann/json_fwd.hpp>

namespace softmoe {

// `object` with one more member at its end, "sha256": the hash of the object
// without it, printed on one line. White space between members does not count.
nlohmann::ordered_json Sealed(nlohmann::ordered_json object);

// Whether `object` is what Sealed returns.
bool IsSealed(const nlohmann::ordered_json& object);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_SEALED_JSON_H_
