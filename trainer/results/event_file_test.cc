// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/event_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// A log with numbers of every kind, and what TensorBoard's own writer makes of
// it: golden/oracles/events_oracle.py.
constexpr char kLog[] = "trainer/results/testdata/events.jsonl";
constexpr char kEvents[] = "trainer/results/testdata/events.tfevents";
constexpr char kHashOfLog[] = "0123456789abcdef";

std::string Replaced(std::string text, const std::string& old,
                     const std::string& by) {
  EXPECT_NE(text.find(old), std::string::npos) << old;
  for (size_t at = 0; (at = text.find(old, at)) != std::string::npos;
       at += by.size()) {
    text.replace(at, old.size(), by);
  }
  return text;
}

std::string Text(std::vector<int> bytes) {
  return {bytes.begin(), bytes.end()};
}

// RFC 3720, B.4, which lists the bytes of checksums in the order of storage.
TEST(EventFile, ChecksumsAreThoseOfTheRfc) {
  std::vector<int> ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(i);
    descending.push_back(31 - i);
  }
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(Text(ascending)), 0x46dd794eu);
  EXPECT_EQ(Crc32c(Text(descending)), 0x113fdb5cu);
  std::vector<int> read_command(48);
  for (const auto& [at, byte] :
       std::vector<std::pair<size_t, int>>{{0, 0x01},
                                           {1, 0xc0},
                                           {16, 0x14},
                                           {22, 0x04},
                                           {27, 0x14},
                                           {31, 0x18},
                                           {32, 0x28},
                                           {40, 0x02}}) {
    read_command[at] = byte;
  }
  EXPECT_EQ(Crc32c(Text(read_command)), 0xd9963a56u);
  // The check value of catalogues of CRCs; masked by hand:
  // (0xe3069283 rotated by 15 = 0x2507c60d) + 0xa282ead8.
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(MaskedCrc32c("123456789"), 0xc78ab0e5u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(EventFile, HasTheBytesThatTensorBoardWrites) {
  EXPECT_EQ(EventFileBytes(kLog), ReadWholeFile(kEvents));
}

class GrowingLog : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path folder = FreshFolder("growing");
    log_ = folder / "metrics.jsonl";
    events_ = folder / kEventFileName;
    // The log of a run lacks no step.
    text_ = Replaced(ReadWholeFile(kLog), "\"step\":300,", "\"step\":3,");
    WriteFileAtomically(log_, text_);
    bytes_ = EventFileBytes(log_);
  }

  EventFileChange Update() const {
    return UpdateEventFile(log_, kHashOfLog, events_);
  }

  EventFileChange UpdateTo(const std::string& log) {
    WriteFileAtomically(log_, log);
    return Update();
  }

  fs::path log_, events_;
  std::string text_, bytes_;
};

TEST_F(GrowingLog, AnUnfinishedLineIsLeftForTheNextTime) {
  const size_t line = text_.find('\n', text_.find('\n') + 1) + 1;
  EXPECT_EQ(UpdateTo(text_.substr(0, line)), EventFileChange::kNew);
  const std::string before = ReadWholeFile(events_);
  EXPECT_TRUE(bytes_.starts_with(before));
  EXPECT_EQ(UpdateTo(text_.substr(0, line + 40)), EventFileChange::kNone);
  // The whole line except its '\n'.
  const size_t next = text_.find('\n', line);
  EXPECT_EQ(UpdateTo(text_.substr(0, next)), EventFileChange::kNone);
  EXPECT_EQ(ReadWholeFile(events_), before);
  EXPECT_EQ(UpdateTo(text_.substr(0, next + 1)), EventFileChange::kLonger);
  EXPECT_EQ(UpdateTo(text_), EventFileChange::kLonger);
  EXPECT_EQ(ReadWholeFile(events_), bytes_);
  EXPECT_EQ(UpdateTo(text_), EventFileChange::kNone);
  EXPECT_EQ(FilesIn(log_.parent_path()).size(), 2u);
}

// A file that a TensorBoard has open grows; it is not replaced.
TEST_F(GrowingLog, GoesOnBehindARecordThatAKilledUpdateTore) {
  for (const size_t size :
       {size_t{0}, size_t{5}, size_t{31}, size_t{100}, bytes_.size() - 1}) {
    WriteFileAtomically(events_, bytes_.substr(0, size));
    fs::remove(events_.string() + ".open");
    fs::create_hard_link(events_, events_.string() + ".open");
    EXPECT_EQ(UpdateTo(text_), EventFileChange::kLonger) << size;
    EXPECT_EQ(ReadWholeFile(events_), bytes_) << size;
    EXPECT_EQ(ReadWholeFile(events_.string() + ".open"), bytes_) << size;
  }
}

