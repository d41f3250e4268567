// SPDX-License-Identifier: Apache-2.0
//
// backend.h - what the model's sources are compiled against, once for each
// backend: where arrays live, what operations are enqueued on, how arrays go to
// the host and back.
//
//   backend_cpu   memory of the host, a ThreadPool: an operation has run when
//                 it returns, and nothing is copied
//
// Everything that is compiled so is in the inline namespace SOFTMOE_BACKEND: a
// source of optimized/ names it once, and a program may hold several. What is
// the same for all - configuration, batches, statistics - is outside of it.
#ifndef SOFTMOE_OPTIMIZED_BACKEND_H_
#define SOFTMOE_OPTIMIZED_BACKEND_H_

#ifndef SOFTMOE_BACKEND
#define SOFTMOE_BACKEND backend_cpu
#endif

#include "optimized/cpu_backend.h"

#endif  // SOFTMOE_OPTIMIZED_BACKEND_H_
