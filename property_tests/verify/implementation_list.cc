// SPDX-License-Identifier: Apache-2.0
//
// The list of families: the part of impl= before the colon.
#include <functional>
#include <map>

#include "core/errors.h"
#include "core/text/suggestion.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/foreign/foreign_implementations.h"
#include "property_tests/verify/implementations/implementations.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

using Maker =
    std::function<std::unique_ptr<Implementation>(const std::string&)>;

Maker Reference(Dtype dtype) {
  return [dtype](const std::string& argument) {
    auto implementation = MakeReferenceImplementation(dtype);
    if (!argument.empty()) {
      throw ConfigError("impl " + implementation->name() +
                        " takes nothing after a colon");
    }
    return implementation;
  };
}

const std::map<std::string, Maker>& Families() {
  static const std::map<std::string, Maker> families = {
      {"reference_f32", Reference(Dtype::kF32)},
      {"reference_bf16", Reference(Dtype::kBf16)},
      {"reference_f64", Reference(Dtype::kF64)},
      {"cpu",
       [](const std::string& argument) {
         return MakeCpuImplementation(argument, AdapterTable());
       }},
      {"shim",
       [](const std::string& argument) {
         return MakeShimImplementation(argument, AdapterTable());
       }},
      {"ptx",
       [](const std::string& argument) {
         return MakePtxImplementation(argument, AdapterTable());
       }},
      {"cuda",
       [](const std::string& argument) {
         return MakeCudaImplementation(argument, AdapterTable());
       }},
      {"faulty", MakeFaultyImplementation},
      {"same", MakeSameBitsImplementation},
      {"exec",
       [](const std::string& path) -> std::unique_ptr<Implementation> {
         throw ConfigError(
             "impl exec:" + path +
             ": a program is started once, not for every file: use serve:PATH "
             "(property_tests/verify/foreign/README.md), or export-vectors and "
             "check-vectors");
       }},
      {"serve", MakeServeImplementation},
      {"lib", MakeLibImplementation},
      {"recorded", MakeRecordedImplementation},
  };
  return families;
}

}  // namespace

std::unique_ptr<Implementation> MakeImplementation(const std::string& name) {
  const size_t colon = name.find(':');
  const auto family = Families().find(name.substr(0, colon));
  if (family == Families().end()) {
    std::vector<std::string> known = ImplementationNames();
    known.insert(known.end(), {"serve:PATH", "lib:PATH"});
    throw ConfigError("unknown implementation '" + name + "'; " +
                      Suggestion(name, known));
  }
  return family->second(colon == std::string::npos ? ""
                                                   : name.substr(colon + 1));
}

std::vector<std::string> ImplementationNames() {
  return {"cpu:v3",     "cpu:v4",        "shim",          "ptx",
          "cuda",       "shim:bf16",     "ptx:bf16",      "cuda:bf16",
          "cpu:double", "reference_f32", "reference_bf16"};
}

}  // namespace softmoe::verify
