// SPDX-License-Identifier: Apache-2.0
//
// soft_topk_library.cc - the soft top-k of soft_topk.h for
// `verify run op=lapsum impl=lib:./soft_topk_library.so`.
#include <cstdio>

#include "property_tests/verify/examples/soft_topk.h"
#include "property_tests/verify/foreign/softmoe_verify_abi.h"

namespace {

float* Floats(const softmoe_verify_tensor* tensors, int32_t count,
              const char* name) {
  return static_cast<float*>(softmoe_verify_find(tensors, count, name)->data);
}

}  // namespace

extern "C" {

int32_t softmoe_verify_abi_version(void) { return SOFTMOE_VERIFY_ABI_VERSION; }

int32_t softmoe_verify_supports(const char* op, int32_t dtype) {
  return strcmp(op, "lapsum") == 0 && dtype == SOFTMOE_VERIFY_F32;
}

int32_t softmoe_verify_run(const softmoe_verify_call* call) {
  const auto input = [call](const char* name) {
    return Floats(call->inputs, call->num_inputs, name);
  };
  const auto output = [call](const char* name) {
    return Floats(call->outputs, call->num_outputs, name);
  };
  const int64_t* shape =
      softmoe_verify_find(call->inputs, call->num_inputs, "scores")->dims;
  const soft_topk::Problem problem = {shape[0],
                                      shape[1],
                                      input("scores"),
                                      input("d_weights"),
                                      *input("mean_active"),
                                      *input("temperature")};
  if (!(problem.temperature > 0)) {
    snprintf(call->message, static_cast<size_t>(call->message_size),
             "temperature %g is not positive", problem.temperature);
    return SOFTMOE_VERIFY_FAILED;
  }
  soft_topk::Run(problem, soft_topk::PlantedBug(),
                 {output("weights"), output("d_scores"),
                  output("d_mean_active"), output("d_temperature")});
  return SOFTMOE_VERIFY_OK;
}

}  // extern "C"
