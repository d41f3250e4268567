// SPDX-License-Identifier: Apache-2.0
//
// ptx_device.h - runs kernels of the simulated device (../device) from the PTX
// that nvcc makes of their source, instead of from the source.
#ifndef SOFTMOE_KERNELS_SIMT_PTX_PTX_DEVICE_H_
#define SOFTMOE_KERNELS_SIMT_PTX_PTX_DEVICE_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/simt/device/kernel_launch.h"
#include "kernels/simt/ptx/program.h"

namespace softmoe::ptx {

// A kernel of the program is found in the PTX by its readable name, with the
// types of its parameters; namespaces that begin with isa_ count as one.
class PtxDevice : public simt::KernelRunner {
 public:
  // Reads all files. Throws EnvironmentError if one cannot be read, DataError
  // as ReadProgram does and if two kernels have the same name.
  explicit PtxDevice(const std::vector<std::filesystem::path>& files);
  ~PtxDevice() override;

  // Makes kernels run from this PTX, until Suspend or for ever.
  void Use();
  static void Suspend();

  const char* Run(const simt::Grid& grid,
                  const simt::KernelCall& call) override;

  // The kernels by their readable names, with what was executed so far.
  const std::map<std::string, Kernel>& kernels() const { return kernels_; }

 private:
  Kernel& Find(const void* kernel);

  std::map<std::string, Kernel> kernels_;
  std::map<const void*, Kernel*> found_;
  std::string message_;
};

}  // namespace softmoe::ptx

#endif  // SOFTMOE_KERNELS_SIMT_PTX_PTX_DEVICE_H_
