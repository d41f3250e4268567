// SPDX-License-Identifier: Apache-2.0
//
// The functions of include/nccl.h. Each is a HostCall. Operations are matched
// when they are called, since both sides count them: the n-th send of one rank
// to another matches that rank's n-th receive from it, and the n-th broadcasts
// of all ranks are one operation.
#include "kernels/simt/device/include/nccl.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/simt/device/device.h"
#include "kernels/simt/device/guarded_memory.h"
#include "kernels/simt/device/host_call.h"
#include "kernels/simt/device/raw_bytes.h"
#include "kernels/simt/device/taken_memory.h"
#include "kernels/simt/device/work_queue.h"
#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::simt {
namespace {

// Bytes, by sender and receiver.
constexpr int kMostRanks = 16;
int64_t carried[kMostRanks][kMostRanks] = {};

using Library = LibraryRefusals<ncclResult_t, ncclUnhandledCudaError>;

#define SOFTMOE_RETURN_IF_NOT_SUCCESS(...)                            \
  if (const ncclResult_t result = __VA_ARGS__; result != ncclSuccess) \
  return result

// ---- What ranks share

// What both sides of a transfer, or all ranks of a broadcast, must agree on.
struct Amount {
  size_t count;
  ncclDataType_t type;
  int root;  // of a broadcast
  int rank;  // the first rank to say it

  size_t bytes() const { return count * (type == ncclFloat32 ? 4 : 1); }
  bool SameAs(const Amount& other) const {
    return count == other.count && type == other.type && root == other.root;
  }
};

struct Clique {
  ncclUniqueId id;
  std::vector<ncclComm*> members;              // by rank; null: has not joined
  std::vector<std::vector<Amount>> transfers;  // by sender and receiver
  std::vector<Amount> broadcasts;

  int size() const { return static_cast<int>(members.size()); }
  bool IsComplete() const {
    for (const ncclComm* member : members) {
      if (member == nullptr) return false;
    }
    return true;
  }
};

// Never freed, so that an id is recognised.
std::vector<ncclUniqueId>& KnownIds() {
  static std::vector<ncclUniqueId>& ids = *new std::vector<ncclUniqueId>;
  return ids;
}
std::vector<Clique*>& Cliques() {
  static std::vector<Clique*>& cliques = *new std::vector<Clique*>;
  return cliques;
}
std::vector<ncclComm*>& Communicators() {
  static std::vector<ncclComm*>& comms = *new std::vector<ncclComm*>;
  return comms;
}

bool SameId(const ncclUniqueId& a, const ncclUniqueId& b) {
  return HashRaw(a.internal, sizeof(a.internal)) ==
         HashRaw(b.internal, sizeof(b.internal));
}

// ---- Operations

struct Operation {
  enum Kind { kSend, kReceive, kBroadcast };
  Kind kind;
  int peer;    // or root
  int number;  // from 0, among its kind with this peer, or broadcasts
  const char* from;
  char* to;
  size_t bytes;
  bool done = false;
  char tag = 0;  // orders the read of `from` before the writes
};

// "ncclSend number 2 to rank 1".
void Describe(const Operation& op, char* text, size_t size) {
  constexpr const char* kWords[][2] = {
      {"ncclSend", "to"}, {"ncclRecv", "from"}, {"ncclBroadcast", "from"}};
  snprintf(text, size, "%s number %d %s rank %d", kWords[op.kind][0],
           op.number + 1, kWords[op.kind][1], op.peer);
}

class GroupWork;

}  // namespace
}  // namespace softmoe::simt

// Never freed, so that a stale handle is recognised.
struct ncclComm {
  enum class End { kNone, kDestroyed, kAborted };
  softmoe::simt::Clique* clique = nullptr;
  int rank = 0;
  int device = 0;
  End end = End::kNone;
  bool ready = false;             // its creation was reported
  CUstream_st* stream = nullptr;  // of its operations
  // The group that has ended but has not been reported, and how often the
  // caller has asked for it.
  softmoe::simt::GroupWork* ended = nullptr;
  int asked = 0;
  std::vector<softmoe::simt::GroupWork*> queued;  // in stream order
  std::vector<int> sends, receives;               // counts, by peer
  int broadcasts = 0;
};

