// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/frame.h"

#include <cstring>
#include <span>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

struct Head {
  uint32_t kind, size;
  int32_t number;
};

// Of the frame that `bytes` begin with.
Head HeadOf(const std::string& bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.kind < static_cast<uint32_t>(Frame::Kind::kMembers) ||
      head.kind > static_cast<uint32_t>(Frame::Kind::kEnd) ||
      head.size > kLongestFrameText) {
    throw DataError("what came over a connection of ranks is no message");
  }
  return head;
}

}  // namespace

std::string FrameBytes(const Frame& frame) {
  const std::string text = frame.text.substr(0, kLongestFrameText);
  const Head head = {static_cast<uint32_t>(frame.kind),
                     static_cast<uint32_t>(text.size()), frame.number};
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + text;
}

std::optional<Frame> TakeFrame(std::string* bytes) {
  if (bytes->size() < sizeof(Head)) return {};
  const Head head = HeadOf(*bytes);
  if (bytes->size() < sizeof(Head) + head.size) return {};
  Frame frame = {static_cast<Frame::Kind>(head.kind), head.number,
                 bytes->substr(sizeof(Head), head.size)};
  bytes->erase(0, sizeof(Head) + head.size);
  return frame;
}

bool SendFrame(const Frame& frame, Socket& socket, Deadline deadline) {
  const std::string bytes = FrameBytes(frame);
  return socket.Send(std::as_bytes(std::span(bytes)), deadline);
}

std::optional<Frame> ReceiveFrame(Socket& socket, Deadline deadline) {
  std::string bytes(sizeof(Head), '\0');
  if (!socket.Receive(std::as_writable_bytes(std::span(bytes)), deadline)) {
    return {};
  }
  bytes.resize(sizeof(Head) + HeadOf(bytes).size);
  if (!socket.Receive(
          std::as_writable_bytes(std::span(bytes)).subspan(sizeof(Head)),
          deadline)) {
    return {};
  }
  return TakeFrame(&bytes);
}

}  // namespace softmoe::optimized
