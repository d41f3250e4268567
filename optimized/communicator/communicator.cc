// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/communicator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string_view>

#include "core/failure.h"

namespace softmoe::optimized {
namespace {

std::string Rank(size_t rank) { return "rank " + std::to_string(rank); }

// "0.5 s"
std::string Seconds(double seconds) {
  std::ostringstream text;
  text << seconds << " s";
  return text.str();
}

std::string To(int root) {
  return root < 0 ? "all ranks" : Rank(static_cast<size_t>(root));
}

// "16, 12 bytes"
template <typename Parts>
std::string Sizes(const Parts& parts) {
  std::string text;
  for (const auto& part : parts) {
    if (&part != parts.data()) text += ", ";
    text += std::to_string(part.size());
  }
  return text + " bytes";
}

// Removes the part of `text` before `end`, and `end`; returns that part.
std::string_view Take(std::string_view& text, char end) {
  const size_t length = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return part;
}

// Throws for the first line, if any, in which rank `other` differs from rank 0.
void CompareAgreements(std::string_view first, std::string_view second,
                       size_t other) {
  while (!first.empty() && !second.empty()) {
    const std::string what(Take(first, '\t'));
    const std::string here(Take(first, '\t'));
    const std::string remedy(Take(first, '\n'));
    if (Take(second, '\t') != what) return;  // a different call
    const std::string there(Take(second, '\t'));
    Take(second, '\n');
    if (here == there && here != "unknown") continue;
    throw ConfigError(Rank(0) + " has " + what + " " + here + ", " +
                      Rank(other) + " has " + there +
                      (here == there ? ", which proves nothing" : "") + "; " +
                      remedy);
  }
}

}  // namespace

Communicator::Communicator(int rank, int size, WaitOptions waits)
    : rank_(rank), size_(size), waits_(std::move(waits)) {
  SOFTMOE_CHECK(0 <= rank && rank < size) << "rank " << rank << " of " << size;
}

template <typename Body>
void Communicator::Guarded(Body&& body) {
  if (error_) std::rethrow_exception(error_);
  try {
    body();
  } catch (const Error&) {
    error_ = std::current_exception();
    throw;
  } catch (...) {
    error_ = std::current_exception();
    GiveUp();
    throw;
  }
}

std::string Communicator::Words(const Call& call) {
  if (call.kind != Call::Kind::kAgreement) return call.text;
  std::string words = "compares";
  for (std::string_view text = call.text; !text.empty(); Take(text, '\n')) {
    words += " " + std::string(Take(text, '\t')) + ",";
  }
  words.pop_back();
  return words;
}

void Communicator::Meet(const Call& mine) {
  call_ = Words(mine);
  Guarded([&] {
    const std::vector<Call> calls = ShareCalls(mine);
    for (size_t r = 0; r < calls.size(); ++r) {
      if (calls[r].kind == Call::Kind::kFailure) {
        throw RankError(static_cast<int>(r), calls[r].code, calls[r].text);
      }
    }
    for (size_t r = 1; r < calls.size(); ++r) {
      if (calls[0].kind == Call::Kind::kAgreement &&
          calls[r].kind == Call::Kind::kAgreement) {
        CompareAgreements(calls[0].text, calls[r].text, r);
      }
      SOFTMOE_CHECK(calls[r] == calls[0])
          << Rank(0) << " " << Words(calls[0]) << ", " << Rank(r) << " "
          << Words(calls[r])
          << "; all ranks must do the same things in the same order";
    }
  });
}

void Communicator::MoveCounted(std::span<const Outgoing> sends,
                               std::span<const Incoming> receives) {
  Guarded([&] { Move(sends, receives); });
  for (const Outgoing& bytes : sends) {
    sent_bytes_ += static_cast<int64_t>(bytes.size());
  }
}

void Communicator::Fail() noexcept {
  if (error_) return;  // the others know, or wait for nobody
  try {
    const Error failure = CurrentFailure();
    call_ = "reports its failure";
    error_ = std::current_exception();
    ShareCalls({.kind = Call::Kind::kFailure,
                .code = failure.code(),
                .text = failure.what()});
  } catch (...) {
    // Whoever called Run has the first exception, which says more.
    error_ = std::current_exception();
    GiveUp();  // the others may not have heard of it
  }
}

void Communicator::Run(const std::function<void()>& body) {
  try {
    body();
    Meet({.text = "has done its work"});
  } catch (...) {
    Fail();
    throw;
  }
}

void Communicator::Barrier() { Meet({.text = "waits at a barrier"}); }

void Communicator::WaitElsewhere(const std::string& what) {
  call_ = what;
  StartWaiting();
}

void Communicator::CheckOthers() {
  if (error_) std::rethrow_exception(error_);
  if (AnotherHasFailed()) Meet({.text = "learns of another rank's failure"});
  Guarded([&] { KeepWaiting("another rank"); });
}

void Communicator::StartWaiting() {
  patience_ = {};
  last_look_ = std::chrono::steady_clock::now();
  times_said_ = 0;
}

void Communicator::KeepWaiting(const std::string& whom) {
  const auto now = std::chrono::steady_clock::now();
  const double waited =
      patience_.Pass(std::chrono::duration<double>(now - last_look_).count());
  last_look_ = now;
  if (phase_.limited && waits_.silence_limit > 0 &&
      waited >= waits_.silence_limit) {
    GiveUp();
    throw EnvironmentError(
        phase_.name + ": " + call_ + ": nothing from " + whom + " within " +
        Seconds(waits_.silence_limit) +
        "; look at its output and its machine, then start all ranks again: "
        "they resume from the last checkpoint. If steps take longer than this, "
        "raise --silence-limit");
  }
  const auto times = static_cast<int64_t>(waited / waits_.words_every);
  if (times <= times_said_) return;
  times_said_ = times;
  waits_.say(phase_.name + ": " + call_ + ": waits for " + whom + ", " +
             Seconds(std::round(waited)) + " so far");
}

void Communicator::Agree(std::span<const Agreement> agreements) {
  std::string text;
  for (const Agreement& agreement : agreements) {
    text +=
        agreement.what + "\t" + agreement.hash + "\t" + agreement.remedy + "\n";
  }
  Meet({.kind = Call::Kind::kAgreement, .text = text});
}

void Communicator::BroadcastBytes(Incoming data, int root) {
  SOFTMOE_CHECK(0 <= root && root < size_) << "from rank " << root;
  // Allocates before ranks meet, while a failure here can still be reported.
  std::vector<Outgoing> sends(static_cast<size_t>(size_));
  std::vector<Incoming> receives(static_cast<size_t>(size_));
  if (rank_ == root) {
    std::fill(sends.begin(), sends.end(), data);
    sends[static_cast<size_t>(rank_)] = {};
  } else {
    receives[static_cast<size_t>(root)] = data;
  }
  Meet({.text = "broadcasts " + std::to_string(data.size()) + " bytes from " +
                To(root)});
  MoveCounted(sends, receives);
}

void Communicator::CheckShards(const Shards& shards, size_t bytes) const {
  SOFTMOE_CHECK(shards.size() == static_cast<size_t>(size_) &&
                shards.back().end <= static_cast<int64_t>(bytes))
      << shards.size() << " shards for " << size_ << " ranks and " << bytes
      << " bytes";
}

void Communicator::GatherBytes(const Shards& shards, Incoming data, int root) {
  SOFTMOE_CHECK(root == kAllRanks || (0 <= root && root < size_))
      << "to rank " << root;
  CheckShards(shards, data.size());
  const auto shard = [&](int rank) {
    return PartOf(data, shards[static_cast<size_t>(rank)]);
  };
  std::vector<Outgoing> sends(static_cast<size_t>(size_));
  std::vector<Incoming> receives(static_cast<size_t>(size_));
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    if (root == kAllRanks || root == r) {
      sends[static_cast<size_t>(r)] = shard(rank_);
    }
    if (root == kAllRanks || root == rank_) {
      receives[static_cast<size_t>(r)] = shard(r);
    }
  }
  Meet({.text = "gathers shards of " + Sizes(shards) + " to " + To(root)});
  MoveCounted(sends, receives);
}

void Communicator::ExchangeBytes(std::vector<Outgoing> sends,
                                 std::vector<Incoming> receives) {
  const auto self = static_cast<size_t>(rank_);
  const auto ranks = static_cast<size_t>(size_);
  SOFTMOE_CHECK(sends.size() == ranks && receives.size() == ranks)
      << sends.size() << " parts and " << receives.size() << " rows for "
      << ranks << " ranks";
  const size_t row = sends[self].size();
  receives[self] = {};
  for (size_t r = 0; r < ranks; ++r) {
    SOFTMOE_CHECK(r == self || receives[r].size() == row)
        << receives[r].size() << " bytes for a row of " << row;
  }
  Meet({.text = "exchanges parts of " + Sizes(sends)});
  sends[self] = {};
  MoveCounted(sends, receives);
}

}  // namespace softmoe::optimized
