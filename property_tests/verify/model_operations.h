// SPDX-License-Identifier: Apache-2.0
//
// model_operations.h - the operations around the router (SPEC.md 3.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_MODEL_OPERATIONS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_MODEL_OPERATIONS_H_

#include "property_tests/verify/operation.h"

namespace softmoe::verify {

// inputs   x, d_y, d_x_before [rows, d_model]; weight [d_model]; epsilon []
// outputs  y, d_x [rows, d_model] (d_x_before is added), d_weight [d_model],
//          rstd [rows] (optional)
const Operation& RmsNormOperation();

// inputs   table [vocab_size, d_model], ids (i32, [rows]), d_out
// outputs  out [rows, d_model], d_table
const Operation& EmbeddingOperation();

// inputs   hidden [rows, d_model], head_weight [vocab_size, d_model], targets
//          (i32, [rows]), grad_scale []: the cotangent of every token's loss
// outputs  loss [rows], d_hidden, d_head_weight
const Operation& LmHeadOperation();

// inputs   hidden [rows, d_model], gates [rows, experts], active (i32, 0 or 1),
//          gate_up_weight [experts, d_model, 2*d_ffn], down_weight [experts,
//          d_ffn, d_model], out_before [rows, d_model], d_out
// outputs  out (out_before is added), d_hidden, d_gates (0 where inactive),
//          d_gate_up_weight, d_down_weight
const Operation& ExpertsOperation();

// inputs   qkv [sequences*length, 3*heads*head_dim], rotated; d_out
// outputs  out [sequences*length, heads*head_dim], d_qkv
const Operation& AttentionOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_MODEL_OPERATIONS_H_
