// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/launch.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

#ifdef SOFTMOE_CUDA_SHIM
constexpr char kBackend[] = "simulated";
constexpr int kArchitectures[] = {800, 900, 1000};
#else
constexpr char kBackend[] = "cuda";
constexpr int kArchitectures[] = {__CUDA_ARCH_LIST__};
#endif

__global__ void NothingKernel() {}

// "13.0" for 13000, a version of drivers and runtimes.
std::string Release(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

// "13.1.0" for 130100.
std::string CublasRelease(size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string CompiledArchitectures() {
  std::string text;
  for (const int architecture : kArchitectures) {
    if (!text.empty()) text += ", ";
    text += "sm_" + std::to_string(architecture / 10);
  }
  return text;
}

void RequireSuccess(cudaError_t error, const std::string& found,
                    const std::string& remedy) {
  if (error == cudaSuccess) return;
  const std::string why = cudaGetErrorString(error);
  (void)cudaGetLastError();  // or it stays the last error
  throw EnvironmentError(found + " (" + why + "); " + remedy);
}

// With these variables the library computes fp32 products in TF32, emulates
// their arithmetic, or takes its algorithms from a file: other bits, of which
// the identity of a run would not tell.
void RequirePlainProducts() {
  constexpr const char* kPrefixes[] = {"NVIDIA_TF32_OVERRIDE=", "CUBLAS_EMULAT",
                                       "CUBLAS_FIXEDPOINT_EMULATION",
                                       "CUBLASLT_HEURISTICS_LUT_FILE="};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    for (const std::string_view prefix : kPrefixes) {
      if (text.substr(0, prefix.size()) != prefix) continue;
      const std::string name(text.substr(0, text.find('=')));
      throw EnvironmentError("the environment has " + name +
                             ", which changes the bits of products; start "
                             "again without it (unset " +
                             name + ")");
    }
  }
}

// Returns the versions, once driver and runtime fit, and counts the devices.
// Nothing here makes a context.
std::string RequireDriver(int* devices) {
  RequirePlainProducts();
  int runtime = 0, driver = 0, count = 0;
  RequireSuccess(cudaRuntimeGetVersion(&runtime), "no CUDA runtime",
                 "it is part of this program, which seems to be damaged");
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  const std::string needed = Release(runtime / 1000 * 1000);
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (driver == 0) {
    RequireSuccess(error == cudaSuccess ? cudaErrorInsufficientDriver : error,
                   "no NVIDIA driver is installed",
                   "install one for CUDA " + needed +
                       " or later, and look with nvidia-smi; a container must "
                       "be started with the host's (--gpus all, --nv)");
  }
  if (error == cudaErrorInsufficientDriver) {
    RequireSuccess(
        error,
        "the NVIDIA driver is too old: it is for CUDA " + Release(driver),
        "install one for CUDA " + needed +
            " or later; for a data-centre GPU NVIDIA's forward-compatibility "
            "package (cuda-compat) of that version will do, with its folder in "
            "LD_LIBRARY_PATH; or build with an older toolkit");
  }
  constexpr char kLook[] =
      "look with nvidia-smi, and whether CUDA_VISIBLE_DEVICES hides it";
  const std::string by = " (driver " + Release(driver) + ")";
  RequireSuccess(error, "no CUDA device" + by, kLook);
  RequireSuccess(count > 0 ? cudaSuccess : cudaErrorNoDevice,
                 "no CUDA device" + by, kLook);
  *devices = count;
  return "driver " + Release(driver) + ", CUDA runtime " + Release(runtime);
}

}  // namespace

DeviceFacts RequireDevice(int number) {
  DeviceFacts facts;
  facts.backend = kBackend;
  facts.libraries = RequireDriver(&facts.count);
  const std::string silent =
      "device " + std::to_string(number) + " does not answer";
  constexpr char kLook[] = "look at it with nvidia-smi";
  RequireSuccess(cudaSetDevice(number), silent, kLook);
  cudaDeviceProp properties;
  RequireSuccess(cudaGetDeviceProperties(&properties, number), silent, kLook);
  facts.model = properties.name;
  for (const char byte : properties.uuid.bytes) {
    facts.id += "0123456789abcdef"[byte >> 4 & 15];
    facts.id += "0123456789abcdef"[byte & 15];
  }
  facts.architecture = "sm_" + std::to_string(properties.major) +
                       std::to_string(properties.minor);
  // Fails for an architecture that this program holds no code for.
  cudaFuncAttributes attributes;
  RequireSuccess(cudaFuncGetAttributes(&attributes, NothingKernel),
                 facts.model + " is " + facts.architecture +
                     ", and this program holds code for " +
                     CompiledArchitectures(),
                 "use such a device, or add the architecture to "
                 "bazel/cuda_configure.bzl and build again");
  const size_t cublas = cublasLtGetVersion();
  if (cublas == 0) {
    throw EnvironmentError(
        std::string("no cuBLASLt: ") +
        cublasLtGetStatusString(CUBLAS_STATUS_NOT_INITIALIZED));
  }
  facts.libraries += ", cuBLASLt " + CublasRelease(cublas);
  return facts;
}

int RequireDevices() {
  int devices = 0;
  (void)RequireDriver(&devices);
  return devices;
}

std::string WhyNoDevice() {
  try {
    (void)RequireDevice();
    return "";
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
