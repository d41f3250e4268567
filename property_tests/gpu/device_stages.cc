// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <string_view>

#include "core/errors.h"
#include "kernels/cuda/device_probes.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/rank_link.h"
#include "property_tests/gpu/device_array.h"
#include "property_tests/gpu/paper_shapes.h"
#include "property_tests/gpu/stages.h"

namespace softmoe::gpu {
namespace {

#define SOFTMOE_TEXT_OF(x) #x
#define SOFTMOE_TEXT(x) SOFTMOE_TEXT_OF(x)
constexpr bool kSimulated =
    std::string_view(SOFTMOE_TEXT(SOFTMOE_DEVICE)) == "isa_shim";

using kernels::Bf16;
using kernels::GemmArgsOf;

std::string Today() {
  const std::time_t now =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm date = {};
  (void)gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1,
                     date.tm_mday);
}

void TellCeiling(const StageContext& context, const std::string& name,
                 const std::string& shape, const std::string& unit,
                 double amount, std::optional<double> seconds) {
  Line line = {
      {"kind", "ceiling"}, {"name", name}, {"shape", shape}, {"unit", unit}};
  if (seconds) line["value"] = amount / *seconds;
  context.tell(line);
}

template <typename T>
void TellSquare(const StageContext& context, const std::string& precision,
                int64_t side) {
  const DeviceArray<T> a(side * side), b(side * side), c(side * side);
  const auto queue =
      device::MakeQueue(device::DeviceStream(), TheShapes().workspace);
  const std::optional<double> seconds = SecondsOf([&] {
    queue->Multiply(kernels::ProductOf(GemmArgsOf<T, T>{.a = a.data(),
                                                        .b = b.data(),
                                                        .c = c.data(),
                                                        .m = side,
                                                        .n = side,
                                                        .k = side,
                                                        .lda = side,
                                                        .ldb = side,
                                                        .ldc = side}));
  });
  const auto n = static_cast<double>(side);
  TellCeiling(context, "product " + precision, fmt::format("{0}x{0}x{0}", side),
              "TFLOP/s", 2 * n * n * n * 1e-12, seconds);
}

// One product of a step: [m, k] [k, n]. Weight gradients are not accumulated.
struct PaperProduct {
  const char* name;
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
};

std::vector<PaperProduct> PaperProducts() {
  const Shapes shapes = TheShapes();
  const auto& model = shapes.model;
  const int64_t tokens = shapes.tokens(), d = model.d_model;
  const int64_t rows = shapes.routed() / model.num_experts;  // per expert
  const int64_t up = 2 * model.d_ffn;
  const int64_t chunk = shapes.head_chunk();
  return {{.name = "qkv", .m = tokens, .n = 3 * d, .k = d},
          {.name = "qkv d_input",
           .m = tokens,
           .n = d,
           .k = 3 * d,
           .transpose_b = true},
          {.name = "qkv d_weight",
           .m = d,
           .n = 3 * d,
           .k = tokens,
           .transpose_a = true},
          {.name = "expert gate and up", .m = rows, .n = up, .k = d},
          {.name = "expert down", .m = rows, .n = d, .k = model.d_ffn},
          {.name = "expert d_activation",
           .m = rows,
           .n = model.d_ffn,
           .k = d,
           .transpose_b = true},
          {.name = "expert d_hidden",
           .m = rows,
           .n = d,
           .k = up,
           .transpose_b = true},
          {.name = "expert d_gate_up_weight",
           .m = d,
           .n = up,
           .k = rows,
           .transpose_a = true},
          {.name = "expert d_down_weight",
           .m = model.d_ffn,
           .n = d,
           .k = rows,
           .transpose_a = true},
          {.name = "head",
           .m = chunk,
           .n = model.vocab_size,
           .k = d,
           .transpose_b = true}};
}

template <typename T>
void TellAlgorithmsOf(const StageContext& context,
                      const std::string& precision) {
  for (const PaperProduct& p : PaperProducts()) {
    const DeviceArray<T> a(p.m * p.k), b(p.k * p.n), c(p.m * p.n);
    for (int choice = 0; choice < kernels::kProductChoices; ++choice) {
      const auto queue = device::MakeQueueOfChoice(
          device::DeviceStream(), choice, TheShapes().workspace);
      std::optional<double> seconds;
      try {
        seconds = SecondsOf([&] {
          queue->Multiply(kernels::ProductOf(
              GemmArgsOf<T, T>{.a = a.data(),
                               .b = b.data(),
                               .c = c.data(),
                               .m = p.m,
                               .n = p.n,
                               .k = p.k,
                               .lda = p.transpose_a ? p.m : p.k,
                               .ldb = p.transpose_b ? p.k : p.n,
                               .ldc = p.n,
                               .transpose_a = p.transpose_a,
                               .transpose_b = p.transpose_b}));
        });
      } catch (const EnvironmentError&) {
        if (choice == 0) throw;
        break;  // the heuristic has no more
      }
      Line line = {
          {"kind", "algorithm"},
          {"name", p.name},
          {"precision", precision},
          {"shape", fmt::format("{}x{}x{}", p.m, p.n, p.k)},
          {"choice", choice},
          {"flops", 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                        static_cast<double>(p.k)}};
      if (seconds) line["seconds"] = *seconds;
      context.tell(line);
    }
  }
}

}  // namespace

bool IsSimulated() { return kSimulated; }

bool TellFacts(const StageContext& context) {
  const kernels::DeviceFacts facts = device::RequireDevice();
  SOFTMOE_CHECK((facts.backend == "simulated") == kSimulated) << facts.backend;
  context.tell({{"kind", "facts"},
                {"model", facts.model},
                {"architecture", facts.architecture},
                {"libraries", facts.libraries},
                {"memory_bytes", device::FreeMemory()},
                {"date", Today()}});
  return true;
}

bool TellProbes(const StageContext& context) {
  bool all = true;
  for (const kernels::DeviceProbe& probe : device::AskDevice()) {
    context.tell({{"kind", "probe"},
                  {"name", probe.name},
                  {"passed", probe.holds},
                  {"answer", probe.answer}});
    all = all && probe.holds;
  }
  return all;
}

std::string WhyNoNccl() { return device::WhyNoLink(); }

bool TellCeilings(const StageContext& context) {
  const Shapes shapes = TheShapes();
  {
    const DeviceArray<float> from(shapes.copied), to(shapes.copied);
    const std::optional<double> seconds = SecondsOf([&] {
      device::CopyOnDevice(to.data(), from.data(),
                           static_cast<size_t>(from.bytes()),
                           device::DeviceStream());
    });
    TellCeiling(context, "copy", fmt::format("{} bytes", from.bytes()), "GB/s",
                2 * static_cast<double>(from.bytes()) * 1e-9, seconds);
  }
  TellSquare<Bf16>(context, "bf16", shapes.bf16_side);
  TellSquare<float>(context, "fp32", shapes.fp32_side);
  return true;
}

bool TellAlgorithms(const StageContext& context) {
  TellAlgorithmsOf<Bf16>(context, "bf16");
  TellAlgorithmsOf<float>(context, "fp32");
  return true;
}

}  // namespace softmoe::gpu
