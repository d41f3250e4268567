// SPDX-License-Identifier: Apache-2.0
#include "core/fuzzing/fuzz_support.h"

#include <fcntl.h>
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "core/files/temporary_folder.h"

namespace softmoe::fuzz {

namespace fs = std::filesystem;

void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "FINDING: %s\n", what.c_str());
  std::abort();
}

bool Accepts(const std::function<void()>& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    // EnvironmentError, InternalError, ... are no judgement of an input.
    if (error.code() != ExitCode::kUsage) throw;
    Require(error.what()[0] != '\0', "an error without a message");
    return false;
  }
}

void LetChildrenCrash() {
  static const int once = pthread_atfork(
      nullptr, nullptr, [] { __sanitizer_set_death_callback(nullptr); });
  Require(once == 0, "pthread_atfork");
}

uint8_t Choices::Byte() {
  if (rest_.empty()) return 0;
  const auto byte = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return byte;
}

size_t Choices::Below(size_t count) {
  size_t value = Byte();
  if (count > 256) value = value << 8 | Byte();
  return value % count;
}

uint64_t Choices::Word() {
  uint64_t word = 0;
  for (int i = 0; i < 8; ++i) word = word << 8 | Byte();
  return word;
}

std::string Choices::Text(size_t limit) {
  const size_t wanted = Below(limit + 1);  // before the rest is looked at
  const size_t length = std::min(wanted, rest_.size());
  const std::string text(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return text;
}

int64_t Choices::Integer() {
  using Limits = std::numeric_limits<int64_t>;
  constexpr int64_t kNotable[] = {0,
                                  1,
                                  -1,
                                  2,
                                  3,
                                  4,
                                  7,
                                  8,
                                  255,
                                  256,
                                  65535,
                                  65536,
                                  int64_t{1} << 31,
                                  (int64_t{1} << 32) - 1,
                                  int64_t{1} << 40,
                                  Limits::max(),
                                  Limits::min()};
  const size_t which = Below(2 + std::size(kNotable));
  if (which < std::size(kNotable)) return kNotable[which];
  return which % 2 == 0 ? static_cast<int64_t>(Byte())
                        : static_cast<int64_t>(Word());
}

double Choices::Real() {
  using Limits = std::numeric_limits<double>;
  constexpr double kNotable[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 Limits::quiet_NaN(),
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 Limits::max(),
                                 Limits::denorm_min(),
                                 -999.0,
                                 1e300};
  const size_t which = Below(1 + std::size(kNotable));
  if (which < std::size(kNotable)) return kNotable[which];
  return std::bit_cast<double>(Word());
}

namespace {

// Returns a folder in memory if the machine has a file system there, because
// what is written is synced.
fs::path ParentOfScratch() {
  if (access("/dev/shm", W_OK) == 0) return "/dev/shm";
  const char* given = std::getenv("TEST_TMPDIR");
  return given != nullptr ? given : "/tmp";
}

}  // namespace

const fs::path& ScratchFolder() {
  // Removed when the process exits normally, or else when the next one begins.
  static const TemporaryFolder folder(ParentOfScratch() / "softmoe");
  return folder.path();
}

void WriteScratch(const fs::path& path, std::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Require(file >= 0, "cannot write " + path.string());
  Require(WriteAll(file, bytes) == 0, "cannot write " + path.string());
  close(file);
}

}  // namespace softmoe::fuzz

// Called by libFuzzer before the first input.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("SOFTMOE_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const std::string& seed : softmoe::fuzz::Seeds()) {
    softmoe::fuzz::WriteScratch(
        std::filesystem::path(folder) / ("made-" + std::to_string(++number)),
        seed);
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  softmoe::fuzz::FuzzOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
