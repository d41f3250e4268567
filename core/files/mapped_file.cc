// SPDX-License-Identifier: Apache-2.0
#include "core/files/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/errors.h"
#include "core/files/file_error.h"

namespace softmoe {
namespace {

// What the handler of SIGBUS needs to know of a mapping. A handler may touch
// lock-free atomics and memory that nobody frees, and nothing else.
struct Mapping {
  std::atomic<const unsigned char*> begin{nullptr};  // nullptr: a free slot
  std::atomic<size_t> size{0};
  std::array<char, 512> path{};  // cut if longer; written while free
};
static_assert(std::atomic<const unsigned char*>::is_always_lock_free);

// A process maps a few files at a time; those beyond have no message.
std::array<Mapping, 64> mappings;
std::mutex mappings_mutex;  // of who takes slots; not of the handler
struct sigaction previous_action;

void Print(const char* text) {
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, text, std::strlen(text));
}

void ExplainLostPages(int signal_number, siginfo_t* info, void*) {
  const bool sent = info->si_code <= 0;  // by somebody: there is no address
  const auto* at = static_cast<const unsigned char*>(info->si_addr);
  for (const Mapping& mapping : mappings) {
    const unsigned char* begin = mapping.begin.load();
    if (sent || begin == nullptr || at < begin ||
        at >= begin + mapping.size.load()) {
      continue;
    }
    Print("error: ");
    Print(mapping.path.data());
    Print(
        ": became shorter while it was read, or its disk cannot be read; leave "
        "files alone while they are in use, restore this one, and give the "
        "same command again\n");
    ::_exit(static_cast<int>(ExitCode::kUsage));
  }
  // None of ours: for who handled it before, when the instruction is tried
  // again, or the signal comes again.
  ::sigaction(signal_number, &previous_action, nullptr);
  if (sent) ::raise(signal_number);
}

// Both under mappings_mutex.
void InstallHandler() {
  static bool installed = false;
  if (std::exchange(installed, true)) return;
  struct sigaction action = {};
  action.sa_sigaction = &ExplainLostPages;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, &previous_action);
}

void Remember(const unsigned char* begin, size_t size,
              const std::filesystem::path& path) {
  const std::lock_guard lock(mappings_mutex);
  InstallHandler();
  for (Mapping& mapping : mappings) {
    if (mapping.begin.load() != nullptr) continue;
    std::strncpy(mapping.path.data(), path.c_str(), mapping.path.size() - 1);
    mapping.size = size;
    mapping.begin = begin;
    return;
  }
}

void Forget(const unsigned char* begin) {
  const std::lock_guard lock(mappings_mutex);
  for (Mapping& mapping : mappings) {
    if (mapping.begin.load() == begin) mapping.begin = nullptr;
  }
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  RequireRegular(path);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw FileError("read", path, errno);
  struct stat status {};
  int error = ::fstat(file, &status) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(status.st_mode)) error = EINVAL;
  if (error == 0 && status.st_size > 0) {
    void* memory = ::mmap(nullptr, static_cast<size_t>(status.st_size),
                          PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) {
      error = errno;
    } else {
      data_ = static_cast<const unsigned char*>(memory);
      size_ = status.st_size;
      Remember(data_, static_cast<size_t>(size_), path);
    }
  }
  ::close(file);
  if (error != 0) throw FileError("read", path, error);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  Forget(data_);
  ::munmap(const_cast<unsigned char*>(data_), static_cast<size_t>(size_));
}

}  // namespace softmoe
