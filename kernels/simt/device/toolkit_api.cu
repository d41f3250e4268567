// SPDX-License-Identifier: Apache-2.0
//
// SOFTMOE_NCCL says that the toolkit has NCCL's header.
#include <cublasLt.h>
#include <cuda_runtime.h>
#ifdef SOFTMOE_NCCL
#include <nccl.h>
#endif

#include "kernels/simt/device/toolkit_api.h"
