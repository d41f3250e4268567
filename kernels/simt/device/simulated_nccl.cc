// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/device/include/nccl.h"
#include "kernels/simt/device/toolkit_nccl.h"
