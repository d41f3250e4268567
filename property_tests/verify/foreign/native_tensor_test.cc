// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/native_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/errors.h"

namespace softmoe::verify {
namespace {

Tensor Content(Dtype dtype) {
  Tensor tensor(dtype, {2, 3});
  tensor.values = {1, -2.5, 0, 3e-3, 1e6, -7};
  RoundValues(tensor);
  return tensor;
}

TEST(NativeTensor, HoldsEveryDtypeExactly) {
  const std::pair<Dtype, int32_t> kDtypes[] = {
      {Dtype::kF64, SOFTMOE_VERIFY_F64},
      {Dtype::kF32, SOFTMOE_VERIFY_F32},
      {Dtype::kBf16, SOFTMOE_VERIFY_BF16},
      {Dtype::kI32, SOFTMOE_VERIFY_I32}};
  for (const auto& [dtype, code] : kDtypes) {
    NativeTensor native("x", Content(dtype));
    const softmoe_verify_tensor abi = native.Abi();
    EXPECT_STREQ(abi.name, "x");
    EXPECT_EQ(abi.dtype, code);
    EXPECT_EQ(abi.rank, 2);
    EXPECT_EQ(abi.dims[0], 2);
    EXPECT_EQ(abi.dims[1], 3);
    EXPECT_TRUE(SameBits(native.Take(), Content(dtype))) << DtypeName(dtype);
    native.CheckUnchanged();
  }
  NativeTensor bf16("x", Content(Dtype::kBf16));
  // 1 and -2.5 in bf16.
  EXPECT_EQ(static_cast<uint16_t*>(bf16.Abi().data)[0], 0x3f80);
  EXPECT_EQ(static_cast<uint16_t*>(bf16.Abi().data)[1], 0xc020);
  NativeTensor scalar("s", Tensor(Dtype::kF32, {}));
  EXPECT_EQ(scalar.Abi().rank, 0);
  EXPECT_EQ(scalar.Take().size(), 1);
}

TEST(NativeTensor, AnOutputShowsThatItWasNotWritten) {
  for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kBf16}) {
    const NativeTensor native(Wanted{"y", dtype, {4}, false});
    for (const double x : native.Take().values) EXPECT_TRUE(std::isnan(x));
  }
  const NativeTensor native(Wanted{"y", Dtype::kI32, {4}, false});
  EXPECT_EQ(native.Take().values[3], std::numeric_limits<int32_t>::min());
}

TEST(NativeTensor, FindsWritesOutsideAndChangesInside) {
  for (const Dtype dtype :
       {Dtype::kF64, Dtype::kF32, Dtype::kBf16, Dtype::kI32}) {
    const int64_t bytes = dtype == Dtype::kF64    ? 8
                          : dtype == Dtype::kBf16 ? 2
                                                  : 4;
    for (const int64_t at : {int64_t{-1}, 6 * bytes, 6 * bytes + 63}) {
      NativeTensor native("x", Content(dtype));
      static_cast<unsigned char*>(native.Abi().data)[at] ^= 1;
      EXPECT_THROW(native.Take(), NumericsError) << DtypeName(dtype) << at;
    }
    NativeTensor native("x", Content(dtype));
    static_cast<unsigned char*>(native.Abi().data)[5] ^= 1;
    EXPECT_NO_THROW(native.Take());
    EXPECT_THROW(native.CheckUnchanged(), NumericsError) << DtypeName(dtype);
  }
}

}  // namespace
}  // namespace softmoe::verify
