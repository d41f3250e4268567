// SPDX-License-Identifier: Apache-2.0
//
// permute_body.h - rows gathered from a table, and rows of a token added up,
// for every group along the row (simt/group.h).
//
//   permute    row r = row row_token[r] of the tokens; also the embedding
//   unpermute  token t (+)= the sum of its rows, in order of ascending expert
#ifndef SOFTMOE_KERNELS_PERMUTE_BODY_H_
#define SOFTMOE_KERNELS_PERMUTE_BODY_H_

#include "kernels/simt/group.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Rows are stored as T and as U.
template <typename Group, typename T, typename U>
SOFTMOE_INLINE void CopyRow(Group group, int64_t d_model,
                            const T* from,  // [d_model]
                            U* to) {        // [d_model]
  using Real = typename Group::Real;
  group.ForEachColumn(d_model, [&](Columns at) {
    const Real value = group.Load(from, at);
    group.Store(to, at, value);
  });
}

template <typename Group, typename T, typename U>
SOFTMOE_INLINE void UnpermuteToken(Group group, int64_t d_model,
                                   int64_t max_active,
                                   const T* rows,              // [*, d_model]
                                   const int32_t* token_rows,  // [max_active],
                                                               // then -1
                                   bool accumulate,
                                   U* sum) {  // [d_model]
  using Real = typename Group::Real;
  group.ForEachColumn(d_model, [&](Columns at) {
    Real total = accumulate ? group.Load(sum, at) : Real(0);
    for (int64_t s = 0; s < max_active && token_rows[s] >= 0; ++s) {
      total = total + group.Load(rows + token_rows[s] * d_model, at);
    }
    group.Store(sum, at, total);
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_PERMUTE_BODY_H_
