// SPDX-License-Identifier: Apache-2.0
#include "core/files/sealed_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/files/json_lines.h"

namespace softmoe {
namespace {

using Json = nlohmann::ordered_json;

const Json kObject = {{"name", "caf\u00E9"},
                      {"bytes", 12345},
                      {"stand_in", false},
                      {"packages", {{{"version", "1.2"}}}}};

TEST(SealedJson, IsRecognisedHoweverItIsPrinted) {
  const Json sealed = Sealed(kObject);
  EXPECT_TRUE(IsSealed(sealed));
  EXPECT_TRUE(IsSealed(ParseJsonObject(sealed.dump())));
  EXPECT_TRUE(IsSealed(ParseJsonObject(sealed.dump(2) + "\n")));
  EXPECT_EQ(Sealed(sealed), sealed);
  EXPECT_EQ(sealed["name"], kObject["name"]);
}

TEST(SealedJson, EveryFlippedBitIsNoticed) {
  const Json sealed = Sealed(kObject);
  const std::string text = sealed.dump(2);
  for (size_t byte = 0; byte < text.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[byte] = static_cast<char>(other[byte] ^ 1 << bit);
      const Json parsed = ParseJsonObject(other);
      EXPECT_FALSE(IsSealed(parsed) && parsed != sealed) << other;
    }
  }
}

TEST(SealedJson, WithoutASealIsNotSealed) {
  EXPECT_FALSE(IsSealed(kObject));
  EXPECT_FALSE(IsSealed(Json()));
  EXPECT_FALSE(IsSealed(Json::array({"sha256"})));
  Json other = Sealed(kObject);
  other["sha256"] = 7;
  EXPECT_FALSE(IsSealed(other));
  other = Sealed(kObject);
  other["more"] = "after the seal";
  EXPECT_FALSE(IsSealed(other));
}

}  // namespace
}  // namespace softmoe