namespace softmoe::simt {
namespace {

// The operations between ncclGroupStart and ncclGroupEnd, or a single one. Runs
// in steps, in each of which one other rank, or all, take part.
class GroupWork : public Work {
 public:
  explicit GroupWork(ncclComm* comm) : Work("NCCL"), comm_(comm) {}
  ~GroupWork() override { std::erase(comm_->queued, this); }

  void Add(const Operation& op) {
    operations_.push_back(op);
    for (const void* at :
         {static_cast<const void*>(op.from), static_cast<const void*>(op.to)}) {
      if (at != nullptr) AddUse(DeviceMemory().Find(at));
    }
  }

  ncclComm* comm() const { return comm_; }
  const std::vector<Operation>& operations() const { return operations_; }

  bool Done() const override {
    for (const Operation& op : operations_) {
      if (!op.done) return false;
    }
    return true;
  }
  bool CanRun() const override { return Done() || NumReady() > 0; }

  // The schedule decides which of the possible steps comes first.
  const char* Run() override {
    const int ready = NumReady();
    if (ready == 0) return nullptr;  // all is done
    int chosen = 0;
    if (ChosenSchedule() == Schedule::kDescending) chosen = ready - 1;
    if (ChosenSchedule() == Schedule::kRandom) chosen = Draw(ready);
    for (Operation& op : operations_) {
      if (IsReady(op) && chosen-- == 0) {
        RunOne(op);
        break;
      }
    }
    return nullptr;
  }

  CUstream_st* WaitsFor() const override {
    const ncclComm* missing = FirstMissing();
    return missing == nullptr ? nullptr : missing->stream;
  }

  const char* NeverRuns() const override {
    const Operation* op = FirstWaiting();
    if (op == nullptr) return nullptr;
    for (const int rank : PeersOf(*op)) {
      const ncclComm* peer = Member(rank);
      if (peer->end == ncclComm::End::kNone) continue;
      char text[100];
      Describe(*op, text, sizeof(text));
      snprintf(why_, sizeof(why_),
               "rank %d waits forever in %s: rank %d has %s its communicator",
               comm_->rank, text, rank,
               peer->end == ncclComm::End::kAborted ? "aborted" : "destroyed");
      return why_;
    }
    return nullptr;
  }

  void Explain(char* text, size_t size) const override {
    size_t at = 0;
    for (int rank = 0; rank < comm_->clique->size() && at < size; ++rank) {
      char one[200];
      ExplainRank(Member(rank), one, sizeof(one));
      at += static_cast<size_t>(
          snprintf(text + at, size - at, "%s%s", rank > 0 ? "; " : "", one));
    }
  }

 private:
  ncclComm* Member(int rank) const { return comm_->clique->members[rank]; }

  // The other ranks that must come to `op`.
  std::vector<int> PeersOf(const Operation& op) const {
    if (op.kind != Operation::kBroadcast) return {op.peer};
    std::vector<int> peers;
    for (int rank = 0; rank < comm_->clique->size(); ++rank) {
      if (rank != comm_->rank) peers.push_back(rank);
    }
    return peers;
  }

  // Rank `rank`'s part of `op` once that rank has come to it, else null.
  Operation* Counterpart(const Operation& op, int rank) const {
    const ncclComm* peer = Member(rank);
    if (peer->end != ncclComm::End::kNone || peer->queued.empty()) {
      return nullptr;
    }
    GroupWork* group = peer->queued.front();
    if (!TheWorkQueue().IsAtFront(*group)) return nullptr;
    const bool broadcast = op.kind == Operation::kBroadcast;
    const Operation::Kind kind = broadcast ? Operation::kBroadcast
                                 : op.kind == Operation::kSend
                                     ? Operation::kReceive
                                     : Operation::kSend;
    for (Operation& other : group->operations_) {
      if (other.kind == kind && other.number == op.number && !other.done &&
          (broadcast || other.peer == comm_->rank)) {
        return &other;
      }
    }
    return nullptr;
  }

