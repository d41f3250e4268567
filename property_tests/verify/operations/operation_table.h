// SPDX-License-Identifier: Apache-2.0
//
// operation_table.h - the table of operations. The list of what op= can name,
// the adapters of each implementation and what the tests must have run
// (implementations_property_test.cc) follow from it.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_OPERATION_TABLE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_OPERATION_TABLE_H_

#include <string>

#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/implementations/adapters.h"

// Operations are in the order of the model. Each is Line(name, Name,
// activations, cpu, body, sums): op=name is NameOperation(). Its adapters are
// in an *_adapters.cc with those of the same kind:
//   activations  F32   RunName(case, inputs, RowKernels)
//                Bf16  RunName(case, inputs, Bf16Kernels)
//                Both  RunName(case, inputs, RowKernelsOf<Activation>)
//   cpu          Rows   the same function on the CPU
//                OnCpu  RunNameOnCpu(case, inputs, pool) in its place
//   body         AtDouble  RunNameAtDouble(case, inputs): the bodies of kernels
//                None
//   sums         Ours     in the order of our sources, on every device
//                Library  on a device, also in that of cuBLASLt or tensor cores
// Those on a device have a line in kernels/cuda/operation_sources.txt, too.
// clang-format off
#define SOFTMOE_OPERATIONS(Line)                                         \
  Line(embedding,      Embedding,     Both, Rows,  AtDouble,  Ours)      \
  Line(rmsnorm,        RmsNorm,       Both, Rows,  AtDouble,  Ours)      \
  Line(rope,           Rope,          Both, Rows,  AtDouble,  Ours)      \
  Line(attention,      Attention,     Both, Rows,  AtDouble,  Library)   \
  Line(jitter,         Jitter,        Both, Rows,  None,      Ours)      \
  Line(logit_noise,    LogitNoise,    F32,  Rows,  None,      Ours)      \
  Line(lapsum,         LapSum,        F32,  Rows,  AtDouble,  Ours)      \
  Line(router,         Router,        F32,  Rows,  AtDouble,  Ours)      \
  Line(routing_counts, RoutingCounts, F32,  Rows,  None,      Ours)      \
  Line(route_plan,     RoutePlan,     F32,  Rows,  None,      Ours)      \
  Line(balance_sums,   BalanceSums,   F32,  Rows,  AtDouble,  Ours)      \
  Line(balance_loss,   BalanceLoss,   F32,  Rows,  None,      Ours)      \
  Line(experts,        Experts,       Both, Rows,  AtDouble,  Library)   \
  Line(lm_head,        LmHead,        Both, Rows,  AtDouble,  Library)   \
  Line(budget,         Budget,        F32,  Rows,  None,      Ours)      \
  Line(adamw,          AdamW,         F32,  OnCpu, AtDouble,  Ours)      \
  Line(gemm,           Gemm,          Both, Rows,  None,      Library)   \
  Line(sum_of_squares, SumOfSquares,  F32,  Rows,  None,      Ours)      \
  Line(add,            Add,           Both, Rows,  None,      Ours)      \
  Line(cast,           Cast,          Bf16, Rows,  None,      Ours)
// clang-format on

namespace softmoe::verify {

#define SOFTMOE_DECLARE_F32(Name) \
  TensorMap Run##Name(const Case&, const TensorMap&, const RowKernels&);
#define SOFTMOE_DECLARE_Bf16(Name) \
  TensorMap Run##Name(const Case&, const TensorMap&, const Bf16Kernels&);
#define SOFTMOE_DECLARE_Both(Name)                   \
  template <typename Activation>                     \
  TensorMap Run##Name(const Case&, const TensorMap&, \
                      const RowKernelsOf<Activation>&);
#define SOFTMOE_DECLARE_Rows(Name)
#define SOFTMOE_DECLARE_OnCpu(Name) \
  TensorMap Run##Name##OnCpu(const Case&, const TensorMap&, ThreadPool&);
#define SOFTMOE_DECLARE_None(Name)
#define SOFTMOE_DECLARE_AtDouble(Name) \
  TensorMap Run##Name##AtDouble(const Case&, const TensorMap&);
#define SOFTMOE_DECLARE_OPERATION(name, Name, activations, cpu, body, sums) \
  const Operation& Name##Operation();                                       \
  SOFTMOE_DECLARE_##activations(Name) SOFTMOE_DECLARE_##cpu(Name)           \
      SOFTMOE_DECLARE_##body(Name)
SOFTMOE_OPERATIONS(SOFTMOE_DECLARE_OPERATION)

// The adapters of all operations.
const Adapters& AdapterTable();

// Whether sums of the operation `name` may be in the order of a library.
bool HasSumsOfALibrary(const std::string& name);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_OPERATION_TABLE_H_
