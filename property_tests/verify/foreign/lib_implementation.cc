// SPDX-License-Identifier: Apache-2.0
//
// "lib:PATH": somebody's shared library. It lives in a forked process that
// serves one call after another (lib_calls.h): if it crashes, hangs or exits,
// the case fails and this program goes on.
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/process/stop_signal.h"
#include "property_tests/verify/foreign/answer_bytes.h"
#include "property_tests/verify/foreign/foreign_implementations.h"
#include "property_tests/verify/foreign/lib_calls.h"
#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {
namespace {

using Clock = std::chrono::steady_clock;

enum class Io { kDone, kClosed, kLate, kStopped };

constexpr int64_t kCallTickMilliseconds = 50;

// The child for which the parent waits, and how long.
struct Patience {
  pid_t child;
  Clock::time_point deadline;
  StopSignal signal = {};
};

// A child that has ended keeps its process id until everything that it started
// has been killed (Stop).
bool HasEnded(pid_t child) {
  siginfo_t ended = {};
  ::waitid(P_PID, static_cast<id_t>(child), &ended,
           WEXITED | WNOHANG | WNOWAIT);
  return ended.si_pid == child;
}

// Waits until the socket is ready for `events` (poll) or closed, or will never
// be ready because the child has ended: what the library has started may keep
// its end open. Without `patience`, returns at once: the next call waits.
Io Await(int socket, short events, const Patience* patience) {
  while (patience != nullptr) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        patience->deadline - Clock::now());
    if (patience->signal.requested()) return Io::kStopped;
    if (left.count() <= 0) return Io::kLate;
    const bool ended = HasEnded(patience->child);  // then all is sent
    struct pollfd ready = {socket, events, 0};
    const int64_t wait =
        ended ? 0 : std::min<int64_t>(left.count(), kCallTickMilliseconds);
    if (::poll(&ready, 1, static_cast<int>(wait)) > 0) break;
    if (ended) return Io::kClosed;
  }
  return Io::kDone;
}

Io SendAll(int socket, const char* bytes, size_t count,
           const Patience* patience) {
  const int flags = MSG_NOSIGNAL | (patience != nullptr ? MSG_DONTWAIT : 0);
  while (count > 0) {
    if (const Io ready = Await(socket, POLLOUT, patience); ready != Io::kDone) {
      return ready;
    }
    const ssize_t sent = ::send(socket, bytes, count, flags);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return Io::kClosed;
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return Io::kDone;
}

Io ReceiveAll(int socket, char* bytes, size_t count, const Patience* patience) {
  while (count > 0) {
    if (const Io ready = Await(socket, POLLIN, patience); ready != Io::kDone) {
      return ready;
    }
    const ssize_t got = ::recv(socket, bytes, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Io::kClosed;
    bytes += got;
    count -= static_cast<size_t>(got);
  }
  return Io::kDone;
}

Io SendMessage(int socket, const std::string& message,
               const Patience* patience) {
  const uint64_t size = message.size();
  const Io head = SendAll(socket, reinterpret_cast<const char*>(&size),
                          sizeof size, patience);
  return head != Io::kDone
             ? head
             : SendAll(socket, message.data(), message.size(), patience);
}

// The body of the child process.
[[noreturn]] void ServeUntilClosed(const std::string& path, int socket) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGSEGV, SIGABRT,
                           SIGBUS, SIGFPE, SIGILL}) {
    ::signal(signal, SIG_DFL);
  }
  ::setpgid(0, 0);                     // Ctrl-C is for our parent
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlive the parent
  const struct rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, 0);
  ::dup2(2, 1);  // what it prints is not part of our report
  LibCalls calls(path);
  while (true) {
    uint64_t size = 0;
    if (ReceiveAll(socket, reinterpret_cast<char*>(&size), sizeof size,
                   nullptr) != Io::kDone) {
      ::_exit(0);
    }
    std::string message(size, '\0');
    if (ReceiveAll(socket, message.data(), size, nullptr) != Io::kDone ||
        SendMessage(socket, calls.Serve(message), nullptr) != Io::kDone) {
      ::_exit(0);
    }
  }
}

// The forked process. Messages in both directions are preceded by their length.
// There is one call at a time: Ask sends a message and waits for its answer.
class LibWorker {
 public:
  explicit LibWorker(std::string path) : path_(std::move(path)) {}
  ~LibWorker() { Stop(); }
  LibWorker(const LibWorker&) = delete;
  LibWorker& operator=(const LibWorker&) = delete;

  // Starts the worker if it is not running, and asks. Throws RunFailure if the
  // worker crashes, ends, answers with more than `max_bytes`, or does not
  // answer within `seconds`; the next Ask then starts another.
  std::string Ask(const std::string& message, int64_t max_bytes,
                  double seconds);

 private:
  void Start();
  int Stop();  // returns how it ended, as waitpid reports it
  [[noreturn]] void Fail(const std::string& sentence);
  [[noreturn]] void FailEnded();

