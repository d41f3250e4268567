// SPDX-License-Identifier: Apache-2.0
//
// lib_worker.h - the forked process that a shared library lives in.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_WORKER_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_WORKER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace softmoe::verify {

// Messages between us and the worker are preceded by their length. There is one
// call at a time: Ask sends a message and waits for its answer.
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
  void Stop();
  [[noreturn]] void Fail(const std::string& sentence);
  [[noreturn]] void FailEnded();

  std::string path_;
  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_WORKER_H_
