// SPDX-License-Identifier: Apache-2.0
#include "core/files/sealed_json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/files/json_lines.h"
#include "core/files/sha256.h"

namespace softmoe {
namespace {

constexpr const char* kSeal = "sha256";

}  // namespace

nlohmann::ordered_json Sealed(nlohmann::ordered_json object) {
  object.erase(kSeal);
  const std::string seal = Sha256Hex(JsonLine(object));
  object[kSeal] = seal;
  return object;
}

bool IsSealed(const nlohmann::ordered_json& object) {
  return object.is_object() && object.contains(kSeal) &&
         Sealed(object) == object;
}

}  // namespace softmoe
