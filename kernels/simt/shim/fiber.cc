// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/shim/fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {
namespace {

// A sanitizer's report is written on the stack of the fiber that erred. Only
// pages that are touched exist.
constexpr size_t kStackSize = size_t{256} * 1024;
constexpr size_t kGuardSize = 4096;
constexpr size_t kColorStep = 192;  // 3 cache lines

constexpr unsigned kNoSync = 1;  // to TSan: a switch orders nothing

// The fiber that a switch goes to and the one it came from.
Fiber* running = nullptr;
Fiber* previous = nullptr;

}  // namespace

#ifndef SOFTMOE_SIMT_UCONTEXT
// Pushes the registers that a callee must keep, stores the stack pointer, and
// does the reverse on the other stack. The control words of the floating-point
// units are left alone: kernels do not change them.
extern "C" void softmoe_simt_switch(void** save, void* load);
asm(R"(
.text
.globl softmoe_simt_switch
.type softmoe_simt_switch, @function
softmoe_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size softmoe_simt_switch, .-softmoe_simt_switch
)");
#endif

Fiber::Fiber(Caller) {
  if (HasTsan()) tsan_fiber_ = __tsan_get_current_fiber();
}

Fiber::Fiber(int color)
    : stack_size_(kStackSize), color_(static_cast<size_t>(color) * kColorStep) {
  void* memory = mmap(nullptr, kGuardSize + kStackSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardSize, PROT_NONE) != 0) {
    throw std::bad_alloc();
  }
  stack_ = static_cast<char*>(memory) + kGuardSize;
  if (HasTsan()) tsan_fiber_ = __tsan_create_fiber(0);
}

void Fiber::Restart(void (*entry)()) {
  entry_ = entry;
  asan_fake_stack_ = nullptr;
#ifdef SOFTMOE_SIMT_UCONTEXT
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = stack_size_ - color_;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fiber::Begin, 0);
#else
  // As if Begin had been called (the return address, null, ends a backtrace)
  // and had called softmoe_simt_switch: its address, then six registers.
  void** top = reinterpret_cast<void**>(stack_ + stack_size_ - color_);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&Fiber::Begin);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  stack_pointer_ = top;
#endif
}

void Fiber::DropFrames() { Permit(stack_, stack_size_); }

void Fiber::SwitchFrom(Fiber& from, Leaving leaving) {
  if (this == &from) return;
  previous = &from;
  running = this;
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(
        leaving == Leaving::kForGood ? nullptr : &from.asan_fake_stack_, stack_,
        stack_size_);
  }
  if (HasTsan()) __tsan_switch_to_fiber(tsan_fiber_, kNoSync);
#ifdef SOFTMOE_SIMT_UCONTEXT
  swapcontext(&from.context_, &context_);
#else
  softmoe_simt_switch(&from.stack_pointer_, stack_pointer_);
#endif
  // Back on `from`, whichever fiber switched to it.
  if (__sanitizer_finish_switch_fiber != nullptr) {
    const void* bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(running->asan_fake_stack_, &bottom, &size);
  }
}

void Fiber::ReleaseAs(char* tag, Fiber& caller) {
  if (!HasTsan()) return;
  __tsan_switch_to_fiber(tsan_fiber_, kNoSync);
  Release(tag);
  __tsan_switch_to_fiber(caller.tsan_fiber_, kNoSync);
}

void Fiber::Begin() {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    const void* bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    if (previous->stack_ == nullptr) {  // the caller's: ASan knows its stack
      previous->stack_ = static_cast<char*>(const_cast<void*>(bottom));
      previous->stack_size_ = size;
    }
  }
  running->entry_();
  abort();  // entry() returned
}

}  // namespace softmoe::simt
