// SPDX-License-Identifier: Apache-2.0
//
// active_set_body.h - which experts a row keeps, as bit sets: the largest
// scores, ties towards the lower index, and the fallback to one (SPEC.md 2.2).
#ifndef SOFTMOE_KERNELS_ACTIVE_SET_BODY_H_
#define SOFTMOE_KERNELS_ACTIVE_SET_BODY_H_

#include "kernels/router_row.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// `set` with `bit` added where `kept`.
template <typename Set, typename Condition>
SOFTMOE_INLINE Set AddMember(Set set, int bit, Condition kept) {
  return Select(kept, set | Set(static_cast<int32_t>(1u << bit)), set);
}

// Sets bit e%32 of set[e/32] for each e with admit(e, c), where c says whether
// score e is one of the `count` largest (ties: lower e first). top as from
// SelectLargest. (A fixed number of steps over `top` for kTop > 0, or nvcc
// would keep it in memory instead of registers.)
template <int kTop, typename Real, typename Set, typename Admit>
SOFTMOE_INLINE void MarkLargest(const Real* scores, int num_experts, int count,
                                const Real* top, Set* set, const Admit& admit) {
  const int m = kTop > 0 ? kTop : count;
  Real boundary = top[0];
  SOFTMOE_UNROLL
  for (int i = 1; i < m; ++i) boundary = i < count ? top[i] : boundary;
  Real room(0);  // for scores equal to the boundary
  SOFTMOE_UNROLL
  for (int i = 0; i < m; ++i) {
    const Real one(i < count ? 1.0f : 0.0f);
    room = room + Select(top[i] == boundary, one, Real(0));
  }
  for (int word = 0; word * 32 < num_experts; ++word) {
    const int end = num_experts < word * 32 + 32 ? num_experts : word * 32 + 32;
    Set members(0);
    for (int e = word * 32; e < end; ++e) {
      const auto tie = scores[e] == boundary;
      const auto kept =
          admit(e, (scores[e] > boundary) | (tie & (room > Real(0))));
      room = room - Select(tie, Real(1), Real(0));
      members = AddMember(members, e % 32, kept);
    }
    set[word] = members;
  }
}

// Keeps the first of the largest scores where nothing else is kept.
template <typename Group>
SOFTMOE_INLINE void FallBackToTop1(const RouterRow<Group>& row, int num_experts,
                                   typename Group::Real largest) {
  using Set = typename Group::Set;
  Set any(0);
  for (int word = 0; word * 32 < num_experts; ++word) {
    any = any | row.active[word];
  }
  auto missing = any == Set(0);
  if (!Any(missing)) return;
  for (int e = 0; e < num_experts; ++e) {
    const auto kept = missing & (row.scores[e] == largest);
    Set& word = row.active[e / 32];
    word = AddMember(word, e % 32, kept);
    missing = missing & !kept;
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ACTIVE_SET_BODY_H_
