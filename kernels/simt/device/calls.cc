// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/device/calls.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/simt/device/device.h"
#include "kernels/simt/device/host_call.h"

namespace softmoe::simt {
namespace {

struct Call {
  const char* name;
  int count;
  int fails_at;  // this count
  int error;
};

Call& Find(const char* name) {
  static Call calls[64];
  for (Call& call : calls) {
    if (call.name == nullptr) call.name = name;
    if (strcmp(call.name, name) == 0) return call;
  }
  abort();  // there are fewer functions than that
}

}  // namespace

int CountCall(const char* name) {
  Call& call = Find(name);
  return ++call.count == call.fails_at ? call.error : 0;
}

void FailCall(const char* name, int n, int error) {
  const HostCall host_call;
  Call& call = Find(name);
  call.fails_at = call.count + n;
  call.error = error;
}

int CallsOf(const char* name) {
  const HostCall host_call;
  return Find(name).count;
}

int Refusals::Refuse(int error, const char* format, ...) {
  last_error_ = explained_ = error;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why_, sizeof(why_), format, arguments);
  va_end(arguments);
  return error;
}

const char* Refusals::Text(int error, const char* name) {
  if (error == 0 || error != explained_) return name;
  snprintf(text_, sizeof(text_), "%s: %s", name, why_);
  return text_;
}

}  // namespace softmoe::simt
