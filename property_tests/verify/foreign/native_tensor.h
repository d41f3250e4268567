// SPDX-License-Identifier: Apache-2.0
//
// native_tensor.h - a tensor in the type that a C library computes in, between
// canaries.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_NATIVE_TENSOR_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_NATIVE_TENSOR_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/foreign/request.h"
#include "property_tests/verify/foreign/softmoe_verify_abi.h"

namespace softmoe::verify {

// The code of a dtype in the ABI.
int32_t AbiDtype(Dtype dtype);

class NativeTensor {
 public:
  NativeTensor(const std::string& name, const Tensor& content);
  explicit NativeTensor(const Wanted& output);  // NaN, or INT32_MIN

  // Points into this object, which stays where it is.
  softmoe_verify_tensor Abi();

  // Throws NumericsError if a canary has changed.
  Tensor Take() const;
  // Throws NumericsError if a canary or the content has changed.
  void CheckUnchanged() const;

 private:
  // bf16 is uint16_t: the upper half of a float.
  using Data = std::variant<Guarded<double>, Guarded<float>, Guarded<uint16_t>,
                            Guarded<int32_t>>;
  static Data MakeData(const std::string& name, const Tensor& content);

  std::string name_;
  Dtype dtype_;
  std::vector<int64_t> shape_;
  Data data_, original_;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_NATIVE_TENSOR_H_
