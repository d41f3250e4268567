// SPDX-License-Identifier: Apache-2.0
#include "core/files/json_lines.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace {

// The inode of the folder that was synced last.
std::atomic<ino_t> last_synced_folder = 0;

}  // namespace

// Takes the place of the C library's fsync in the libraries under test.
extern "C" int fsync(int file) {
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
    last_synced_folder = status.st_ino;
  }
  return static_cast<int>(syscall(SYS_fsync, file));
}

namespace softmoe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(JsonLines, EachRecordIsOnDiskWhenWriteReturnsAndKeepsItsOrder) {
  const fs::path path = FreshFolder("flush") / "m.jsonl";
  JsonLinesWriter writer(path);
  writer.Write({{"step", 1}, {"loss", 2.5}, {"aux", 0.1}});
  EXPECT_EQ(ReadWholeFile(path), "{\"step\":1,\"loss\":2.5,\"aux\":0.1}\n");
  writer.Write({{"step", 2}, {"text", "a\nb"}});
  const auto records = ReadJsonLines(path);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1]["text"], "a\nb");
}

TEST(JsonLines, TheNameOfANewFileIsOnDiskToo) {
  const fs::path folder = FreshFolder("synced");
  last_synced_folder = 0;
  JsonLinesWriter writer(folder / "m.jsonl");
  struct stat status;
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(last_synced_folder, status.st_ino);
}

TEST(JsonLines, NotANumberAndInfinitiesSurviveAtAnyDepth) {
  const Json record = {
      {"a", std::nan("")}, {"b", {{"c", {1.0, kInfinity}}}}, {"d", -kInfinity}};
  EXPECT_EQ(JsonLine(record),
            "{\"a\":\"nan\",\"b\":{\"c\":[1.0,\"inf\"]},\"d\":\"-inf\"}");
  const Json read = Json::parse(JsonLine(record));
  EXPECT_TRUE(std::isnan(JsonNumber(read, "a", "m:1")));
  EXPECT_EQ(JsonNumber(read, "d", "m:1"), -kInfinity);
  EXPECT_EQ(JsonLine(WithNonFinite(read)), JsonLine(record));
  EXPECT_EQ(WithNonFinite(read)["b"]["c"][1], kInfinity);
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { JsonNumber(read, "b", "m:1"); }),
           "m:1: 'b' is not a number; correct the line, or remove the file"));
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { JsonNumber(read, "absent", "m:1"); }),
           "m:1: 'absent' is absent; ", "or remove the file"));
}

TEST(JsonLines, BytesThatAreNotUtf8DoNotStopARun) {
  EXPECT_EQ(JsonLine({{"a", "x\xff"}}), "{\"a\":\"x\xEF\xBF\xBD\"}");
}

TEST(JsonText, IsIndentedAndHasNoOtherBytesThanUtf8) {
  const Json value = {{"caf\u00E9", std::nan("")},
                      {"x\xff", Json::array({"caf\xE9"})}};
  EXPECT_EQ(
      JsonText(value, 1),
      "{\n \"caf\u00E9\": null,\n \"x\uFFFD\": [\n  \"caf\uFFFD\"\n ]\n}");
  EXPECT_EQ(JsonText(value, -1),
            "{\"caf\u00E9\":null,\"x\uFFFD\":[\"caf\uFFFD\"]}");
}

RC_GTEST_PROP(JsonLines, DoublesReadBackToTheSameBits, ()) {
  // Any bit pattern, so that subnormals and 17-digit values come up.
  const uint64_t bits = *rc::gen::arbitrary<uint64_t>();
  const uint64_t mixed = bits * 0x9e3779b97f4a7c15u;
  const double value = std::bit_cast<double>(mixed);
  RC_CLASSIFY(!std::isfinite(value), "not finite");
  const double read =
      JsonNumber(Json::parse(JsonLine({{"v", value}})), "v", "m:1");
  const bool same = std::isnan(value) ? std::isnan(read)
                                      : std::bit_cast<uint64_t>(read) == mixed;
  RC_ASSERT(same);
}