  bool IsReady(const Operation& op) const {
    if (op.done || !TheWorkQueue().IsAtFront(*this)) return false;
    if (op.kind != Operation::kBroadcast) {
      return Counterpart(op, op.peer) != nullptr;
    }
    for (int rank = 0; rank < comm_->clique->size(); ++rank) {
      if (rank != comm_->rank && Counterpart(op, rank) == nullptr) return false;
    }
    return true;
  }
  int NumReady() const {
    int ready = 0;
    for (const Operation& op : operations_) ready += IsReady(op);
    return ready;
  }

  const Operation* FirstWaiting() const {
    for (const Operation& op : operations_) {
      if (!op.done && !IsReady(op)) return &op;
    }
    return nullptr;
  }
  const ncclComm* FirstMissing() const {
    const Operation* op = FirstWaiting();
    if (op == nullptr) return nullptr;
    for (const int rank : PeersOf(*op)) {
      if (Counterpart(*op, rank) == nullptr) return Member(rank);
    }
    return nullptr;
  }

  static int Draw(int limit) {
    static int schedules = -1;
    static Random random(1);
    if (schedules != SchedulesChosen()) {
      schedules = SchedulesChosen();
      random = Random(ChosenSeed() + 1);
    }
    return random.Below(limit);
  }

  void RunOne(Operation& op) {
    if (op.kind == Operation::kBroadcast) {
      Operation& root = op.peer == comm_->rank ? op : *Counterpart(op, op.peer);
      const ncclComm* sender = Member(op.peer);
      Read(sender, root);
      for (int rank = 0; rank < comm_->clique->size(); ++rank) {
        Operation& own = rank == comm_->rank ? op : *Counterpart(op, rank);
        Write(sender, Member(rank), root, own);
      }
      for (int rank = 0; rank < comm_->clique->size(); ++rank) {
        if (rank != comm_->rank) Counterpart(op, rank)->done = true;
      }
      op.done = true;
      return;
    }
    Operation& other = *Counterpart(op, op.peer);
    const bool sends = op.kind == Operation::kSend;
    Operation& send = sends ? op : other;
    Operation& receive = sends ? other : op;
    const ncclComm* peer = Member(op.peer);
    const ncclComm* sender = sends ? comm_ : peer;
    Read(sender, send);
    Write(sender, sends ? peer : comm_, send, receive);
    send.done = receive.done = true;
  }

  static void Read(const ncclComm* sender, Operation& op) {
    const ActAs as(*sender->stream);
    sender->queued.front()->AcquireQueued();
    NoteRead(op.from, op.bytes);
    Release(&op.tag);
  }
  static void Write(const ncclComm* sender, const ncclComm* receiver,
                    Operation& send, const Operation& receive) {
    if (receive.to == send.from) return;  // a broadcast's root, in place
    if (sender != receiver) {
      carried[sender->rank][receiver->rank] +=
          static_cast<int64_t>(receive.bytes);
    }
    const ActAs as(*receiver->stream);
    receiver->queued.front()->AcquireQueued();
    Acquire(&send.tag);
    NoteWrite(receive.to, receive.bytes);
    CopyRaw(receive.to, send.from, receive.bytes);
    CopyInitialization(receive.to, send.from, receive.bytes);
  }

