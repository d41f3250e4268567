// SPDX-License-Identifier: Apache-2.0
//
// Rows are gathered in the order of their experts; then each expert has one
// product, on the side that its number gives. One buffer of rows serves inputs
// and outputs in turn: each step that overwrites it comes after a Join.
#include "core/errors.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/simd/inline.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

// Computes product(e, first row, rows) for each expert e, side by side.
template <typename Args, typename Product>
void ForEachExpert(const Args& args, Queue& queue, const Product& product) {
  if (args.host_offsets == nullptr) {
    throw InternalError("the experts' offsets were not copied to the host");
  }
  queue.Fork();
  for (int64_t e = 0; e < args.plan.num_experts; ++e) {
    const int64_t first = args.host_offsets[e];
    ProductArgs products =
        ProductOf(product(e, first, args.host_offsets[e + 1] - first));
    products.rows_vary = true;
    queue.MultiplyBeside(static_cast<int>(e % Queue::kSides), products);
  }
  queue.Join();
}

template <typename Activation>
void Enqueue(const ExpertForwardArgsOf<Activation>& args, Queue& queue) {
  // Products give activations.
  using Product = GemmArgsOf<Activation, Activation>;
  const int64_t d = args.d_model, f = args.d_ffn;
  const RoutePlan& plan = args.plan;
  Activation* rows = args.row_output;
  Permute({plan, d, args.hidden, rows}, queue.stream());
  ForEachExpert(args, queue, [&](int64_t e, int64_t first, int64_t count) {
    return Product{.a = rows + first * d,
                   .b = args.gate_up_weight + e * d * 2 * f,
                   .c = args.gate_up + first * 2 * f,
                   .m = count,
                   .n = 2 * f,
                   .k = d,
                   .lda = d,
                   .ldb = 2 * f,
                   .ldc = 2 * f};
  });
  if (args.out == nullptr) return;
  SwigluForward({plan, f, args.gate_up, args.activation}, queue.stream());
  ForEachExpert(args, queue, [&](int64_t e, int64_t first, int64_t count) {
    return Product{.a = args.activation + first * f,
                   .b = args.down_weight + e * f * d,
                   .c = rows + first * d,
                   .m = count,
                   .n = d,
                   .k = f,
                   .lda = f,
                   .ldb = d,
                   .ldc = d};
  });
  Unpermute({plan, d, rows, /*accumulate=*/true, args.out}, queue.stream());
}

template <typename Activation>
void Enqueue(const ExpertBackwardArgsOf<Activation>& args, Queue& queue) {
  // Products give gradients of activations, or of weights.
  using Product = GemmArgsOf<Activation, Activation>;
  using WeightProduct = GemmArgsOf<Activation, float>;
  const int64_t d = args.d_model, f = args.d_ffn;
  const RoutePlan& plan = args.plan;
  Activation* rows = args.d_row_hidden;
  Permute({plan, d, args.d_out, rows}, queue.stream());
  // d_activation = d_out down^T, where d_gate_up is going to be.
  ForEachExpert(args, queue, [&](int64_t e, int64_t first, int64_t count) {
    return Product{.a = rows + first * d,
                   .b = args.down_weight + e * f * d,
                   .c = args.d_gate_up + first * 2 * f,
                   .m = count,
                   .n = f,
                   .k = d,
                   .lda = d,
                   .ldb = d,
                   .ldc = 2 * f,
                   .transpose_b = true};
  });
  SwigluBackward({plan, f, args.gate_up, args.d_gate_up, 2 * f, args.d_gate_up,
                  args.activation, args.d_row_gate},
                 queue.stream());
  // d_down = activation^T d_out; the gate is in the activation.
  ForEachExpert(args, queue, [&](int64_t e, int64_t first, int64_t count) {
    return WeightProduct{.a = args.activation + first * f,
                         .b = rows + first * d,
                         .c = args.d_down_weight + e * f * d,
                         .m = f,
                         .n = d,
                         .k = count,
                         .lda = f,
                         .ldb = d,
                         .ldc = d,
                         .transpose_a = true};
  });
  Permute({plan, d, args.hidden, rows}, queue.stream());
  // d_gate_up_weight = hidden^T d_gate_up
  ForEachExpert(args, queue, [&](int64_t e, int64_t first, int64_t count) {
    return WeightProduct{.a = rows + first * d,
                         .b = args.d_gate_up + first * 2 * f,
                         .c = args.d_gate_up_weight + e * d * 2 * f,
                         .m = d,
                         .n = 2 * f,
                         .k = count,
                         .lda = d,
                         .ldb = 2 * f,
                         .ldc = 2 * f,
                         .transpose_a = true};
  });
  // d_row_hidden = d_gate_up gate_up_weight^T
  ForEachExpert(args, queue, [&](int64_t e, int64_t first, int64_t count) {
    return Product{.a = args.d_gate_up + first * 2 * f,
                   .b = args.gate_up_weight + e * d * 2 * f,
                   .c = rows + first * d,
                   .m = count,
                   .n = d,
                   .k = 2 * f,
                   .lda = 2 * f,
                   .ldb = 2 * f,
                   .ldc = d,
                   .transpose_b = true};
  });
  Unpermute({plan, d, rows, /*accumulate=*/false, args.d_hidden},
            queue.stream());
}

}  // namespace

SOFTMOE_DEFINE_CUDA_OPERATION_OF(ExpertForward);
SOFTMOE_DEFINE_CUDA_OPERATION_OF(ExpertBackward);

}  // namespace softmoe::kernels::SOFTMOE_ISA
