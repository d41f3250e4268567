// SPDX-License-Identifier: Apache-2.0
//
// A kernel with an array that cannot be in registers: what cuda_resources_test
// must refuse.
__global__ void StackFrame(float* x, int n) {
  float local[64];
  for (int i = 0; i < 64; ++i) local[i] = x[i];
  for (int i = 0; i < n; ++i) local[i % 64] += local[i * 7 % 64];
  x[0] = local[n % 64];
}
