// SPDX-License-Identifier: Apache-2.0
//
// fiber.h - a stack on which code can be run and left at any point; the
// simulator runs each CUDA thread on one. One operating system thread, no
// preemption; a switch takes some 30 ns on x86-64 (assembly), more elsewhere.
//
// To the sanitizers a fiber is a thread of its own, and a switch orders
// nothing: only Release and Acquire (sanitizer_hooks.h) do.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_FIBER_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_FIBER_H_

#include <cstddef>

// Tests set this macro to run the portable switch on x86-64, too.
#if !defined(__x86_64__) && !defined(SOFTMOE_SIMT_UCONTEXT)
#define SOFTMOE_SIMT_UCONTEXT
#endif

#ifdef SOFTMOE_SIMT_UCONTEXT
#include <ucontext.h>
#endif

namespace softmoe::simt {

class Fiber {
 public:
  // The fiber of the calling thread itself, which needs no stack.
  struct Caller {};
  explicit Fiber(Caller);

  // A stack of its own, with a guard page below. `color` in [0, 20] moves its
  // top, so that the tops of many stacks do not compete for one cache set.
  explicit Fiber(int color);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Makes the next switch to this fiber call entry(), from the top of the
  // stack; whatever ran there is forgotten. entry() may not return: it ends
  // with SwitchFrom(..., kForGood).
  void Restart(void (*entry)());

  // To be called if what ran there was left within functions: ASan would go on
  // guarding their variables. (Costs more than a short kernel.)
  void DropFrames();

  enum class Leaving { kForAWhile, kForGood };

  // Leaves `from`, the running fiber, and runs this one. Returns when somebody
  // switches back.
  void SwitchFrom(Fiber& from, Leaving leaving);

  // Releases to `tag` what this fiber did; `caller` is the running fiber.
  void ReleaseAs(char* tag, Fiber& caller);

 private:
  static void Begin();

  char* stack_ = nullptr;  // lowest usable address
  size_t stack_size_ = 0;
  size_t color_ = 0;
  void (*entry_)() = nullptr;
#ifdef SOFTMOE_SIMT_UCONTEXT
  ucontext_t context_;
#else
  void* stack_pointer_ = nullptr;
#endif
  void* asan_fake_stack_ = nullptr;
  void* tsan_fiber_ = nullptr;
};

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_FIBER_H_
