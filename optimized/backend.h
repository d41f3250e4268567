// SPDX-License-Identifier: Apache-2.0
//
// backend.h - what the model's sources are compiled against, once for each
// backend: where arrays live, what operations are enqueued on, how arrays go to
// the host and back.
//
//   backend_cpu        memory of the host, a ThreadPool: an operation has run
//                      when it returns, and nothing is copied
//   backend_simulated  the simulated CUDA device (kernels/simt/device), for
//                      tests
//
// Everything that is compiled so is in the inline namespace SOFTMOE_BACKEND: a
// source of optimized/ names it once, and a program may hold several. What is
// the same for all - configuration, batches, statistics - is outside of it.
#ifndef SOFTMOE_OPTIMIZED_BACKEND_H_
#define SOFTMOE_OPTIMIZED_BACKEND_H_

#ifndef SOFTMOE_BACKEND
#define SOFTMOE_BACKEND backend_cpu
#endif

#ifdef SOFTMOE_DEVICE
#include "optimized/device_backend.h"
#else
#include "optimized/cpu_backend.h"
#endif

#endif  // SOFTMOE_OPTIMIZED_BACKEND_H_