TEST(JsonLines, ReopeningRemovesATornLineAndGoesOn) {
  const fs::path path = FreshFolder("torn") / "m.jsonl";
  const std::string whole = "{\"step\":1}\n{\"step\":2}\n";
  for (const char* torn : {"", "{", "{\"step\":3", "{\"step\":3,\"lo"}) {
    WriteFileAtomically(path, whole + torn);
    EXPECT_EQ(ReadJsonLines(path).size(), 2u) << torn;
    JsonLinesWriter writer(path);
    writer.Write({{"step", 4}});
    EXPECT_EQ(ReadWholeFile(path), whole + "{\"step\":4}\n");
  }
}

TEST(JsonLines, ReopeningEndsAWholeLastLine) {
  const fs::path path = FreshFolder("unended") / "m.jsonl";
  const std::string text = "{\"step\":1}\n{\"step\":2}";
  WriteFileAtomically(path, text);
  JsonLinesWriter writer(path);
  EXPECT_EQ(ReadWholeFile(path), text + "\n");
  writer.Write({{"step", 3}});
  EXPECT_EQ(ReadWholeFile(path), text + "\n{\"step\":3}\n");
}

TEST(JsonLines, ASecondWriterIsRefusedAndChangesNothing) {
  const fs::path path = FreshFolder("two_writers") / "m.jsonl";
  {
    JsonLinesWriter first(path);
    first.Write({{"step", 1}});
    EXPECT_TRUE(
        Says(MessageOf<EnvironmentError>([&] { JsonLinesWriter second(path); }),
             path.string() + ": another process is writing this file"));
    first.Write({{"step", 2}});
  }
  JsonLinesWriter later(path);
  later.Write({{"step", 3}});
  EXPECT_EQ(ReadWholeFile(path), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
}

TEST(JsonLines, AFullDiskLeavesAWholeLastLine) {
  const fs::path path = FreshFolder("unended_full") / "m.jsonl";
  const std::string text = "{\"step\":1}\n{\"step\":2}";
  WriteFileAtomically(path, text);
  {
    FullDisk disk(std::ssize(text));
    EXPECT_THROW(JsonLinesWriter{path}, EnvironmentError);
  }
  EXPECT_EQ(ReadWholeFile(path), text);
}

// A foreign file, such as json.dump(object, file) of Python writes.
TEST(JsonLines, AFileOfOneObjectIsNotRemoved) {
  const fs::path path = FreshFolder("one_object") / "mine.json";
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  for (const std::string& text :
       {std::string("{\"only\": \"copy\"}"), std::string("{}"),
        "{\"a\":" + deep + "}", "{\"step\":1}\n{\"a\":" + deep + "}"}) {
    WriteFileAtomically(path, text);
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { JsonLinesWriter{path}; }),
                     path.string(), "name another file"))
        << text;
    EXPECT_EQ(ReadWholeFile(path), text);
  }
}

TEST(JsonLines, ALastLineThatIsNoRecordIsNotRemoved) {
  const fs::path path = FreshFolder("not_ours") / "notes.txt";
  const std::string after_nul("\0my only copy", 13);
  for (const char* whole : {"", "{\"step\":1}\n"}) {
    for (const std::string& last :
         {std::string("my only copy"), std::string(" {"), std::string("[1]"),
          after_nul}) {
      const std::string text = whole + last;
      WriteFileAtomically(path, text);
      const std::string place =
          path.string() + (*whole == '\0' ? ":1: " : ":2: ");
      const std::string message =
          MessageOf<DataError>([&] { JsonLinesWriter{path}; });
      EXPECT_EQ(message.find(place), 0u) << message;
      EXPECT_TRUE(Says(message, "name another file"));
      EXPECT_EQ(ReadWholeFile(path), text);
    }
  }
}

TEST(JsonLines, TheZerosOfAPowerFailureAreRemoved) {
  const fs::path path = FreshFolder("zeros") / "m.jsonl";
  WriteFileAtomically(path, "{\"step\":1}\n" + std::string(5, '\0'));
  { JsonLinesWriter writer(path); }
  EXPECT_EQ(ReadWholeFile(path), "{\"step\":1}\n");
}

