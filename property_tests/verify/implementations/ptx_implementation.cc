// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/errors.h"
#include "core/files/paths.h"
#include "kernels/simt/ptx/ptx_device.h"
#include "property_tests/verify/implementations/device_implementation.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

// Kernels run as PTX while it lives.
struct InPtx {
  InPtx() { Ptx().Use(); }
  ~InPtx() { ptx::PtxDevice::Suspend(); }
};

template <typename Activation>
class PtxImplementation : public Implementation {
 public:
  explicit PtxImplementation(const Adapters& adapters)
      : shim_(MakeShimImplementation(
            kDtypeOf<Activation> == Dtype::kBf16 ? "bf16" : "", adapters)) {}

  std::string name() const override { return DeviceName<Activation>("ptx"); }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    const std::string why = shim_->WhyUnsupported(op, dtype);
    return why.empty() ? WhyNoPtx() : why;
  }
  int schedules() const override { return shim_->schedules(); }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    const InPtx in_ptx;
    return shim_->Run(op, c, inputs, schedule);
  }

 private:
  std::unique_ptr<Implementation> shim_;
};

// The PTX of the sources of //kernels/cuda, in order of their names; none if it
// was built without the toolkit.
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

}  // namespace

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
  return MakeDeviceImplementation<PtxImplementation>("ptx", activations,
                                                     adapters);
}

}  // namespace softmoe::verify