  std::string path_;
  pid_t child_ = -1;
  int socket_ = -1;
};

void LibWorker::Start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw EnvironmentError(
        fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  std::fflush(nullptr);  // otherwise the child would write our buffers again
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ServeUntilClosed(path_, ends[1]);
  }
  const int reason = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw EnvironmentError(fmt::format(
        "cannot start a child process: {}; end other programs, or raise "
        "`ulimit -u`",
        std::strerror(reason)));
  }
  ::setpgid(child, child);  // the child does the same: whoever is first
  child_ = child;
  socket_ = ends[0];
}

int LibWorker::Stop() {
  int status = 0;
  if (child_ < 0) return status;
  ::close(socket_);
  ::kill(-child_, SIGKILL);  // and what it has started
  ::kill(child_, SIGKILL);   // even if it has left that group
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  socket_ = -1;
  return status;
}

void LibWorker::Fail(const std::string& sentence) {
  Stop();
  throw RunFailure(sentence);
}

// Called after the process has ended or the library has closed the socket.
void LibWorker::FailEnded() {
  for (int tries = 0; !HasEnded(child_); ++tries) {
    if (tries == 100) Fail("the library closed our connection");
    ::usleep(10'000);
  }
  const int status = Stop();
  throw RunFailure(
      WIFSIGNALED(status)
          ? fmt::format("the library crashed ({})",
                        ::strsignal(WTERMSIG(status)))
          : fmt::format("the library ended its process with exit status {}",
                        WEXITSTATUS(status)));
}

std::string LibWorker::Ask(const std::string& message, int64_t max_bytes,
                           double seconds) {
  if (child_ < 0) Start();
  const Patience patience = {
      child_, Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(seconds))};
  uint64_t size = 0;
  Io done = SendMessage(socket_, message, &patience);
  if (done == Io::kDone) {
    done = ReceiveAll(socket_, reinterpret_cast<char*>(&size), sizeof size,
                      &patience);
  }
  if (done == Io::kDone && size > static_cast<uint64_t>(max_bytes)) {
    Fail("the library corrupted our part of its process");
  }
  std::string answer;
  if (done == Io::kDone) {
    answer.resize(size);
    done = ReceiveAll(socket_, answer.data(), size, &patience);
  }
  if (done == Io::kStopped) {
    Stop();
    patience.signal.ThrowIfRequested("a call of " + path_ + " was given up");
  }
  if (done == Io::kLate) {
    Fail(fmt::format(
        "the library was not done after {:g} s (--timeout) and was ended",
        seconds));
  }
  if (done == Io::kClosed) FailEnded();
  return answer;
}

// The largest message that does not answer a call: the text of dlerror.
constexpr int64_t kMaxMessage = 64 << 10;

// Whether the library offers an operation in a dtype, or how the query failed.
struct Offer {
  bool made = false;
  std::string failure;
};

class LibImplementation : public Implementation {
 public:
  explicit LibImplementation(const std::string& argument)
      : name_("lib:" + argument), worker_(CheckedPath("lib", argument)) {
    std::string defect;
    try {
      defect = worker_.Ask(LoadMessage(), kMaxMessage, CallSeconds());
    } catch (const RunFailure& failure) {
      defect = std::string("while it was loaded, ") + failure.what();
    }
    if (!defect.empty()) throw ConfigError("impl " + name_ + ": " + defect);
  }

  std::string name() const override { return name_; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    const auto key = std::make_pair(op.name(), dtype);
    auto found = offers_.find(key);
    if (found == offers_.end()) {
      Offer offer;
      try {
        offer.made = worker_.Ask(SupportsMessage(op.name(), dtype), kMaxMessage,
                                 CallSeconds()) == "1";
      } catch (const RunFailure& failure) {
        offer = {true, failure.what()};  // the next case reports it
      }
      found = offers_.emplace(key, offer).first;
    }
    return found->second.made
               ? ""
               : std::string("the library does not offer it in ") +
                     DtypeName(dtype);
  }

  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    const auto offer = offers_.find({op.name(), c.dtype});
    if (offer != offers_.end() && !offer->second.failure.empty()) {
      throw RunFailure("asked whether it has this operation, " +
                       offer->second.failure);
    }
    const Request request = requests_.Make(op, c, inputs);
    const std::span<const Request> one(&request, 1);
    const std::string bytes =
        worker_.Ask(CallMessage(request), MaxAnswerBytes(one), CallSeconds());
    return TakeOutputs(DecodeAnswers(bytes, one).front());
  }

 private:
  std::string name_;
  mutable LibWorker worker_;
  mutable std::map<std::pair<std::string, Dtype>, Offer> offers_;
  Requests requests_;
};

}  // namespace

std::unique_ptr<Implementation> MakeLibImplementation(const std::string& path) {
  return std::make_unique<LibImplementation>(path);
}

}  // namespace softmoe::verify
