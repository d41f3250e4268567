// SPDX-License-Identifier: Apache-2.0
//
// The implementations that run the CUDA kernels: "shim", "ptx" and "cuda" with
// f32 activations; "shim:bf16", "ptx:bf16" and "cuda:bf16" with bf16 ones.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/paths.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/ptx/ptx_device.h"
#include "kernels/simt/shim/simulator.h"
#include "property_tests/verify/implementations/device_kernels.h"
#include "property_tests/verify/implementations/device_watch.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/implementations/implementations.h"

#ifdef SOFTMOE_HAS_CUDA
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_facts.h"
#endif

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

// Where the CUDA kernels run.
struct Place {
  const char* family;
  bool simulated;
  int schedules;
  std::string (*why_not)();  // "" if they can run here
  // Runs the kernels that `run` calls there, and returns what `run` returns.
  TensorMap (*within)(int schedule, const std::function<TensorMap()>& run);
};

constexpr simt::Schedule kSchedules[] = {simt::Schedule::kAscending,
                                         simt::Schedule::kDescending,
                                         simt::Schedule::kRandom};

TensorMap InSimulator(int schedule, const std::function<TensorMap()>& run) {
  simt::SetSchedule(kSchedules[schedule], 3);
  simt::ForgetFailure();  // the failure of another case
  simt::ForgetFreedMemory();
  try {
    return run();
  } catch (const EnvironmentError& error) {
    // On a real device this would mean broken hardware; here, a broken kernel.
    throw NumericsError(error.what());
  }
}

constexpr Place kShim = {"shim", true, std::size(kSchedules),
                         [] { return std::string(); }, InSimulator};

// Kernels run as PTX during its lifetime.
struct InPtx {
  InPtx() { Ptx().Use(); }
  ~InPtx() { ptx::PtxDevice::Suspend(); }
};

constexpr Place kPtx = {
    "ptx", true, std::size(kSchedules), WhyNoPtx,
    [](int schedule, const std::function<TensorMap()>& run) {
      const InPtx in_ptx;
      return InSimulator(schedule, run);
    }};

// The PTX of the sources of //kernels/cuda, in order of their names; empty if
// built without the toolkit.
std::vector<fs::path> PtxFiles() {
  std::vector<fs::path> files;
  try {
    for (const auto& entry :
         fs::directory_iterator(RunfilePath("kernels/cuda/_cuda/cuda"))) {
      if (entry.path().extension() == ".ptx") files.push_back(entry.path());
    }
  } catch (const EnvironmentError&) {
    return {};
  }
  std::ranges::sort(files);
  return files;
}

#ifdef SOFTMOE_HAS_CUDA

std::string WhyNoDevice() { return kernels::isa_cuda::WhyNoDevice(); }
void FinishDevice() {
  kernels::isa_cuda::FinishStream(kernels::isa_cuda::DeviceStream());
}

template <typename Activation>
RowKernelsOf<Activation> KernelsOnDevice() {
  return SOFTMOE_DEVICE_KERNELS(isa_cuda, Activation);
}

#else

std::string WhyNoDevice() {
  return "built without the CUDA toolkit ($CUDA_HOME or /usr/local/cuda)";
}
void FinishDevice() {}
template <typename Activation>
RowKernelsOf<Activation> KernelsOnDevice() {
  return {};
}

#endif

// Schedules of a device cannot be chosen: every case runs twice.
constexpr Place kCuda = {"cuda", false, 2, WhyNoDevice,
                         [](int, const std::function<TensorMap()>& run) {
                           static DeviceWatch watch(FinishDevice);
                           return watch.Run(run);
                         }};

template <typename Activation>
RowKernelsOf<Activation> SimulatedKernels() {
  return SOFTMOE_DEVICE_KERNELS(isa_shim, Activation);
}

template <typename Activation>
class DeviceImplementation : public Implementation {
 public:
  DeviceImplementation(const Place& place, const Adapters& adapters)
      : place_(place),
        all_(adapters),
        kernels_(place.simulated ? SimulatedKernels<Activation>()
                                 : KernelsOnDevice<Activation>()) {}

  std::string name() const override {
    return std::string(place_.family) +
           (kDtypeOf<Activation> == Dtype::kBf16 ? ":bf16" : "");
  }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    if (dtype != kDtypeOf<Activation>) {
      return fmt::format("the activations of these CUDA kernels are {}",
                         DtypeName(kDtypeOf<Activation>));
    }
    if (DeviceAdapters<Activation>(all_).contains(op.name())) return why_not_;
    return all_.rows.contains(op.name())
               ? "its tensors on a device are always f32"
               : "no CUDA kernel implements the whole operation";
  }
  int schedules() const override { return place_.schedules; }
  bool stores_as_ours() const override { return true; }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    return place_.within(schedule, [&] {
      return DeviceAdapters<Activation>(all_).at(op.name())(c, inputs,
                                                            kernels_);
    });
  }

 private:
  const Place& place_;
  const Adapters& all_;
  const std::string why_not_ = place_.why_not();
  const RowKernelsOf<Activation> kernels_;
};

// `activations` is the text after the colon, "" or "bf16". Throws ConfigError
// for anything else.
std::unique_ptr<Implementation> MakeDeviceImplementation(
    const Place& place, const std::string& activations,
    const Adapters& adapters) {
  if (activations.empty()) {
    return std::make_unique<DeviceImplementation<float>>(place, adapters);
  }
  if (activations == "bf16") {
    return std::make_unique<DeviceImplementation<kernels::Bf16>>(place,
                                                                 adapters);
  }
  throw ConfigError(fmt::format(
      "unknown implementation '{0}:{1}'; there are '{0}' and '{0}:bf16'",
      place.family, activations));
}

}  // namespace

std::unique_ptr<Implementation> MakeShimImplementation(
    const std::string& activations, const Adapters& adapters) {
  return MakeDeviceImplementation(kShim, activations, adapters);
}

std::string WhyNoPtx() {
  static const bool there_is = !PtxFiles().empty();
  if (there_is) return "";
  return "no PTX beside this program: built without the CUDA toolkit "
         "($CUDA_HOME or /usr/local/cuda), or moved";
}

ptx::PtxDevice& Ptx() {
  static ptx::PtxDevice device(PtxFiles());
  return device;
}

std::unique_ptr<Implementation> MakePtxImplementation(
    const std::string& activations, const Adapters& adapters) {
  return MakeDeviceImplementation(kPtx, activations, adapters);
}

std::unique_ptr<Implementation> MakeCudaImplementation(
    const std::string& activations, const Adapters& adapters) {
  return MakeDeviceImplementation(kCuda, activations, adapters);
}

}  // namespace softmoe::verify