  static void ExplainRank(const ncclComm* member, char* text, size_t size) {
    // The group that the rank is in comes first: a later one whose end it has
    // not asked for yet is not the reason.
    if (member->end != ncclComm::End::kNone) {
      snprintf(text, size, "rank %d no longer has a communicator",
               member->rank);
    } else if (member->queued.empty() && member->ended != nullptr) {
      snprintf(text, size,
               "rank %d has not asked whether its group has ended "
               "(ncclCommGetAsyncError)",
               member->rank);
    } else if (member->queued.empty()) {
      snprintf(text, size, "rank %d has made no further call", member->rank);
    } else {
      const GroupWork& group = *member->queued.front();
      char operation[100] = "";
      for (const Operation& op : group.operations_) {
        if (op.done) continue;
        Describe(op, operation, sizeof(operation));
        break;
      }
      snprintf(text, size, "rank %d %s %s", member->rank,
               TheWorkQueue().IsAtFront(group) ? "is in" : "comes later to",
               operation);
    }
  }

  ncclComm* const comm_;
  std::vector<Operation> operations_;
  mutable char why_[300] = {};
};

// Takes an aborted group's place in its stream. From there on, what the group
// was to receive has no value: it is not known how far the group came.
class SpoilWork : public Work {
 public:
  explicit SpoilWork(const GroupWork& group) : Work("ncclCommAbort") {
    for (const Operation& op : group.operations()) {
      if (op.to == nullptr || op.bytes == 0 || op.to == op.from) continue;
      received_.push_back({op.to, op.bytes});
    }
  }
  const char* Run() override {
    for (const Received& one : received_) {
      // An aborted group does not keep its memory from being freed.
      if (DeviceMemory().FindLive(one.at, one.bytes) == nullptr) continue;
      NoteWrite(one.at, one.bytes);
      DeviceMemory().Spoil(one.at, one.bytes);
    }
    return nullptr;
  }

