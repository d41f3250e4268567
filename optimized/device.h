// SPDX-License-Identifier: Apache-2.0
//
// device.h - what models compute on: the CPU, or a CUDA device.
//
// `runtime.device` says which one a run uses; only backend.h and what includes
// it know more than this interface.
#ifndef SOFTMOE_OPTIMIZED_DEVICE_H_
#define SOFTMOE_OPTIMIZED_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/config/config.h"
#include "core/parallel_for.h"

namespace softmoe::optimized {

class Communicator;
class Model;

// What the bits of a run depend on besides its configuration and its tokens
// (DESIGN.md, "Determinism").
struct DeviceIdentity {
  std::string isa;  // of the kernels: "v3" or "v4"; of a GPU, "sm_90"
  // GPU only; empty on the CPU:
  std::string backend;    // "cuda"; in tests also "simulated"
  std::string model;      // "NVIDIA H100 80GB HBM3"
  std::string libraries;  // "driver 13.0, CUDA runtime 13.0, cuBLASLt 13.1.0"
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceIdentity identity() const = 0;

  // Returns a model that computes here; the CPU's uses the threads of `pool`.
  // It keeps references to this device, `pool` and `communicator`.
  //
  //   communicator  of the ranks that train it, if there are several: in bf16
  //                 each holds only a part of it (backend_parameters.h);
  //                 nullptr if it is not trained, or by one process
  // Errors   std::bad_alloc or EnvironmentError if there is too little memory.
  virtual std::unique_ptr<Model> MakeModel(const Config& config,
                                           int64_t group_sequences,
                                           ThreadPool& pool,
                                           Recompute recompute,
                                           Communicator* communicator) = 0;

  // Bytes of memory that models may take, as far as is known.
  virtual int64_t FreeMemory() const = 0;

  // How many such devices this process has; more ranks than that share them.
  virtual int count() const = 0;

  // Identifies this device among those of its machine; empty for the CPU.
  virtual std::string id() const = 0;

  // Why ranks that each have such a device cannot send arrays to each other
  // (CarrierKind::kNccl), and what to do; "" if they can.
  virtual std::string WhyNoLink() const = 0;

  // Returns the device for rank `rank` of those on this machine: number
  // rank % count(), with a queue of its own. To be called, and its result used,
  // by the thread of that rank.
  // Errors   EnvironmentError if it has no memory for the queue, or is of
  //          another kind, on which ranks would not have the same bits.
  virtual std::unique_ptr<Device> OfRank(int rank) const = 0;
};

// The CPU, with the instruction set in use (kernels/isa.h).
Device& Cpu();

// Returns the device that `runtime` asks for. "cpu" or "": the CPU, with
// runtime.isa for the rest of the program. "cuda": device number
// rank % count(), with a queue of its own, to be used by the calling thread or,
// if that is device 0, by any thread.
//
//   rank  of this process among those on this machine
// Errors   ConfigError for another name, or an isa that is unknown or beside
//          "cuda"; EnvironmentError, with what was found, what is needed and
//          what to do, if this machine or program lacks the device or isa.
std::unique_ptr<Device> MakeDevice(const RuntimeConfig& runtime, int rank = 0);

// Throws ConfigError, naming key and remedy, unless what `runtime` asks for can
// train in the precision of `config`: the CPU cannot in bf16, nor can a device
// if sizes do not suit its bf16 products (kernels/cuda/bf16_sizes.h).
void CheckPrecision(const Config& config, const RuntimeConfig& runtime);

// Makes the device for "cuda". Only simulated_device.cc sets another maker,
// before main: a test that links it gets the simulated device instead.
using DeviceMaker = std::unique_ptr<Device> (*)(int rank);
DeviceMaker& CudaDeviceMaker();

// Makes the CPU device for MakeDevice, with the instruction set in use
// (kernels/isa.h).
std::unique_ptr<Device> MakeCpuDevice();

// Make a GPU, or the simulated one: device number rank % count(), and a queue
// on it. Without a CUDA toolkit no_cuda_device.cc defines MakeGpuDevice of
// backend_cuda, which then always throws.
// Errors   EnvironmentError: RequireDevice of kernels/cuda/device_facts.h, or
//          no memory for the queue.
inline namespace backend_cuda {
std::unique_ptr<Device> MakeGpuDevice(int rank);
}
inline namespace backend_simulated {
std::unique_ptr<Device> MakeGpuDevice(int rank);
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_DEVICE_H_
