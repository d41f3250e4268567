// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/operations/operation_table.h"

#include <set>

#include "core/errors.h"
#include "core/text/suggestion.h"

namespace softmoe::verify {

const std::vector<const Operation*>& Operations() {
#define SOFTMOE_ADDRESS(name, Name, ...) &Name##Operation(),
  static const std::vector<const Operation*> operations = {
      SOFTMOE_OPERATIONS(SOFTMOE_ADDRESS)};
  return operations;
}

const Operation& FindOperation(const std::string& name) {
  std::vector<std::string> names;
  for (const Operation* operation : Operations()) {
    if (operation->name() == name) return *operation;
    names.push_back(operation->name());
  }
  throw ConfigError("unknown operation '" + name + "'; " +
                    Suggestion(name, names));
}

#define SOFTMOE_TAKE_F32(name, Name) all.rows[#name] = Run##Name;
#define SOFTMOE_TAKE_Bf16(name, Name) all.bf16[#name] = Run##Name;
#define SOFTMOE_TAKE_Both(name, Name) \
  all.rows[#name] = Run##Name<float>; \
  all.bf16[#name] = Run##Name<kernels::Bf16>;
#define SOFTMOE_TAKE_Rows(name, Name)
#define SOFTMOE_TAKE_OnCpu(name, Name) all.cpu[#name] = Run##Name##OnCpu;
#define SOFTMOE_TAKE_None(name, Name)
#define SOFTMOE_TAKE_AtDouble(name, Name) \
  all.at_double[#name] = Run##Name##AtDouble;
#define SOFTMOE_TAKE(name, Name, activations, cpu, body, sums)          \
  SOFTMOE_TAKE_##activations(name, Name) SOFTMOE_TAKE_##cpu(name, Name) \
      SOFTMOE_TAKE_##body(name, Name)

const Adapters& AdapterTable() {
  static const Adapters adapters = [] {
    Adapters all;
    SOFTMOE_OPERATIONS(SOFTMOE_TAKE)
    return all;
  }();
  return adapters;
}

bool HasSumsOfALibrary(const std::string& name) {
#define SOFTMOE_OF_Ours(name)
#define SOFTMOE_OF_Library(name) #name,
#define SOFTMOE_OF(name, Name, activations, cpu, body, sums) \
  SOFTMOE_OF_##sums(name)
  static const std::set<std::string> those = {SOFTMOE_OPERATIONS(SOFTMOE_OF)};
  return those.contains(name);
}

}  // namespace softmoe::verify
