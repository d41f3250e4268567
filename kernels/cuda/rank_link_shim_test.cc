// SPDX-License-Identifier: Apache-2.0
//
// The link of ranks over simulated devices and the simulated NCCL, which
// refuses what would hang or be undefined: what arrives, and how all ranks end
// when one fails.
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/rank_link.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/device/include/cuda_runtime_api.h"
#include "kernels/simt/shim/simulator.h"
#include "kernels/simt/shim/variant.h"

namespace softmoe::kernels {
namespace {

using namespace isa_shim;

// Values of ncclResult_t.
constexpr int kSystemError = 2, kRemoteError = 6;

// One rank's part of the work.
struct Rank {
  int rank, ranks;
  CUstream_st* stream;
  RankLink& link;
};
using Body = void (*)(Rank&);

struct RankThread {
  int rank, ranks;
  LinkId id;
  Body body;
  std::atomic<int>* failed;  // how many ranks failed
  char text[500];            // what the rank threw
  pthread_t thread;
};

// How often rank 0 was asked to go on waiting.
std::atomic<int> waits{0};

std::chrono::milliseconds patience_at_end = kPatienceAtEnd;
std::atomic<int> links_ended{0};

int wrong = 0;

void Expect(bool holds, const char* what) {
  if (holds) return;
  printf("wrong: %s\n", what);
  ++wrong;
}

// Frees a thread's stream at the end of its part. Main looks for what is left
// by counting calls, so none may have been refused: a stream on which work is
// queued is not destroyed.
void FreeAtEnd(CUstream_st* stream) {
  WaitForStream(stream);
  FreeStream(stream);
  Expect(cudaGetLastError() == cudaSuccess, "a call was refused");
}

void Run(RankThread& own) {
  UseDevice(own.rank);
  CUstream_st* const stream = MakeStream();
  try {
    {
      const auto link = JoinLink(
          own.id, own.rank, own.ranks, stream,
          [&own] {
            if (own.rank == 0) ++waits;
            if (own.failed->load() > 0) {
              throw std::runtime_error("another failed");
            }
          },
          patience_at_end);
      Rank rank{own.rank, own.ranks, stream, *link};
      own.body(rank);
    }
    ++links_ended;
  } catch (const std::exception& error) {
    snprintf(own.text, sizeof(own.text), "%s", error.what());
    own.failed->fetch_add(1);
  }
  FreeAtEnd(stream);
}

// Returns what rank `r` threw, in place r; empty if nothing.
std::vector<std::string> OnRanks(int ranks, Body body) {
  simt::SetDeviceLimits({.devices = ranks});
  std::atomic<int> failed{0};
  std::vector<RankThread> threads(static_cast<size_t>(ranks));
  const LinkId id = MakeLinkId();
  for (int r = 0; r < ranks; ++r) {
    threads[r] = {r, ranks, id, body, &failed, "", {}};
    pthread_create(
        &threads[r].thread, nullptr,
        [](void* own) -> void* {
          Run(*static_cast<RankThread*>(own));
          return nullptr;
        },
        &threads[r]);
  }
  std::vector<std::string> texts;
  for (RankThread& thread : threads) {
    pthread_join(thread.thread, nullptr);
    texts.emplace_back(thread.text);
  }
  return texts;
}

void ExpectSays(const std::string& text, const char* phrase) {
  if (strstr(text.c_str(), phrase) != nullptr) return;
  printf("expected: %s\ngot: %s\n", phrase, text.c_str());
  ++wrong;
}

// Floats of the device in use, from the host and back.
class Floats {
 public:
  Floats(Rank& rank, int64_t size, float first)
      : rank_(rank), host_(static_cast<size_t>(size)) {
    for (int64_t i = 0; i < size; ++i) {
      host_[i] = first + static_cast<float>(i);
    }
    data_ = static_cast<float*>(AllocateOnDevice(host_.size() * 4));
    CopyAcross(data_, host_.data(), host_.size() * 4, rank.stream);
  }
  ~Floats() { FreeOnDevice(data_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  float* data() const { return data_; }
  LinkPart part(int64_t begin, int64_t size) const {
    return {data_ + begin, size * static_cast<int64_t>(sizeof(float))};
  }
  const std::vector<float>& Read() {
    CopyAcross(host_.data(), data_, host_.size() * 4, rank_.stream);
    return host_;
  }

 private:
  Rank& rank_;
  std::vector<float> host_;
  float* data_;
};

// Sizes of the shards of three ranks; the second has none.
constexpr int64_t kSizes[] = {5, 0, 300};
constexpr int64_t kBegins[] = {0, 5, 5};
constexpr int64_t kAll = 305;

// Each rank gets its shard from all, and then all shards from all.
void ExchangeAndGather(Rank& r) {
  Floats all(r, kAll, static_cast<float>(1000 * r.rank));
  const int64_t own = kSizes[r.rank];
  Floats received(r, r.ranks * own, -1);
  Floats gathered(r, kAll, static_cast<float>(5000 * r.rank));
  for (int round = 0; round < 2; ++round) {
    std::vector<LinkPart> sends, receives, parts;
    for (int peer = 0; peer < r.ranks; ++peer) {
      sends.push_back(all.part(kBegins[peer], kSizes[peer]));
      receives.push_back(received.part(peer * own, own));
      parts.push_back(gathered.part(kBegins[peer], kSizes[peer]));
    }
    r.link.Follow();
    r.link.Exchange(sends, receives);
    r.link.Gather(parts);
    r.link.Join();
    r.link.Finish();
  }
  const std::vector<float> rows = received.Read();
  for (int peer = 0; peer < r.ranks; ++peer) {
    for (int64_t i = 0; i < own; ++i) {
      const auto place = static_cast<float>(kBegins[r.rank] + i);
      Expect(rows[peer * own + i] == static_cast<float>(1000 * peer) + place,
             "a row that was received");
    }
  }
  const std::vector<float> whole = gathered.Read();
  for (int peer = 0; peer < r.ranks; ++peer) {
    for (int64_t i = kBegins[peer]; i < kBegins[peer] + kSizes[peer]; ++i) {
      Expect(whole[i] == static_cast<float>(5000 * peer + i),
             "a shard that was gathered");
    }
  }
}

void Exchange(Rank& r) {
  Floats all(r, 8, 1), received(r, 8, 2);
  std::vector<LinkPart> sends, receives;
  for (int peer = 0; peer < r.ranks; ++peer) {
    sends.push_back(all.part(4 * peer, 4));
    receives.push_back(received.part(4 * peer, 4));
  }
  r.link.Follow();
  r.link.Exchange(sends, receives);
  r.link.Join();
  r.link.Finish();
}

// Sends what the stream beside has yet to write, which then reads what came:
// several pieces, which the link takes to and fro.
void ExchangeInOrder(Rank& r) {
  const int64_t own = 64;
  Floats written(r, r.ranks * own, static_cast<float>(1000 * r.rank));
  Floats sent(r, r.ranks * own, -1), received(r, r.ranks * own, -2);
  Floats read(r, 2 * r.ranks * own, -3);
  const size_t bytes = static_cast<size_t>(r.ranks * own) * sizeof(float);
  for (int round = 0; round < 2; ++round) {
    CopyOnDevice(sent.data(), written.data(), bytes, r.stream);
    std::vector<LinkPart> sends, receives;
    for (int peer = 0; peer < r.ranks; ++peer) {
      sends.push_back(sent.part(peer * own, own));
      receives.push_back(received.part(peer * own, own));
    }
    r.link.Follow();
    r.link.Exchange(sends, receives);
    r.link.Join();
    CopyOnDevice(read.data() + round * r.ranks * own, received.data(), bytes,
                 r.stream);
    ClearOnDevice(sent.data(), bytes, r.stream);
  }
  r.link.Finish();
  const std::vector<float> all = read.Read();
  for (int64_t i = 0; i < 2 * r.ranks * own; ++i) {
    const int64_t peer = i / own % r.ranks;
    Expect(all[i] == static_cast<float>(1000 * peer + r.rank * own + i % own),
           "what was read after an exchange");
  }
}

void CheckResults() {
  for (const auto schedule :
       {simt::Schedule::kAscending, simt::Schedule::kDescending,
        simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 3);
    for (const int ranks : {1, 2, 3}) {
      for (const Body body : {ExchangeAndGather, ExchangeInOrder}) {
        for (const std::string& text : OnRanks(ranks, body)) {
          Expect(text.empty(), text.c_str());
        }
      }
    }
  }
}

// A rank fails elsewhere: the other one, which waits for it, ends as well.
void CheckARankThatFails() {
  const auto texts = OnRanks(2, [](Rank& r) {
    if (r.rank == 1) throw std::runtime_error("no more disk");
    Exchange(r);
  });
  ExpectSays(texts[0], "another failed");
  ExpectSays(texts[1], "no more disk");
}

// Sends to rank 1, which never receives it, from memory that outlives the link.
void* StartToSendToOne(Rank& r) {
  void* const sent = AllocateOnDevice(4);
  ClearOnDevice(sent, 4, r.stream);
  r.link.Follow();
  r.link.Exchange({{{}, {sent, 4}}}, {{{}, {}}});
  return sent;
}

// Throws if that takes too long.
template <typename Condition>
void WaitUntil(const Condition& condition) {
  const auto start = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(15)) {
      throw std::runtime_error("rank 0 waits for ever");
    }
    sched_yield();
  }
}

// A link that ends waits for the other ranks like any wait: it hears of one
// that fails.
void CheckALinkThatEndsWhileItWaits() {
  static std::atomic<int> waits_before{-1};
  static void* sent = nullptr;
  const auto texts = OnRanks(2, [](Rank& r) {
    if (r.rank == 0) {
      sent = StartToSendToOne(r);
      waits_before = waits.load();
      return;
    }
    WaitUntil([] { return waits_before >= 0 && waits > waits_before; });
    throw std::runtime_error("no more disk");
  });
  ExpectSays(texts[1], "no more disk");
  UseDevice(0);
  FreeOnDevice(sent);
}

// But it does not wait for ever for one that says nothing. (The simulated
// device itself would fail only after 20 seconds.)
void CheckALinkThatEndsWithoutTheOther() {
  static void* sent = nullptr;
  links_ended = 0;
  patience_at_end = std::chrono::milliseconds(300);
  const auto texts = OnRanks(2, [](Rank& r) {
    if (r.rank == 0) {
      sent = StartToSendToOne(r);
      return;
    }
    WaitUntil([] { return links_ended > 0; });
  });
  patience_at_end = kPatienceAtEnd;
  Expect(texts[0].empty(), texts[0].c_str());
  Expect(texts[1].empty(), texts[1].c_str());
  UseDevice(0);
  FreeOnDevice(sent);
}

// It does not matter which rank makes the call.
void CheckACallThatFails(const char* call, int error) {
  simt::FailCall(call, 1, error);
  const auto texts = OnRanks(2, Exchange);
  const int first = strstr(texts[0].c_str(), "as a test ordered") ? 0 : 1;
  ExpectSays(texts[first], "NCCL, ");
  ExpectSays(texts[first], "as a test ordered");
  ExpectSays(texts[first], "NCCL_DEBUG=INFO");
  ExpectSays(texts[1 - first], "another failed");
}

// NCCL, or the device, may have failed because another rank did: the link calls
// what hears of that before it says what it knows itself.
void CheckThatOthersAreHeardFirst() {
  simt::SetDeviceLimits({.devices = 1});
  UseDevice(0);
  CUstream_st* const stream = MakeStream();
  for (const char* call : {"ncclCommGetAsyncError", "cudaEventQuery"}) {
    simt::FailCall(call, 1, kRemoteError);
    std::string text;
    try {
      const auto link = JoinLink(MakeLinkId(), 0, 1, stream, [] {
        (void)cudaGetLastError();  // as was ordered
        throw std::runtime_error("another failed");
      });
      link->Finish();
    } catch (const std::exception& error) {
      text = error.what();
    }
    ExpectSays(text, "another failed");
  }
  FreeAtEnd(stream);
}

// After an error every operation says that the link is gone.
void CheckALinkThatIsGone() {
  const auto texts = OnRanks(1, [](Rank& r) {
    simt::FailCall("ncclGroupEnd", 1, kSystemError);
    try {
      Exchange(r);
    } catch (const std::exception& error) {
      ExpectSays(error.what(), "an exchange");
    }
    Exchange(r);
  });
  ExpectSays(texts[0], "failed before");
}

void CheckALibraryThatDoesNotAnswer() {
  const auto expect = [](const char* call, auto* ask, const char* phrase) {
    simt::FailCall(call, 1, kSystemError);
    std::string text;
    try {
      ask();
    } catch (const std::exception& error) {
      text = error.what();
    }
    ExpectSays(text, phrase);
  };
  expect("ncclGetVersion", LinkLibrary, "NCCL, its version: ");
  expect("ncclGetUniqueId", MakeLinkId, "NCCL, an id: ");
  Expect(LinkLibrary() == "NCCL 2.28.9", "the version of NCCL");
}

void CheckTwoRanksOnADevice() {
  simt::SetDeviceLimits({.devices = 1});
  UseDevice(0);
  CUstream_st* const stream = MakeStream();
  const LinkId id = MakeLinkId();
  std::string text;
  try {
    const auto first = JoinLink(id, 0, 2, stream, [&] {
      const auto second = JoinLink(id, 1, 2, stream, [] {});
    });
  } catch (const std::exception& error) {
    text = error.what();
  }
  ExpectSays(text, "Duplicate GPU detected");
  FreeAtEnd(stream);
}

int Main() {
  CheckResults();
  CheckARankThatFails();
  CheckALinkThatEndsWhileItWaits();
  CheckALinkThatEndsWithoutTheOther();
  for (const char* call : {"ncclCommInitRankConfig", "ncclGroupStart",
                           "ncclSend", "ncclRecv", "ncclGroupEnd"}) {
    CheckACallThatFails(call, kSystemError);
  }
  CheckACallThatFails("ncclCommGetAsyncError", kRemoteError);
  CheckThatOthersAreHeardFirst();
  CheckALinkThatIsGone();
  CheckALibraryThatDoesNotAnswer();
  CheckTwoRanksOnADevice();
  Expect(simt::LiveNcclCommunicators() == 0, "communicators are left");
  Expect(simt::LiveAllocations() == 0, "memory is left");
  Expect(simt::CallsOf("cudaStreamCreateWithFlags") ==
             simt::CallsOf("cudaStreamDestroy"),
         "streams are left");
  Expect(simt::CallsOf("cudaEventCreateWithFlags") ==
             simt::CallsOf("cudaEventDestroy"),
         "events are left");
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace softmoe::kernels

int main() { return softmoe::simt::ExitStatus(softmoe::kernels::Main); }
