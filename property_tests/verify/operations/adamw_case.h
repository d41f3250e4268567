// SPDX-License-Identifier: Apache-2.0
//
// adamw_case.h - a case of operation "adamw" as the optimizers read it: one
// tensor with weight decay and one without.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_CASE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_CASE_H_

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/expected.h"

namespace softmoe::verify {

struct AdamWCase {
  TrainingConfig training;
  ParameterLayout layout{Config{}};
  int64_t completed;  // updates before the first

  AdamWCase(const Case& c, const TensorMap& inputs)
      : completed(c.Size("completed")) {
    training.beta1 = ScalarOf(inputs, "beta1");
    training.beta2 = ScalarOf(inputs, "beta2");
    training.adam_epsilon = ScalarOf(inputs, "epsilon");
    training.weight_decay = ScalarOf(inputs, "weight_decay");
    training.clip_norm = ScalarOf(inputs, "clip_norm");
    const int64_t matrix = c.Size("matrix_size");
    const int64_t vector = c.Size("vector_size");
    layout.tensors = {{.name = "matrix",
                       .shape = {matrix, 1},
                       .offset = 0,
                       .size = matrix,
                       .weight_decay = true},
                      {.name = "vector",
                       .shape = {vector},
                       .offset = matrix,
                       .size = vector,
                       .weight_decay = false}};
    layout.total = matrix + vector;
  }
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_CASE_H_
