// SPDX-License-Identifier: Apache-2.0
#include "reference/flat_parameters.h"

#include "core/errors.h"

namespace softmoe::reference {

Matrix ReadMatrix(const Vector& flat, int64_t offset, int64_t rows,
                  int64_t cols) {
  SOFTMOE_CHECK(offset >= 0 && offset + rows * cols <= flat.size())
      << "[" << rows << ", " << cols << "] at " << offset << " of "
      << flat.size();
  return Eigen::Map<const Matrix>(flat.data() + offset, rows, cols);
}

void WriteMatrix(const Matrix& matrix, int64_t offset, Vector* flat) {
  SOFTMOE_CHECK(offset >= 0 && offset + matrix.size() <= flat->size());
  Eigen::Map<Matrix>(flat->data() + offset, matrix.rows(), matrix.cols()) =
      matrix;
}

DecoderBlockWeights ReadBlock(const ModelConfig& model,
                              const ParameterLayout& layout, int64_t layer,
                              const Vector& flat) {
  const LayerOffsets& at = layout.layers.at(layer);
  const int64_t d_model = model.d_model;
  const int64_t d_ffn = model.d_ffn;
  DecoderBlockWeights weights;
  weights.attention_norm = ReadMatrix(flat, at.attention_norm, d_model, 1);
  weights.qkv_weight = ReadMatrix(flat, at.qkv_weight, d_model, 3 * d_model);
  weights.output_weight = ReadMatrix(flat, at.output_weight, d_model, d_model);
  weights.moe_norm = ReadMatrix(flat, at.moe_norm, d_model, 1);
  weights.moe.router_weight =
      ReadMatrix(flat, at.router_weight, d_model, model.num_experts);
  for (int64_t e = 0; e < model.num_experts; ++e) {
    weights.moe.gate_up_weight.push_back(ReadMatrix(
        flat, at.gate_up_weight + e * d_model * 2 * d_ffn, d_model, 2 * d_ffn));
    weights.moe.down_weight.push_back(
        ReadMatrix(flat, at.down_weight + e * d_ffn * d_model, d_ffn, d_model));
  }
  return weights;
}

void WriteBlock(const DecoderBlockWeights& weights,
                const ParameterLayout& layout, int64_t layer, Vector* flat) {
  const LayerOffsets& at = layout.layers.at(layer);
  WriteMatrix(weights.attention_norm, at.attention_norm, flat);
  WriteMatrix(weights.qkv_weight, at.qkv_weight, flat);
  WriteMatrix(weights.output_weight, at.output_weight, flat);
  WriteMatrix(weights.moe_norm, at.moe_norm, flat);
  WriteMatrix(weights.moe.router_weight, at.router_weight, flat);
  int64_t gate_up = at.gate_up_weight;
  for (const Matrix& expert : weights.moe.gate_up_weight) {
    WriteMatrix(expert, gate_up, flat);
    gate_up += expert.size();
  }
  int64_t down = at.down_weight;
  for (const Matrix& expert : weights.moe.down_weight) {
    WriteMatrix(expert, down, flat);
    down += expert.size();
  }
}

const ParameterTensor& TensorNamed(const ParameterLayout& layout,
                                   const std::string& name) {
  for (const ParameterTensor& tensor : layout.tensors) {
    if (tensor.name == name) return tensor;
  }
  throw InternalError("no parameter tensor is called \"" + name + "\"");
}

Vector TensorElements(const ParameterTensor& tensor, const Vector& flat) {
  SOFTMOE_CHECK(tensor.offset + tensor.size <= flat.size()) << tensor.name;
  return flat.segment(tensor.offset, tensor.size);
}

}  // namespace softmoe::reference
