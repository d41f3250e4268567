// SPDX-License-Identifier: Apache-2.0
#include "core/config/toml_reader.h"

#include <gtest/gtest.h>

#include "core/config/config_toml.h"
#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

using TextList = std::vector<std::string>;

TEST(TomlReader, ReadsArrays) {
  const toml::table table = ParseToml(
      "whole = [1, -2]\n"
      "real = [1, 2.5]\n"
      "texts = ['a', 'b']\n"
      "lists = [['a'], []]\n",
      "a.toml");
  TomlReader reader(&table);
  EXPECT_EQ(reader.Integers("whole"), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(reader.Numbers("real"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(reader.Texts("texts"), (TextList{"a", "b"}));
  EXPECT_TRUE(reader.Texts("absent").empty());
  EXPECT_EQ(reader.TextLists("lists"),
            (std::vector<TextList>{TextList{"a"}, TextList{}}));
  reader.Finish();
}

// Returns the reader's error message for "x = VALUE".
std::string Refusal(const std::string& value, void (*read)(TomlReader*)) {
  const toml::table table = ParseToml("x = " + value, "a.toml");
  TomlReader reader(&table);
  return MessageOf<DataError>([&] { read(&reader); });
}

TEST(TomlReader, OtherArraysAreErrorsWithPosition) {
  const std::string x = "a.toml:1:5: 'x' must be an array of ";
  for (const char* value : {"1", "['a']", "[1, 2.5]", "[2.0]", "[true]"}) {
    EXPECT_EQ(Refusal(value, [](TomlReader* r) { r->Integers("x"); }),
              x + "integers")
        << value;
  }
  // 2^53 + 1 is no double.
  for (const char* value : {"1.5", "['a']", "[true]", "[9007199254740993]"}) {
    EXPECT_EQ(Refusal(value, [](TomlReader* r) { r->Numbers("x"); }),
              x + "numbers")
        << value;
  }
  for (const char* value : {"'a'", "['a', 1]", "[['a']]"}) {
    EXPECT_EQ(Refusal(value, [](TomlReader* r) { r->Texts("x"); }),
              x + "strings")
        << value;
  }
  for (const char* value : {"'a'", "[['a'], 'b']", "[['a', 1]]"}) {
    EXPECT_EQ(Refusal(value, [](TomlReader* r) { r->TextLists("x"); }),
              x + "arrays of strings")
        << value;
  }
  for (const char* value : {"'1'", "9007199254740993"}) {
    EXPECT_EQ(Refusal(value, [](TomlReader* r) { r->Number("x"); }),
              "a.toml:1:5: 'x' must be a number")
        << value;
  }
  EXPECT_TRUE(Says(Refusal("[1]", [](TomlReader* r) { r->Integers("y"); }),
                   "the key 'y' is missing: must be an array of integers"));
}

}  // namespace
}  // namespace softmoe
