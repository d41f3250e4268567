// SPDX-License-Identifier: Apache-2.0
//
// kernel_launch.h - what a launch keeps until it runs: the kernel, its
// arguments, and the pointers among them.
//
// Pointers are found by type, in nested structs, too: a parameter must be a
// number, an enum, a pointer, or an aggregate of these without arrays. Anything
// else does not compile, so the only pointers that go unseen are those stored
// as integers, or in memory.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_KERNEL_LAUNCH_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_KERNEL_LAUNCH_H_

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/simt/device/include/cuda_runtime_api.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::simt {

// ---- Pointers among arguments

struct PointerList {
  static constexpr int kMax = 128;
  const void* pointers[kMax];
  int parameters[kMax];  // the parameter of each, from 0
  int size = 0;
  int parameter = 0;  // the one being searched

  void Add(const void* pointer) {
    if (size < kMax) {
      pointers[size] = pointer;
      parameters[size] = parameter;
    }
    ++size;  // more than kMax: the launch is refused
  }
};

// Converts to the type of any field.
struct AnyField {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <typename T, size_t... kIndices>
constexpr bool TakesFields(std::index_sequence<kIndices...>) {
  return requires { T{((void)kIndices, AnyField())...}; };
}

// The number of fields of an aggregate.
template <typename T, size_t kFields = 0>
constexpr size_t CountFields() {
  if constexpr (TakesFields<T>(std::make_index_sequence<kFields + 1>())) {
    return CountFields<T, kFields + 1>();
  } else {
    return kFields;
  }
}

template <typename T>
void CollectPointers(const T& value, PointerList* list);

// clang-format off
#define SOFTMOE_FIELDS_1 f1
#define SOFTMOE_FIELDS_2 SOFTMOE_FIELDS_1, f2
#define SOFTMOE_FIELDS_3 SOFTMOE_FIELDS_2, f3
#define SOFTMOE_FIELDS_4 SOFTMOE_FIELDS_3, f4
#define SOFTMOE_FIELDS_5 SOFTMOE_FIELDS_4, f5
#define SOFTMOE_FIELDS_6 SOFTMOE_FIELDS_5, f6
#define SOFTMOE_FIELDS_7 SOFTMOE_FIELDS_6, f7
#define SOFTMOE_FIELDS_8 SOFTMOE_FIELDS_7, f8
#define SOFTMOE_FIELDS_9 SOFTMOE_FIELDS_8, f9
#define SOFTMOE_FIELDS_10 SOFTMOE_FIELDS_9, f10
#define SOFTMOE_FIELDS_11 SOFTMOE_FIELDS_10, f11
#define SOFTMOE_FIELDS_12 SOFTMOE_FIELDS_11, f12
#define SOFTMOE_FIELDS_13 SOFTMOE_FIELDS_12, f13
#define SOFTMOE_FIELDS_14 SOFTMOE_FIELDS_13, f14
#define SOFTMOE_FIELDS_15 SOFTMOE_FIELDS_14, f15
#define SOFTMOE_FIELDS_16 SOFTMOE_FIELDS_15, f16
#define SOFTMOE_FIELDS_17 SOFTMOE_FIELDS_16, f17
#define SOFTMOE_FIELDS_18 SOFTMOE_FIELDS_17, f18
#define SOFTMOE_FIELDS_19 SOFTMOE_FIELDS_18, f19
#define SOFTMOE_FIELDS_20 SOFTMOE_FIELDS_19, f20
#define SOFTMOE_FIELDS_21 SOFTMOE_FIELDS_20, f21
#define SOFTMOE_FIELDS_22 SOFTMOE_FIELDS_21, f22
#define SOFTMOE_FIELDS_23 SOFTMOE_FIELDS_22, f23
#define SOFTMOE_FIELDS_24 SOFTMOE_FIELDS_23, f24
// clang-format on

#define SOFTMOE_COLLECT_FIELDS(count)             \
  if constexpr (kFields == (count)) {             \
    const auto& [SOFTMOE_FIELDS_##count] = value; \
    return collect(SOFTMOE_FIELDS_##count);       \
  }

template <typename T>
void CollectFromFields(const T& value, PointerList* list) {
  constexpr size_t kFields = CountFields<T>();
  static_assert(kFields <= 24, "add lines to kernel_launch.h");
  [[maybe_unused]] const auto collect = [list](const auto&... fields) {
    (CollectPointers(fields, list), ...);
  };
  SOFTMOE_COLLECT_FIELDS(1)
  SOFTMOE_COLLECT_FIELDS(2)
  SOFTMOE_COLLECT_FIELDS(3)
  SOFTMOE_COLLECT_FIELDS(4)
  SOFTMOE_COLLECT_FIELDS(5)
  SOFTMOE_COLLECT_FIELDS(6)
  SOFTMOE_COLLECT_FIELDS(7)
  SOFTMOE_COLLECT_FIELDS(8)
  SOFTMOE_COLLECT_FIELDS(9)
  SOFTMOE_COLLECT_FIELDS(10)
  SOFTMOE_COLLECT_FIELDS(11)
  SOFTMOE_COLLECT_FIELDS(12)
  SOFTMOE_COLLECT_FIELDS(13)
  SOFTMOE_COLLECT_FIELDS(14)
  SOFTMOE_COLLECT_FIELDS(15)
  SOFTMOE_COLLECT_FIELDS(16)
  SOFTMOE_COLLECT_FIELDS(17)
  SOFTMOE_COLLECT_FIELDS(18)
  SOFTMOE_COLLECT_FIELDS(19)
  SOFTMOE_COLLECT_FIELDS(20)
  SOFTMOE_COLLECT_FIELDS(21)
  SOFTMOE_COLLECT_FIELDS(22)
  SOFTMOE_COLLECT_FIELDS(23)
  SOFTMOE_COLLECT_FIELDS(24)
}

#undef SOFTMOE_COLLECT_FIELDS

template <typename T>
void CollectPointers(const T& value, PointerList* list) {
  if constexpr (std::is_pointer_v<T>) {
    if constexpr (!std::is_function_v<std::remove_pointer_t<T>>) {
      list->Add(value);
    }
  } else if constexpr (!std::is_arithmetic_v<T> && !std::is_enum_v<T> &&
                       !std::is_empty_v<T>) {
    static_assert(std::is_aggregate_v<T> && std::is_trivially_copyable_v<T>,
                  "no pointers can be found in this parameter of a kernel");
    CollectFromFields(value, list);
  }
}

// ---- The launch

struct KernelParameter {
  const void* at;
  size_t size;
};

// A kernel and its arguments. The functions belong to the instrumented program
// and find the arguments in kernel_argument: MSan would not know what
// uninstrumented code passes.
struct KernelCall {
  const void* kernel;
  void* arguments;                    // on the heap
  void (*run)();                      // runs one thread
  void (*destroy)();                  // destroys the arguments
  const KernelParameter* parameters;  // among the arguments
  int num_parameters;
};

// Runs kernels in another way than the simulator does (../ptx).
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  // Returns null, or what is wrong; the text is valid until the next grid.
  virtual const char* Run(const Grid& grid, const KernelCall& call) = 0;
};
// Sets the runner of all kernels from now on; null: the simulator runs them.
void SetKernelRunner(KernelRunner* runner);

// Takes over the arguments, whatever it returns.
cudaError_t QueueKernel(const cudaLaunchConfig_t& config,
                        const KernelCall& call, const PointerList& pointers);

template <typename... Parameters>
cudaError_t LaunchKernel(const cudaLaunchConfig_t& config,
                         void (*kernel)(Parameters...),
                         Parameters... arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
    KernelParameter parameters[sizeof...(Parameters) + 1];
  };
  PointerList pointers;
  ((CollectPointers(arguments, &pointers), ++pointers.parameter), ...);
  KernelCall call;
  call.kernel = reinterpret_cast<const void*>(kernel);
  Call* own = new Call{kernel, {arguments...}, {}};
  call.num_parameters = 0;
  std::apply(
      [&](const auto&... argument) {
        ((own->parameters[call.num_parameters++] = {&argument,
                                                    sizeof(argument)}),
         ...);
      },
      own->arguments);
  call.arguments = own;
  call.parameters = own->parameters;
  // Each thread gets its own copy of the arguments, as on a device.
  call.run = [] {
    const Call& own = *static_cast<const Call*>(kernel_argument);
    std::apply(own.kernel, own.arguments);
  };
  call.destroy = [] { delete static_cast<Call*>(kernel_argument); };
  return QueueKernel(config, call, pointers);
}

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_KERNEL_LAUNCH_H_
