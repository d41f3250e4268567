// SPDX-License-Identifier: Apache-2.0
//
// initialize.h - the initial parameters of SPEC.md 3.2.
//
// Element e of tensor i of the layout (i counts in buffer order) is
//   kNormal, kScaledNormal, kRouterNormal  float(std * z), where std is
//     model.init_std, model.init_std / sqrt(2 num_layers), router_init_std()
//   kOnes, kZeros                          1, 0
// where z is the (e mod 4)-th standard normal of the four words
//   PhiloxWords({seed, kParameters, step = 0, layer = i}, e / 4):
// z_0, z_1 = NormalsFromWords(w0, w1) and z_2, z_3 = NormalsFromWords(w2, w3).
// Products are taken in double and rounded once. So a parameter depends on the
// seed, its tensor's place in the layout and its index, and on nothing else.
#ifndef SOFTMOE_OPTIMIZED_INITIALIZE_H_
#define SOFTMOE_OPTIMIZED_INITIALIZE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/parallel_for.h"
#include "optimized/model.h"

namespace softmoe::optimized {

// Overwrites `values` with the initial tensor `tensor_index` of the layout.
void InitializeTensor(const Config& config, const ParameterLayout& layout,
                      size_t tensor_index, uint64_t seed,
                      std::span<float> values, ThreadPool& pool);

// Draws the parameters of `model` from `seed` (Philox stream kParameters), with
// the threads of `pool`.
void InitializeParameters(Model& model, uint64_t seed, ThreadPool& pool);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_INITIALIZE_H_
