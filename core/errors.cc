// SPDX-License-Identifier: Apache-2.0
#include "core/errors.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

namespace softmoe {

int RunMain(const std::string& program, const std::function<ExitCode()>& body) {
  try {
    return static_cast<int>(body());
  } catch (const Error& error) {
    // A stop that was asked for is not an error.
    const char* kind = error.code() == ExitCode::kStopped ? "stopped" : "error";
    std::fprintf(stderr, "%s: %s: %s\n", program.c_str(), kind, error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr,
                 "%s: error: out of memory; use a smaller micro-batch or "
                 "model, or a machine with more memory\n",
                 program.c_str());
    return static_cast<int>(ExitCode::kEnvironment);
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "%s: error: %s; check the path and its permissions\n",
                 program.c_str(), error.what());
    return static_cast<int>(ExitCode::kEnvironment);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: internal error: %s\n", program.c_str(),
                 error.what());
    return static_cast<int>(ExitCode::kSelfCheck);
  }
}

namespace internal {

// Not std::source_location, which clang 14 lacks.
CheckFailure::CheckFailure(const char* condition, const char* file, int line) {
  text_ << file << ":" << line << ": check failed: " << condition << " ";
}

CheckFailure::~CheckFailure() noexcept(false) {
  throw InternalError(text_.str());
}

}  // namespace internal
}  // namespace softmoe
