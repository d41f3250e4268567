// SPDX-License-Identifier: Apache-2.0
#include "kernels/testing/vector_math_probe.h"

#include "kernels/lapsum_body.h"
#include "kernels/swiglu.h"
#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kWidth = Floats::kWidth;

template <typename Function>
void Map(const ProbeArgs& args, Function function) {
  int64_t i = 0;
  for (; i + kWidth <= args.size; i += kWidth) {
    function(Floats::Load(args.x + i)).Store(args.y + i);
  }
  const int tail = static_cast<int>(args.size - i);
  function(Floats::LoadPartial(args.x + i, tail))
      .StorePartial(args.y + i, tail);
}

}  // namespace

void Probe(const ProbeArgs& args, ThreadPool&) {
  switch (args.function) {
    case ProbeFunction::kExp:
      return Map(args, [](Floats x) { return Exp(x); });
    case ProbeFunction::kLog:
      return Map(args, [](Floats x) { return Log(x); });
    case ProbeFunction::kExpScalar:
      for (int64_t i = 0; i < args.size; ++i) args.y[i] = Exp(args.x[i]);
      return;
    case ProbeFunction::kLogScalar:
      for (int64_t i = 0; i < args.size; ++i) args.y[i] = Log(args.x[i]);
      return;
    case ProbeFunction::kSigmoid:
      return Map(args, [](Floats x) { return Sigmoid(x); });
    case ProbeFunction::kSilu:
      return Map(args, [](Floats x) {
        return SwigluForward(x, Floats(1.0f), Floats(1.0f));
      });
    case ProbeFunction::kSiluSlope:
      return Map(args, [](Floats x) {
        const Floats one(1.0f);
        return SwigluBackward(x, one, one, one).d_gate;
      });
    case ProbeFunction::kLaplaceCdf:
      return Map(args, [](Floats x) { return LaplaceCdf(x); });
    case ProbeFunction::kTranspose: {
      Floats x[kWidth];
      for (int i = 0; i < kWidth; ++i) x[i] = Floats::Load(args.x + i * kWidth);
      Transpose(x);
      for (int i = 0; i < kWidth; ++i) x[i].Store(args.y + i * kWidth);
      return;
    }
    case ProbeFunction::kReduceSum16:
      for (int64_t i = 0; i + 16 <= args.size; i += 16) {
        Floats x[16 / kWidth];
        for (int j = 0; j < 16 / kWidth; ++j) {
          x[j] = Floats::Load(args.x + i + j * kWidth);
        }
        args.y[i / 16] = ReduceSum16(x);
      }
      return;
    case ProbeFunction::kReduceMax:
      for (int64_t i = 0; i + kWidth <= args.size; i += kWidth) {
        args.y[i / kWidth] = ReduceMax(Floats::Load(args.x + i));
      }
      return;
    case ProbeFunction::kCopy:
      return Map(args, [](Floats x) { return x; });
    case ProbeFunction::kMin:
      return Map(args, [](Floats x) { return Min(x, 0.0f); });
    case ProbeFunction::kMax:
      return Map(args, [](Floats x) { return Max(x, 0.0f); });
    case ProbeFunction::kBitsOfLess:
      for (int64_t i = 0; i + kWidth <= args.size; i += kWidth) {
        args.y[i / kWidth] =
            static_cast<float>(Bits(Floats::Load(args.x + i) < 0.0f));
      }
      return;
    case ProbeFunction::kSelectNotLess:
      return Map(args,
                 [](Floats x) { return Select(!(x < Floats(0.0f)), x, -x); });
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
