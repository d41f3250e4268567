// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/frame.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

TEST(Frames, AreTakenInTheirOrderOnceTheyAreWhole) {
  const std::string bytes = FrameBytes({Frame::Kind::kBeat}) +
                            FrameBytes({Frame::Kind::kEnd, 75, "stopped"}) +
                            FrameBytes({Frame::Kind::kLost, -3});
  std::string heard;
  std::string seen;
  for (const char byte : bytes) {
    heard += byte;
    while (const std::optional<Frame> frame = TakeFrame(&heard)) {
      seen += std::to_string(static_cast<int>(frame->kind)) + " " +
              std::to_string(frame->number) + " " + frame->text + ";";
    }
  }
  EXPECT_EQ(seen, "2 0 ;5 75 stopped;3 -3 ;");
  EXPECT_EQ(heard, "");
}

TEST(Frames, LongTextsAreCut) {
  std::string bytes = FrameBytes(
      {Frame::Kind::kEnd, 1, std::string(kLongestFrameText + 5, 'x')});
  EXPECT_EQ(TakeFrame(&bytes)->text.size(), kLongestFrameText);
  EXPECT_EQ(bytes, "");
}

TEST(Frames, OtherBytesAreRefused) {
  const std::string whole = FrameBytes({Frame::Kind::kEnd, 1, "text"});
  for (std::string noise :
       {std::string(12, '\0'), std::string(12, '\xff'),
        // The last kind, and one more.
        std::string("\x06") + whole.substr(1),
        // A size that is too large.
        whole.substr(0, 4) + std::string(4, '\x7f') + whole.substr(8)}) {
    EXPECT_THROW(TakeFrame(&noise), DataError);
  }
}

}  // namespace
}  // namespace softmoe::optimized
