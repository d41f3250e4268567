// SPDX-License-Identifier: Apache-2.0
//
// frame.h - what ranks tell each other over the connections to rank 0.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_FRAME_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_FRAME_H_

#include <cstdint>
#include <optional>
#include <string>

#include "optimized/communicator/socket.h"

namespace softmoe::optimized {

struct Frame {
  enum class Kind : uint32_t {
    kMembers = 1,  // text: who the ranks are
    kBeat,         // the sender is alive
    kLost,         // the sender has lost its connection to rank `number`
    kLeave,        // the sender has done its work, and ends with code `number`
    kEnd,          // the receiver is to end with code `number`, saying `text`
  };
  Kind kind = Kind::kBeat;
  int32_t number = 0;
  std::string text = {};  // at most kLongestFrameText
};

inline constexpr uint32_t kLongestFrameText = 1 << 20;

std::string FrameBytes(const Frame& frame);

// Takes the first frame from `bytes`, if it is there whole.
// Errors   DataError if what is there begins no frame.
std::optional<Frame> TakeFrame(std::string* bytes);

// False if the connection is closed, or the deadline passes.
bool SendFrame(const Frame& frame, Socket& socket, Deadline deadline);

// The next frame; nothing if the connection is closed, or at the deadline.
// Reads no byte more than that. Throws what TakeFrame throws.
std::optional<Frame> ReceiveFrame(Socket& socket, Deadline deadline);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_FRAME_H_
