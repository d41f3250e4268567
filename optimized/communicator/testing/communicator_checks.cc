// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/testing/communicator_checks.h"

#include <new>
#include <random>
#include <span>
#include <stdexcept>

namespace softmoe::optimized {
namespace {

// The source of choices that all ranks make alike.
using Chance = std::mt19937;

int64_t Below(int64_t end, Chance& chance) {
  return static_cast<int64_t>(chance() % static_cast<uint64_t>(end));
}

void Expect(bool holds, const Communicator& communicator,
            const std::string& what) {
  if (holds) return;
  throw std::runtime_error("rank " + std::to_string(communicator.rank()) +
                           " of " + std::to_string(communicator.size()) + ": " +
                           what);
}

// What rank `rank` holds at `i` before operation `number`.
template <typename T>
T Value(int64_t number, int rank, int64_t i) {
  return static_cast<T>(1 + i + 1000 * (rank + 100 * number));
}

template <typename T>
std::vector<T> Values(int64_t number, int rank, int64_t size) {
  std::vector<T> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(Value<T>(number, rank, i));
  }
  return values;
}

template <typename T>
void CheckBroadcast(Communicator& communicator, int64_t number, int64_t size,
                    int root) {
  auto data = Values<T>(number, communicator.rank(), size);
  communicator.Broadcast<T>(data, root);
  Expect(data == Values<T>(number, root, size), communicator, "Broadcast");
}

template <typename T>
void CheckGather(Communicator& communicator, int64_t number,
                 const Shards& shards, int root) {
  const int rank = communicator.rank();
  const int64_t size = shards.back().end;
  auto data = Values<T>(number, rank, size);
  communicator.Gather<T>(shards, data, root);
  auto expected = Values<T>(number, rank, size);
  if (root == Communicator::kAllRanks || root == rank) {
    for (size_t r = 0; r < shards.size(); ++r) {
      for (int64_t i = shards[r].begin; i < shards[r].end; ++i) {
        expected[static_cast<size_t>(i)] =
            Value<T>(number, static_cast<int>(r), i);
      }
    }
  }
  Expect(data == expected, communicator, "Gather");
}

template <typename T>
void CheckExchange(Communicator& communicator, int64_t number,
                   const Shards& shards) {
  const int rank = communicator.rank();
  const Shard mine = shards[static_cast<size_t>(rank)];
  const auto data = Values<T>(number, rank, shards.back().end);
  std::vector<T> received(
      static_cast<size_t>(mine.size() * communicator.size()), T(77));
  const int64_t sent = communicator.sent_bytes();
  communicator.Exchange<T>(
      PartsOf(std::span(data), shards),
      PartsOf(std::span(received), Rows(mine.size(), communicator.size())));
  std::vector<T> expected;
  for (int r = 0; r < communicator.size(); ++r) {
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      // This rank's own row is left alone.
      expected.push_back(r == rank ? T(77) : Value<T>(number, r, i));
    }
  }
  Expect(received == expected, communicator, "Exchange");
  Expect(
      communicator.sent_bytes() - sent ==
          static_cast<int64_t>(sizeof(T)) * (shards.back().end - mine.size()),
      communicator, "the bytes of Exchange");
}

template <typename T>
void CheckOne(Communicator& communicator, int64_t number, Chance& chance) {
  const int64_t size = Below(300, chance);
  const Shards shards =
      ShareOut(size, 1 + Below(100, chance), communicator.size());
  const int root = static_cast<int>(Below(communicator.size(), chance));
  const bool to_all = Below(2, chance) == 0;
  switch (Below(3, chance)) {
    case 0:
      CheckBroadcast<T>(communicator, number, size, root);
      break;
    case 1:
      CheckGather<T>(communicator, number, shards,
                     to_all ? Communicator::kAllRanks : root);
      break;
    default:
      CheckExchange<T>(communicator, number, shards);
  }
}

}  // namespace

void CheckOperations(Communicator& communicator, uint32_t seed) {
  Chance chance(seed);
  for (int64_t number = 0; number < 30; ++number) {
    communicator.CheckOthers();  // some are in the next operation by now
    switch (Below(4, chance)) {
      case 0:
        communicator.Barrier();
        break;
      case 1:
        communicator.Agree({{{"seed", std::to_string(seed)}}});
        break;
      case 2:
        CheckOne<int32_t>(communicator, number, chance);
        break;
      default:
        CheckOne<double>(communicator, number, chance);
    }
  }
}

