// SPDX-License-Identifier: Apache-2.0
//
// SOFTMOE_NCCL says that the toolkit has NCCL's header.
#ifdef SOFTMOE_NCCL
#include <nccl.h>

#include "kernels/simt/device/toolkit_nccl.h"
#endif
