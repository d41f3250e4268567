// SPDX-License-Identifier: Apache-2.0
//
// hostile_library.cc - does what other people's libraries do wrong, selected by
// the word in $HOSTILE. HOSTILE_ABI is its ABI version, for a test of a wrong
// one.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "property_tests/verify/foreign/softmoe_verify_abi.h"

#ifndef HOSTILE_ABI
#define HOSTILE_ABI SOFTMOE_VERIFY_ABI_VERSION
#endif

namespace {

std::string Mode() {
  const char* word = getenv("HOSTILE");
  return word == nullptr ? "" : word;
}

int64_t Count(const softmoe_verify_tensor& tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.rank; ++d) count *= tensor.dims[d];
  return count;
}

// Does what crtfastmath.o does, which gcc links with -ffast-math: flushes
// subnormal numbers to zero, as results (bit 15) and as operands (bit 6).
constexpr unsigned kFlush = 0x8040;
struct FlushOnLoad {
  FlushOnLoad() {
    if (Mode() == "flush") _mm_setcsr(_mm_getcsr() | kFlush);
  }
} const flush_on_load;

struct CrashOnLoad {
  CrashOnLoad() {
    if (Mode() == "crash_on_load") raise(SIGSEGV);
  }
} const crash_on_load;

}  // namespace

extern "C" {

int32_t softmoe_verify_abi_version(void) { return HOSTILE_ABI; }

int32_t softmoe_verify_supports(const char* op, int32_t) {
  if (Mode() == "supports_crashes") abort();
  return strcmp(op, "lapsum") == 0 || Mode() == "repeat";
}

int32_t softmoe_verify_run(const softmoe_verify_call* call) {
  const std::string mode = Mode();
  if (mode == "repeat") {  // all words of the call, as the message
    std::string words = std::string(call->op) + "|" + call->case_text;
    for (int32_t i = 0; i < call->num_parameters; ++i) {
      words += std::string("|") + call->parameters[i].name + ":" +
               call->parameters[i].text;
    }
    strncpy(call->message, words.c_str(),
            static_cast<size_t>(call->message_size));
    return SOFTMOE_VERIFY_FAILED;
  }
  const softmoe_verify_tensor* weights =
      softmoe_verify_find(call->outputs, call->num_outputs, "weights");
  float* out = static_cast<float*>(weights->data);
  if (mode == "flush" && (_mm_getcsr() & kFlush) != kFlush) {
    return SOFTMOE_VERIFY_FAILED;
  }
  if (mode == "crash") raise(SIGSEGV);
  if (mode == "crash_with_child") {
    if (fork() == 0) {  // keeps our end of the connection open
      while (true) pause();
    }
    abort();
  }
  if (mode == "exit") exit(0);
  if (mode == "leaves_group") setpgid(0, getpgid(getppid()));
  if (mode == "hang" || mode == "leaves_group") {
    while (true) pause();
  }
  if (mode == "stops") {  // soon enough to read no other call
    std::thread([] {
      usleep(20'000);
      kill(getpid(), SIGSTOP);
    }).detach();
  }
  if (mode == "throw") throw std::runtime_error("not caught");
  if (mode == "close") {
    for (int file = 3; file < 64; ++file) close(file);
  }
  if (mode == "error" || mode == "unsupported" || mode == "latin1") {
    strncpy(call->message,
            mode == "latin1" ? "not on a f\xeate" : "not on\na Friday",
            static_cast<size_t>(call->message_size));
    return mode == "unsupported" ? SOFTMOE_VERIFY_UNSUPPORTED : 77;
  }
  if (mode == "unterminated") {
    memset(call->message, 'x', static_cast<size_t>(call->message_size));
    return SOFTMOE_VERIFY_FAILED;
  }
  for (int32_t i = 0; i < call->num_outputs; ++i) {
    if (mode == "unwritten") continue;
    softmoe_verify_tensor& each = call->outputs[i];
    for (int64_t k = 0; k < Count(each); ++k) {
      static_cast<float*>(each.data)[k] = 0;
    }
    if (mode == "leave_all_out") each.data = nullptr;
  }
  if (mode == "flush") memcpy(out, call->inputs[0].data, sizeof *out);
  if (mode == "past_end") out[Count(*weights)] = 1;
  if (mode == "before") out[-1] = 1;
  if (mode == "input") static_cast<float*>(call->inputs[0].data)[0] += 1;
  if (mode == "pointer") call->outputs[0].data = out + 1;
  return SOFTMOE_VERIFY_OK;
}

}  // extern "C"
