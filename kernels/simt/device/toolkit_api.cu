// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>
#include <cuda_runtime.h>

#include "kernels/simt/device/toolkit_api.h"
