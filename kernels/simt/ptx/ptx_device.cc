// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/ptx/ptx_device.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <regex>
#include <span>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/device/guarded_memory.h"
#include "kernels/simt/ptx/grid.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::ptx {
namespace {

// Returns a kernel's C++ name, whoever compiled it and for what.
std::string ReadableName(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
      std::free);
  if (text == nullptr) return mangled;
  static const std::regex isa("\\bisa_[a-z0-9_]+");
  return std::regex_replace(text.get(), isa, "isa");
}

// The functions of an ELF file, by their addresses there. dladdr knows only
// those that are exported, which kernels are not.
std::map<uint64_t, std::string> FunctionsOf(const std::string& path) {
  const std::string file = ReadWholeFile(path);
  const auto at = [&]<typename T>(uint64_t offset, T*) {
    T value;
    if (offset + sizeof(T) > file.size()) {
      throw EnvironmentError(path + ": no ELF file");
    }
    memcpy(&value, file.data() + offset, sizeof(T));
    return value;
  };
  const auto header = at(0, static_cast<Elf64_Ehdr*>(nullptr));
  const auto section = [&](size_t number) {
    return at(header.e_shoff + number * sizeof(Elf64_Shdr),
              static_cast<Elf64_Shdr*>(nullptr));
  };
  std::map<uint64_t, std::string> functions;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section(table.sh_link);
    for (size_t s = 0; s < table.sh_size; s += sizeof(Elf64_Sym)) {
      const auto symbol =
          at(table.sh_offset + s, static_cast<Elf64_Sym*>(nullptr));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      functions[symbol.st_value] =
          file.c_str() + names.sh_offset + symbol.st_name;
    }
  }
  if (functions.empty()) {
    throw EnvironmentError(path +
                           " has no symbols, by which kernels are found in "
                           "PTX; do not strip it");
  }
  return functions;
}

std::string NameOf(const void* function) {
  Dl_info info = {}, own = {};
  if (dladdr(function, &info) == 0 ||
      dladdr(reinterpret_cast<const void*>(&FunctionsOf), &own) == 0 ||
      info.dli_fbase != own.dli_fbase) {
    throw InternalError("a kernel that is not in the program itself");
  }
  static const std::map<uint64_t, std::string> functions =
      FunctionsOf("/proc/self/exe");
  const uint64_t address = reinterpret_cast<uint64_t>(function) -
                           reinterpret_cast<uint64_t>(info.dli_fbase);
  const auto found = functions.find(address);
  if (found == functions.end()) {
    throw InternalError("a kernel that is not in the program's symbols");
  }
  return ReadableName(found->second);
}

Extent AllocationAt(uint64_t address) {
  simt::Allocation* allocation = simt::DeviceMemory().Find(
      reinterpret_cast<const void*>(address));  // NOLINT: a device's address
  if (allocation == nullptr || !allocation->live) return {};
  return {reinterpret_cast<uint64_t>(allocation->begin), allocation->size};
}

}  // namespace

PtxDevice::PtxDevice(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    for (Kernel& kernel :
         ReadProgram(file.filename().string(), ReadWholeFile(file))) {
      const std::string name = ReadableName(kernel.name);
      if (!kernels_.emplace(name, std::move(kernel)).second) {
        throw DataError(
            file.string() +
            ": an earlier file, or this one, already has a kernel " + name);
      }
    }
  }
}

PtxDevice::~PtxDevice() { Suspend(); }

void PtxDevice::Use() { simt::SetKernelRunner(this); }
void PtxDevice::Suspend() { simt::SetKernelRunner(nullptr); }

Kernel& PtxDevice::Find(const void* kernel) {
  Kernel*& found = found_[kernel];
  if (found == nullptr) {
    const std::string name = NameOf(kernel);
    const auto entry = kernels_.find(name);
    if (entry == kernels_.end()) throw Fault("no PTX of kernel " + name);
    found = &entry->second;
  }
  return *found;
}

const char* PtxDevice::Run(const simt::Grid& grid,
                           const simt::KernelCall& call) {
  try {
    Kernel& kernel = Find(call.kernel);
    const std::span parameters(call.parameters,
                               static_cast<size_t>(call.num_parameters));
    if (parameters.size() != kernel.parameters.size()) {
      throw Fault(kernel.name + " has a different number of parameters in PTX");
    }
    Launch launch;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& place = kernel.parameters[i];
      if (parameters[i].size != place.size) {
        throw Fault(fmt::format("{}: parameter {} has {} bytes in PTX, not {}",
                                kernel.name, i + 1, place.size,
                                parameters[i].size));
      }
      launch.parameters.resize(place.begin + place.size);
      memcpy(launch.parameters.data() + place.begin, parameters[i].at,
             place.size);
    }
    launch.blocks = grid.blocks;
    launch.threads = grid.threads;
    launch.dynamic_shared = grid.dynamic_shared;
    if (grid.dynamic_shared_limit > 0 &&
        grid.dynamic_shared <= grid.dynamic_shared_limit) {
      launch.shared_limit = simt::ChosenDeviceLimits().shared_memory_per_block;
    }
    launch.find = AllocationAt;
    launch.schedule = simt::ChosenSchedule();
    launch.seed = simt::ChosenSeed();
    RunGrid(launch, &kernel);
    return nullptr;
  } catch (const std::exception& error) {
    message_ = error.what();
    return message_.c_str();
  }
}

}  // namespace softmoe::ptx