// A run that resumes from a checkpoint has other clock times.
TEST_F(GrowingLog, IsWrittenAnewForOtherLines) {
  const size_t line = text_.find('\n') + 1;
  const std::string other =
      Replaced(text_, "\"seconds\":0.1,", "\"seconds\":0.2,");
  UpdateTo(text_.substr(0, text_.rfind('{')));
  EXPECT_EQ(UpdateTo(other), EventFileChange::kNew);
  EXPECT_EQ(ReadWholeFile(events_), EventFileBytes(log_));
  EXPECT_EQ(ReadWholeFile(events_).size(), bytes_.size());
  EXPECT_NE(ReadWholeFile(events_), bytes_);
  // A shorter one.
  EXPECT_EQ(UpdateTo(text_.substr(0, line)), EventFileChange::kNew);
  EXPECT_EQ(ReadWholeFile(events_).size(), 31u);
}

TEST_F(GrowingLog, AFullDiskLeavesTheFile) {
  const size_t line = text_.find('\n', text_.find('\n') + 1) + 1;
  UpdateTo(text_.substr(0, line));
  const std::string before = ReadWholeFile(events_);
  WriteFileAtomically(log_, text_);
  {
    FullDisk disk(static_cast<int64_t>(before.size()) + 5);
    EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { Update(); }),
                     "cannot write", kEventFileName, "File too large"));
  }
  EXPECT_EQ(ReadWholeFile(events_), before);
}

TEST_F(GrowingLog, IsThatOfTheRunWithEveryStep) {
  UpdateTo(text_);
  const auto refusal = [&](const std::string& log) {
    const std::string message = MessageOf<DataError>([&] { UpdateTo(log); });
    EXPECT_EQ(ReadWholeFile(events_), bytes_) << message;
    return message;
  };
  const std::string place = log_.string() + ":";
  EXPECT_TRUE(Says(refusal(Replaced(text_, kHashOfLog, "fedcba9876543210")),
                   place + "1: a log of configuration fedcba9876543210, but "
                           "its folder is that of 0123456789abcdef"));
  EXPECT_TRUE(Says(refusal(Replaced(text_, "\"config_hash\"", "\"hash\"")),
                   place + "1: a log without 'config_hash'"));
  const size_t second = text_.find('\n') + 1;
  EXPECT_TRUE(Says(refusal(text_.substr(second)), place + "1: the first line"));
  EXPECT_TRUE(Says(refusal(ReadWholeFile(kLog)), "'step' is not 3, the next"));
  // Two logs, one behind the other.
  EXPECT_TRUE(Says(refusal(text_ + text_), "'step' is not 4"));
}

TEST(EventFile, RefusesWhatIsNoLog) {
  const fs::path log = FreshFolder("refused") / "metrics.jsonl";
  const std::string good = ReadWholeFile(kLog);
  const auto refusal = [&](const std::string& old, const std::string& by) {
    WriteFileAtomically(log, Replaced(good, old, by));
    return MessageOf<DataError>([&] { EventFileBytes(log); });
  };
  const auto second = log.string() + ":2: ";
  EXPECT_TRUE(Says(refusal("\"kind\":\"step\"", "\"kind\":\"steps\""), second,
                   "'kind' is not run, step or validation"));
  EXPECT_TRUE(Says(refusal("\"kind\":\"step\"", "\"kind\":1"), second));
  EXPECT_TRUE(Says(refusal("\"kind\":\"step\",", ""), second));
  EXPECT_TRUE(Says(refusal("\"step\":1,", "\"step\":1.5,"), second,
                   "'step' is not an integer"));
  EXPECT_TRUE(Says(refusal("\"step\":1,", ""), second, "'step'"));
  EXPECT_TRUE(Says(refusal("\"z_loss\":0.0,", ""), second, "'z_loss'"));
  EXPECT_TRUE(
      Says(refusal("[1.0,1.5]", "1.5"), second, "'layer_active_experts'"));
  EXPECT_TRUE(
      Says(refusal("[1.0,1.5]", "[1.0,\"x\"]"), second,
           "'layer_active_experts' contains something other than a number"));
  EXPECT_TRUE(Says(refusal("\"version\":2", "\"version\":3"),
                   log.string() + ":1: ", "version 3", "reads version 2"));
  EXPECT_TRUE(Says(refusal("\"version\":2,", ""),
                   log.string() + ":1: ", "a log without 'version'"));
  EXPECT_TRUE(Says(refusal("\"temperature\":3.0,\"schedule_loss\":\"-inf\",",
                           "\"temperature\":3.0,"),
                   log.string() + ":4: ", "'schedule_loss'"));
  EXPECT_TRUE(Says(refusal("{\"kind\":\"step\"", "{kind"), second));
  EXPECT_THROW(EventFileBytes(log.string() + "l"), EnvironmentError);
}

}  // namespace
}  // namespace softmoe::trainer