TEST(JsonLines, ADamagedLineIsNamedAndNothingIsChanged) {
  const fs::path path = FreshFolder("damaged") / "m.jsonl";
  for (const char* damaged : {"{\"step\":\n", "[1]\n", "\n", "\xff\xfe\n"}) {
    const std::string text = "{\"step\":1}\n" + std::string(damaged) + "{}\n";
    WriteFileAtomically(path, text);
    const std::string place = path.string() + ":2: not a JSON object";
    for (bool writing : {false, true}) {
      const std::string message = MessageOf<DataError>([&] {
        if (writing) {
          JsonLinesWriter writer(path);
        } else {
          ReadJsonLines(path);
        }
      });
      EXPECT_EQ(message.find(place), 0u) << message;
    }
    EXPECT_EQ(ReadWholeFile(path), text);
  }
}

// Copying, printing and comparing JSON recurse.
TEST(JsonLines, DeepNestingIsRefusedBeforeTheStackEnds) {
  const fs::path path = FreshFolder("deep") / "m.jsonl";
  const auto nested = [](size_t depth) {  // arrays, in an object
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') +
           "}\n";
  };
  // 64 levels, and one more.
  WriteFileAtomically(path, nested(63));
  EXPECT_EQ(JsonLine(ReadJsonLines(path).at(0)) + "\n", nested(63));
  for (const size_t depth : {64, 1'000'000}) {
    WriteFileAtomically(path, nested(depth));
    EXPECT_THROW(ReadJsonLines(path), DataError) << depth;
    EXPECT_THROW(JsonLinesWriter{path}, DataError) << depth;
  }
}

TEST(JsonLines, AFullDiskLeavesWholeLines) {
  const fs::path path = FreshFolder("full_disk") / "m.jsonl";
  JsonLinesWriter writer(path);
  writer.Write({{"step", 1}});
  const std::string before = ReadWholeFile(path);
  {
    FullDisk disk(static_cast<int64_t>(before.size()) + 5);
    EXPECT_THROW(writer.Write({{"step", 2}}), EnvironmentError);
  }
  EXPECT_EQ(ReadWholeFile(path), before);
  writer.Write({{"step", 3}});  // space was freed
  EXPECT_EQ(ReadWholeFile(path), before + "{\"step\":3}\n");
}

TEST(JsonLines, MissingFilesAndFoldersAreEnvironmentErrors) {
  const fs::path folder = FreshFolder("missing");
  EXPECT_THROW(ReadJsonLines(folder / "absent.jsonl"), EnvironmentError);
  EXPECT_THROW(JsonLinesWriter(folder / "absent" / "m.jsonl"),
               EnvironmentError);
  EXPECT_THROW(JsonLinesWriter("/dev/zero"), EnvironmentError);
}

using Json = nlohmann::ordered_json;

TEST(TakeField, ConvertsNothing) {
  const Json object = ParseJsonObject(
      R"({"yes": true, "count": 7, "minus": -1, "real": 7.0, "text": "a",)"
      R"( "texts": ["a", "b"], "none": [], "mixed": ["a", 1],)"
      R"( "most": 9223372036854775807, "more": 9223372036854775808})");
  const auto takes = [&](auto field) {
    std::string keys;
    for (const auto& [key, value] : object.items()) {
      const auto before = field;
      if (TakeField(object, key, &field)) {
        keys += key + " ";
        EXPECT_EQ(field, value.template get<decltype(field)>());
      } else {
        EXPECT_EQ(field, before) << key;
      }
    }
    EXPECT_FALSE(TakeField(object, "absent", &field));
    EXPECT_FALSE(TakeField(Json(), "yes", &field));
    EXPECT_FALSE(TakeField(Json::array({1}), "yes", &field));
    return keys;
  };
  EXPECT_EQ(takes(false), "yes ");
  EXPECT_EQ(takes(int64_t{-5}), "count most ");
  EXPECT_EQ(takes(std::string()), "text ");
  EXPECT_EQ(takes(std::vector<std::string>()), "texts none ");
}

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