 private:
  struct Received {
    char* at;
    size_t bytes;
  };
  std::vector<Received> received_;
};

// Spoils what a queued group was to receive: at once if nothing is before it in
// its stream, else when all that has run. Deletes the group.
void Spoil(GroupWork* group) {
  if (TheWorkQueue().IsAtFront(*group)) {
    SpoilWork(*group).Run();
    TheWorkQueue().Remove(group);
  } else {
    TheWorkQueue().Remove(group, new SpoilWork(*group));
  }
}

// The open group of the calling thread.
struct OpenGroup {
  int depth = 0;
  GroupWork* work = nullptr;
};
OpenGroup& TheOpenGroup() {
  static thread_local OpenGroup group;
  return group;
}

// ---- Checks

ncclResult_t CheckComm(const char* call, const ncclComm* comm) {
  for (const ncclComm* known : Communicators()) {
    if (comm == nullptr || known != comm) continue;
    if (comm->end == ncclComm::End::kNone) return ncclSuccess;
  }
  Library::Get().Refuse(
      ncclInvalidArgument,
      "%s of a communicator that was never created or is already destroyed",
      call);
  return ncclInvalidArgument;  // so that clang-tidy sees that this is an error
}

ncclResult_t CheckReady(const char* call, const ncclComm* comm) {
  SOFTMOE_RETURN_IF_NOT_SUCCESS(CheckComm(call, comm));
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): refused by CheckComm
  if (comm->ready && comm->ended == nullptr) return ncclSuccess;
  return SOFTMOE_REFUSE(
      ncclInvalidUsage,
      "%s by rank %d while %s is in progress: ask ncclCommGetAsyncError until "
      "it is not",
      call, comm->rank, comm->ready ? "a group" : "the communicator");
}

ncclResult_t CheckBuffer(const char* call, const ncclComm* comm,
                         const char* side, const void* at, size_t bytes) {
  if (bytes == 0) return ncclSuccess;
  if (!DeviceMemory().Holds(at)) {
    return SOFTMOE_REFUSE(ncclInvalidArgument,
                          "%s: %s, %p, is not an address on a device", call,
                          side, at);
  }
  const Allocation* allocation = DeviceMemory().FindLive(at, bytes);
  if (allocation == nullptr) {
    char where[300];
    DeviceMemory().Describe(static_cast<const char*>(at) + bytes - 1, where,
                            sizeof(where));
    return SOFTMOE_REFUSE(ncclInvalidArgument,
                          "%s: %s, %zu bytes, the last of them %s", call, side,
                          bytes, where);
  }
  if (allocation->device == comm->device) return ncclSuccess;
  return SOFTMOE_REFUSE(ncclInvalidArgument,
                        "%s: %s is memory of device %d, rank %d is on device "
                        "%d",
                        call, side, allocation->device, comm->rank,
                        comm->device);
}

ncclResult_t CheckStream(const char* call, const ncclComm* comm,
                         const CUstream_st* stream) {
  if (!TheWorkQueue().Knows(stream)) {
    return SOFTMOE_REFUSE(ncclInvalidArgument,
                          "%s on the null stream, or on one that was never "
                          "created or is already destroyed",
                          call);
  }
  if (DeviceOf(stream) != comm->device || CurrentDevice() != comm->device) {
    return SOFTMOE_REFUSE(ncclInvalidArgument,
                          "%s on a stream of device %d by a thread that has "
                          "chosen device %d: rank %d is on device %d",
                          call, DeviceOf(stream), CurrentDevice(), comm->rank,
                          comm->device);
  }
  if (comm->stream == nullptr || comm->stream == stream) return ncclSuccess;
  return SOFTMOE_REFUSE(
      ncclInvalidUsage,
      "%s on a different stream from the communicator's last operation", call);
}

// Refuses an overlap with what is written: within the operation, unless it is
// in place, or within the open group.
ncclResult_t CheckOverlap(const char* call, const Operation& op) {
  const auto range = [](const char* at, size_t size) {
    return Range{at, at == nullptr ? 0 : size};
  };
  if (op.from != op.to &&
      range(op.from, op.bytes).Overlaps(range(op.to, op.bytes))) {
    return SOFTMOE_REFUSE(ncclInvalidUsage,
                          "%s: what it sends and what it receives overlap "
                          "without being the same memory",
                          call);
  }
  const GroupWork* group = TheOpenGroup().work;
  if (group == nullptr) return ncclSuccess;
  for (const Operation& other : group->operations()) {
    const Range reads[] = {range(op.from, op.bytes),
                           range(other.from, other.bytes)};
    const Range writes[] = {range(op.to, op.bytes),
                            range(other.to, other.bytes)};
    if (writes[0].Overlaps(writes[1]) || writes[0].Overlaps(reads[1]) ||
        writes[1].Overlaps(reads[0])) {
      return SOFTMOE_REFUSE(ncclInvalidUsage,
                            "%s: its memory overlaps what another operation of "
                            "its group writes, or the other way round",
                            call);
    }
  }
  return ncclSuccess;
}

// Notes what was asked for in operation `number`, or compares it with what
// another rank asked for there.
ncclResult_t Agree(const char* call, std::vector<Amount>& amounts, int number,
                   const Amount& amount) {
  if (static_cast<size_t>(number) == amounts.size()) {
    amounts.push_back(amount);
    return ncclSuccess;
  }
  const Amount& other = amounts[number];
  if (amount.SameAs(other)) return ncclSuccess;
  const auto type = [](const Amount& a) {
    return a.type == ncclFloat32 ? "floats" : "bytes";
  };
  return SOFTMOE_REFUSE(
      ncclInvalidUsage,
      "%s number %d: rank %d says %zu %s of rank %d, rank %d said %zu %s of "
      "rank %d",
      call, number + 1, amount.rank, amount.count, type(amount), amount.root,
      other.rank, other.count, type(other), other.root);
}

// Drops the open group: a group that fails does nothing.
void DropGroup() {
  OpenGroup& group = TheOpenGroup();
  delete group.work;
  group = {};
}

ncclResult_t EndGroup() {
  OpenGroup& group = TheOpenGroup();
  if (group.work == nullptr) return ncclSuccess;
  ncclComm* comm = group.work->comm();
  int alone = 0;  // sends to itself that nothing in the group receives
  for (const Operation& op : group.work->operations()) {
    if (op.kind == Operation::kBroadcast || op.peer != comm->rank) continue;
    alone += op.kind == Operation::kSend ? 1 : -1;
  }
  if (alone != 0) {
    DropGroup();
    return SOFTMOE_REFUSE(ncclInvalidUsage,
                          "rank %d sends to itself without receiving that in "
                          "the same group, or receives without sending",
                          comm->rank);
  }
  comm->ended = group.work;
  comm->asked = 0;
  group.work = nullptr;
  return ncclInProgress;
}

// Adds a send, a receive or a broadcast; `op` lacks its number and its size.
ncclResult_t Ask(const char* call, ncclComm* comm, Operation op, size_t count,
                 ncclDataType_t type, CUstream_st* stream) {
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin(call));
  SOFTMOE_RETURN_IF_NOT_SUCCESS(CheckReady(call, comm));
  SOFTMOE_RETURN_IF_NOT_SUCCESS(CheckStream(call, comm, stream));
  Clique& clique = *comm->clique;
  const bool broadcast = op.kind == Operation::kBroadcast;
  if (op.peer < 0 || op.peer >= clique.size()) {
    return SOFTMOE_REFUSE(
        ncclInvalidArgument,
        "%s by rank %d of %d, with rank %d, which does not exist", call,
        comm->rank, clique.size(), op.peer);
  }
  if (type != ncclFloat32 && type != ncclUint8) {
    return SOFTMOE_REFUSE(ncclInvalidArgument,
                          "%s of type %d: only ncclFloat32 and ncclUint8 are "
                          "simulated",
                          call, static_cast<int>(type));
  }
  // Only the root of a broadcast sends.
  if (broadcast && op.peer != comm->rank) op.from = nullptr;
  Amount amount = {count, type, op.peer, comm->rank};
  op.bytes = amount.bytes();
  if (op.from != nullptr) {
    SOFTMOE_RETURN_IF_NOT_SUCCESS(
        CheckBuffer(call, comm, "what is sent", op.from, op.bytes));
  }
  if (op.to != nullptr) {
    SOFTMOE_RETURN_IF_NOT_SUCCESS(
        CheckBuffer(call, comm, "what is received", op.to, op.bytes));
  }
  if (op.bytes > 0 && op.from == nullptr && op.to == nullptr) {
    return SOFTMOE_REFUSE(ncclInvalidArgument, "%s: the buffer is null", call);
  }
  SOFTMOE_RETURN_IF_NOT_SUCCESS(CheckOverlap(call, op));
  OpenGroup& group = TheOpenGroup();
  if (group.work != nullptr && group.work->comm() != comm) {
    return SOFTMOE_REFUSE(ncclInvalidUsage,
                          "%s: a group with two communicators is not simulated",
                          call);
  }
  if (broadcast) {
    op.number = comm->broadcasts;
    SOFTMOE_RETURN_IF_NOT_SUCCESS(
        Agree(call, clique.broadcasts, op.number, amount));
    ++comm->broadcasts;
  } else {
    const bool sends = op.kind == Operation::kSend;
    const int from = sends ? comm->rank : op.peer;
    const int to = sends ? op.peer : comm->rank;
    amount.root = from;
    int& number = (sends ? comm->sends : comm->receives)[op.peer];
    op.number = number;
    SOFTMOE_RETURN_IF_NOT_SUCCESS(Agree(
        call, clique.transfers[from * clique.size() + to], number, amount));
    ++number;
  }
  comm->stream = stream;
  if (group.work == nullptr) group.work = new GroupWork(comm);
  group.work->Add(op);
  return group.depth == 0 ? EndGroup() : ncclSuccess;
}

}  // namespace

