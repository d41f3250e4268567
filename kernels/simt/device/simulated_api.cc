// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/device/include/cublasLt.h"
#include "kernels/simt/device/include/cuda_runtime_api.h"
#include "kernels/simt/device/include/nccl.h"
#include "kernels/simt/device/toolkit_api.h"
