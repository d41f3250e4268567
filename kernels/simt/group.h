// SPDX-License-Identifier: Apache-2.0
//
// group.h - execution groups: who computes a row, and how (DESIGN.md,
// "One kernel source").
//
// A body - the mathematics of one row - is a template on a group and is written
// once. Two kinds of groups:
//
//   along the row (long rows: RMSNorm)      Real holds some columns of one row
//     SerialLane<R>    one column at a time, R = float or double
//     SimdLane         Floats::kWidth columns at a time (CPU)
//     CudaWarpOf<w>    column c belongs to lane c / w % 32
//     CudaBlock<n, w>  column c belongs to thread c / w % n; w = 1, or 8: then
//                      Real is a FloatPack, and memory is accessed 16 bytes at
//                      a time (float_pack.h)
//   across rows (short rows: the router)    Real holds one column of some rows
//     SerialLane<R>  one row
//     SimdRows       Floats::kWidth rows (CPU)
//     CudaThread     one row per CUDA thread
//
// A body never branches on data (it selects), so every row of a SimdRows and
// every thread of a warp does the same work.
#ifndef SOFTMOE_KERNELS_SIMT_GROUP_H_
#define SOFTMOE_KERNELS_SIMT_GROUP_H_

#include "kernels/simt/serial_group.h"
#ifdef SOFTMOE_CUDA
#include "kernels/simt/cuda_groups.h"
#else
#include "kernels/simt/simd_groups.h"
#endif

#endif  // SOFTMOE_KERNELS_SIMT_GROUP_H_