int64_t NcclBytes(int from, int to) {
  const HostCall host_call;
  return carried[from][to];
}

int LiveNcclCommunicators() {
  const HostCall host_call;
  int live = 0;
  for (const ncclComm* comm : Communicators()) {
    live += comm->end == ncclComm::End::kNone;
  }
  return live;
}

}  // namespace softmoe::simt

// NOLINTBEGIN: the library's names

using namespace softmoe::simt;

const char* ncclGetErrorString(ncclResult_t result) {
  const HostCall host_call;
#define SOFTMOE_NAME(name) \
  case name:               \
    return Library::Get().Text(result, #name)
  switch (result) {
    SOFTMOE_NAME(ncclSuccess);
    SOFTMOE_NAME(ncclUnhandledCudaError);
    SOFTMOE_NAME(ncclSystemError);
    SOFTMOE_NAME(ncclInternalError);
    SOFTMOE_NAME(ncclInvalidArgument);
    SOFTMOE_NAME(ncclInvalidUsage);
    SOFTMOE_NAME(ncclRemoteError);
    SOFTMOE_NAME(ncclInProgress);
  }
#undef SOFTMOE_NAME
  return "a result that the simulator does not know";
}

ncclResult_t ncclGetVersion(int* found) {
  const HostCall host_call;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin("ncclGetVersion"));
  *found = NCCL_VERSION_CODE;
  MarkInitialized(found);
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const HostCall host_call;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin("ncclGetUniqueId"));
  std::vector<ncclUniqueId>& known = KnownIds();
  ncclUniqueId made = {};
  snprintf(made.internal, sizeof(made.internal), "simulated clique %zu",
           known.size() + 1);
  known.push_back(made);
  *id = made;
  MarkInitialized(id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  constexpr const char* kCall = "ncclCommInitRankConfig";
  const HostCall host_call;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin(kCall));
  if (config == nullptr || config->blocking != 0) {
    return SOFTMOE_REFUSE(ncclInvalidArgument,
                          "%s: only config.blocking = 0 is simulated: a "
                          "communicator that blocks cannot be aborted",
                          kCall);
  }
  const std::vector<ncclUniqueId>& ids = KnownIds();
  if (std::none_of(ids.begin(), ids.end(),
                   [&](const ncclUniqueId& k) { return SameId(k, id); })) {
    return SOFTMOE_REFUSE(ncclInvalidArgument,
                          "%s with an id that ncclGetUniqueId did not make",
                          kCall);
  }
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return SOFTMOE_REFUSE(ncclInvalidArgument, "%s as rank %d of %d", kCall,
                          rank, ranks);
  }
  Clique* clique = nullptr;
  for (Clique* known : Cliques()) {
    if (SameId(known->id, id)) clique = known;
  }
  if (clique == nullptr) {
    clique = new Clique;
    clique->id = id;
    clique->members.resize(ranks);
    clique->transfers.resize(static_cast<size_t>(ranks) * ranks);
    Cliques().push_back(clique);
  }
  if (clique->size() != ranks || clique->members[rank] != nullptr) {
    return SOFTMOE_REFUSE(
        ncclInvalidUsage, "%s as rank %d of %d: %s", kCall, rank, ranks,
        clique->size() != ranks
            ? "another rank joined with a different number of ranks"
            : "that rank has already joined");
  }
  for (const ncclComm* other : clique->members) {
    if (other == nullptr || other->device != CurrentDevice()) continue;
    return SOFTMOE_REFUSE(ncclInvalidUsage,
                          "Duplicate GPU detected: rank %d and rank %d both on "
                          "device %d",
                          rank, other->rank, CurrentDevice());
  }
  if (const char* why = TakeForRank()) {
    return SOFTMOE_REFUSE(ncclUnhandledCudaError, "%s %s", kCall, why);
  }
  ncclComm* made = new ncclComm;
  made->clique = clique;
  made->rank = rank;
  made->device = CurrentDevice();
  made->sends.resize(ranks);
  made->receives.resize(ranks);
  clique->members[rank] = made;
  Communicators().push_back(made);
  NoteChange();
  *comm = made;
  MarkInitialized(comm);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  constexpr const char* kCall = "ncclCommGetAsyncError";
  const HostCall host_call;
  MarkInitialized(error);
  // The call itself succeeds: the failure is what it reports.
  if (const int ordered = CountCall(kCall)) {
    *error =
        SOFTMOE_REFUSE(ordered, "a rank's network fails, as a test ordered");
    return ncclSuccess;
  }
  SOFTMOE_RETURN_IF_NOT_SUCCESS(CheckComm(kCall, comm));
  if (const char* failure = DeviceFailure(comm->device)) {
    *error = SOFTMOE_REFUSE(ncclUnhandledCudaError, "%s", failure);
    return ncclSuccess;
  }
  *error = ncclInProgress;
  if (!comm->ready) {
    if (!comm->clique->IsComplete()) WaitForChange();
    if (comm->end != ncclComm::End::kNone) return CheckComm(kCall, comm);
    if (!comm->clique->IsComplete()) return ncclSuccess;
    comm->ready = true;
  } else if (comm->ended != nullptr) {
    // Not the first time, so that callers that do not keep asking are found.
    if (comm->asked++ == 0) return ncclSuccess;
    GroupWork* group = comm->ended;
    comm->ended = nullptr;
    comm->queued.push_back(group);
    TheWorkQueue().Add(comm->stream, group);
  }
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  constexpr const char* kCall = "ncclCommAbort";
  const HostCall host_call;
  // Aborts even after a failure of the device, which it then returns: the other
  // ranks must hear of the abort.
  const ncclResult_t begun = Library::Begin(kCall);
  if (begun != ncclSuccess && DeviceFailure(CurrentDevice()) == nullptr) {
    return begun;
  }
  SOFTMOE_RETURN_IF_NOT_SUCCESS(CheckComm(kCall, comm));
  comm->end = ncclComm::End::kAborted;
  GiveBackOfRank(comm->device);
  std::vector<GroupWork*> groups = comm->queued;
  if (TheOpenGroup().work != nullptr && TheOpenGroup().work->comm() == comm) {
    DropGroup();
  }
  if (comm->ended != nullptr) {  // may have begun, though nobody has asked
    TheWorkQueue().Add(comm->stream, comm->ended);
    groups.push_back(comm->ended);
    comm->ended = nullptr;
  }
  for (GroupWork* group : groups) Spoil(group);
  NoteChange();
  return begun;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  constexpr const char* kCall = "ncclCommDestroy";
  const HostCall host_call;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin(kCall));
  SOFTMOE_RETURN_IF_NOT_SUCCESS(CheckReady(kCall, comm));
  if (!comm->queued.empty()) {
    return SOFTMOE_REFUSE(ncclInvalidUsage,
                          "%s by rank %d, which still has operations queued",
                          kCall, comm->rank);
  }
  comm->end = ncclComm::End::kDestroyed;
  GiveBackOfRank(comm->device);
  NoteChange();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  const HostCall host_call;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin("ncclGroupStart"));
  ++TheOpenGroup().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const HostCall host_call;
  if (const ncclResult_t begun = Library::Begin("ncclGroupEnd");
      begun != ncclSuccess) {
    DropGroup();
    return begun;
  }
  OpenGroup& group = TheOpenGroup();
  if (group.depth == 0) {
    return SOFTMOE_REFUSE(ncclInvalidUsage,
                          "ncclGroupEnd without ncclGroupStart");
  }
  return --group.depth == 0 ? EndGroup() : ncclSuccess;
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  const HostCall host_call;
  return Ask("ncclSend", comm,
             {.kind = Operation::kSend,
              .peer = peer,
              .number = 0,
              .from = static_cast<const char*>(from),
              .to = nullptr,
              .bytes = 0},
             count, type, stream);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  const HostCall host_call;
  return Ask("ncclRecv", comm,
             {.kind = Operation::kReceive,
              .peer = peer,
              .number = 0,
              .from = nullptr,
              .to = static_cast<char*>(to),
              .bytes = 0},
             count, type, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  const HostCall host_call;
  return Ask("ncclBroadcast", comm,
             {.kind = Operation::kBroadcast,
              .peer = root,
              .number = 0,
              .from = static_cast<const char*>(from),
              .to = static_cast<char*>(to),
              .bytes = 0},
             count, type, stream);
}

// NOLINTEND