std::vector<Mistake> Mistakes(int ranks) {
  const int odd = ranks - 1;
  const std::string name = "rank " + std::to_string(odd);
  // What rank `odd` does, and what the others do.
  using Body = std::function<void(Communicator&)>;
  const auto apart = [odd](const Body& of_odd, const Body& of_others) {
    return [=](Communicator& communicator) {
      (communicator.rank() == odd ? of_odd : of_others)(communicator);
    };
  };
  const Body barrier = [](Communicator& c) { c.Barrier(); };
  const auto broadcast = [](int64_t size, int root) {
    return [=](Communicator& c) {
      std::vector<float> data(static_cast<size_t>(size));
      c.Broadcast<float>(data, root);
    };
  };
  const auto exchange = [](int64_t size, int64_t block) {
    return [=](Communicator& c) {
      const Shards shards = ShareOut(size, block, c.size());
      const int64_t own = shards[static_cast<size_t>(c.rank())].size();
      const std::vector<float> data(static_cast<size_t>(size));
      std::vector<float> received(static_cast<size_t>(own * c.size()));
      c.Exchange<float>(PartsOf(std::span(data), shards),
                        PartsOf(std::span(received), Rows(own, c.size())));
    };
  };
  const auto agree = [](const std::string& tokens) {
    return [=](Communicator& c) {
      c.Agree({{{"configuration", "c0"}, {"tokens", tokens}}});
    };
  };
  const Body gather = [](Communicator& c) {
    std::vector<float> data(8);
    c.Gather<float>(ShareOut(8, 1, c.size()), data);
  };
  const Body gather_to_first = [](Communicator& c) {
    std::vector<float> data(8);
    c.Gather<float>(ShareOut(8, 1, c.size()), data, 0);
  };
  const Body end = [](Communicator&) {};

  std::vector<Mistake> mistakes = {
      {"another operation", apart(barrier, broadcast(3, 0)),
       ExitCode::kSelfCheck,
       "rank 0 broadcasts 12 bytes from rank 0, " + name +
           " waits at a barrier"},
      {"another size", apart(broadcast(4, 0), broadcast(3, 0)),
       ExitCode::kSelfCheck,
       "rank 0 broadcasts 12 bytes from rank 0, " + name +
           " broadcasts 16 bytes from rank 0"},
      {"another root", apart(broadcast(3, 1), broadcast(3, 0)),
       ExitCode::kSelfCheck, name + " broadcasts 12 bytes from rank 1"},
      {"other shards", apart(exchange(8, 1), exchange(8, 8)),
       ExitCode::kSelfCheck, name + " exchanges parts of "},
      {"to all ranks or to one", apart(gather_to_first, gather),
       ExitCode::kSelfCheck, " bytes to rank 0;"},
      {"an end too early", apart(end, barrier), ExitCode::kSelfCheck,
       "rank 0 waits at a barrier, " + name + " has done its work"},
      {"an operation too many", apart(barrier, end), ExitCode::kSelfCheck,
       "rank 0 has done its work, " + name + " waits at a barrier"},
      {"another comparison", apart(barrier, agree("t0")), ExitCode::kSelfCheck,
       "rank 0 compares configuration, tokens, " + name + " waits"},
      {"no agreement", apart(agree("t1"), agree("t0")), ExitCode::kUsage,
       "rank 0 has tokens t0, " + name + " has t1"},
      {"unknown equals nothing", agree("unknown"), ExitCode::kUsage,
       "rank 0 has tokens unknown, rank 1 has unknown"},
  };
  for (const ExitCode code : {ExitCode::kEnvironment, ExitCode::kStopped}) {
    mistakes.push_back(
        {"a failure with exit code " + std::to_string(static_cast<int>(code)),
         apart(
             [code](Communicator& c) {
               c.Barrier();
               throw Error(code, "the disk is full");
             },
             [](Communicator& c) {
               c.Barrier();
               c.Barrier();
             }),
         code, "the disk is full"});
  }
  mistakes.push_back({"a failure while others wait elsewhere",
                      apart(
                          [](Communicator& c) {
                            c.Barrier();
                            throw EnvironmentError("the disk is full");
                          },
                          [](Communicator& c) {
                            c.Barrier();
                            for (;;) c.CheckOthers();
                          }),
                      ExitCode::kEnvironment, "the disk is full"});
  mistakes.push_back({"an exception of the library",
                      apart([](Communicator&) { throw std::bad_alloc(); }, end),
                      ExitCode::kEnvironment, "out of memory"});
  return mistakes;
}

std::string CheckMistake(Communicator& communicator, const Mistake& mistake) {
  ExitCode code = ExitCode::kDone;
  const auto error_of = [&](const std::function<void()>& work) -> std::string {
    try {
      work();
    } catch (const Error& error) {
      code = error.code();
      return error.what();
    } catch (const std::bad_alloc&) {
      code = ExitCode::kEnvironment;
      return "out of memory";
    }
    return "nothing";
  };
  const std::string text =
      error_of([&] { communicator.Run([&] { mistake.body(communicator); }); });
  const bool right =
      text.find(mistake.text) != std::string::npos && code == mistake.code &&
      error_of([&] { communicator.Barrier(); }) == text && code == mistake.code;
  return right ? ""
               : mistake.name + ", rank " +
                     std::to_string(communicator.rank()) + ": " + text +
                     ", exit code " + std::to_string(static_cast<int>(code));
}

}  // namespace softmoe::optimized
