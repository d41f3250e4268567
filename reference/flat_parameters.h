// SPDX-License-Identifier: Apache-2.0
//
// flat_parameters.h - the tensors of a flat parameter or gradient vector laid
// out by core/config/parameter_layout.h, as the reference's matrices.
#ifndef SOFTMOE_REFERENCE_FLAT_PARAMETERS_H_
#define SOFTMOE_REFERENCE_FLAT_PARAMETERS_H_

#include <cstdint>
#include <string>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "reference/decoder_block.h"
#include "reference/matrix.h"

namespace softmoe::reference {

// The [rows, cols] matrix stored row-major at `offset` of `flat`.
Matrix ReadMatrix(const Vector& flat, int64_t offset, int64_t rows,
                  int64_t cols);
// Writes `matrix` at `offset` of `flat`, row-major.
void WriteMatrix(const Matrix& matrix, int64_t offset, Vector* flat);

// Reads and writes the weights, or gradients, of layer `layer`.
DecoderBlockWeights ReadBlock(const ModelConfig& model,
                              const ParameterLayout& layout, int64_t layer,
                              const Vector& flat);
void WriteBlock(const DecoderBlockWeights& weights,
                const ParameterLayout& layout, int64_t layer, Vector* flat);

// The tensor called `name` ("layers.0.router_weight") of a layout. Throws
// InternalError for a name that the layout does not have.
const ParameterTensor& TensorNamed(const ParameterLayout& layout,
                                   const std::string& name);

// The elements of one tensor of `flat`.
Vector TensorElements(const ParameterTensor& tensor, const Vector& flat);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_FLAT_PARAMETERS_H_
