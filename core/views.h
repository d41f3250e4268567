// SPDX-License-Identifier: Apache-2.0
//
// views.h - pointers that know their shape, with extents that have names.
//
//   using Scores = View<const double, NumTokens, NumExperts>;
//   Scores scores(data, NumTokens(128), NumExperts(8));
//   scores(t, e);  scores.row(t);  scores.extent<NumExperts>();
//
// Swapping two extents, or passing [num_experts, d_model] where [d_model,
// num_experts] is meant, does not compile. Row-major, contiguous, not owning.
#ifndef SOFTMOE_CORE_VIEWS_H_
#define SOFTMOE_CORE_VIEWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "core/errors.h"

namespace softmoe {

// An extent with a name; explicit, so that a bare number is never taken for it.
#define SOFTMOE_DEFINE_EXTENT(Name)                  \
  struct Name {                                      \
    explicit constexpr Name(int64_t n) : value(n) {} \
    int64_t value;                                   \
  }
SOFTMOE_DEFINE_EXTENT(NumTokens);
SOFTMOE_DEFINE_EXTENT(NumExperts);
SOFTMOE_DEFINE_EXTENT(NumLayers);
SOFTMOE_DEFINE_EXTENT(NumSequences);
SOFTMOE_DEFINE_EXTENT(SequenceLength);
SOFTMOE_DEFINE_EXTENT(DModel);
SOFTMOE_DEFINE_EXTENT(DFfn);
SOFTMOE_DEFINE_EXTENT(VocabSize);
SOFTMOE_DEFINE_EXTENT(NumRouted);
#undef SOFTMOE_DEFINE_EXTENT

template <typename T, typename... Extents>
class View {
 public:
  static constexpr size_t kRank = sizeof...(Extents);

  constexpr View(T* data, Extents... extents)
      : data_(data), extents_(extents...) {}
  // The same elements, read-only.
  constexpr operator View<const T, Extents...>() const {
    return std::apply(
        [&](auto... e) { return View<const T, Extents...>(data_, e...); },
        extents_);
  }

  T* data() const { return data_; }
  int64_t size() const {
    return std::apply([](auto... e) { return (int64_t{1} * ... * e.value); },
                      extents_);
  }
  template <typename Extent>
  int64_t extent() const {
    return std::get<Extent>(extents_).value;
  }

  // The element at one index per extent.
  template <typename... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == kRank);
    return data_[Offset(static_cast<int64_t>(index)...)];
  }
  // The last dimension at the given leading index (rank 2).
  std::span<T> row(int64_t i) const {
    static_assert(kRank == 2);
    const int64_t width = std::get<1>(extents_).value;
    return {data_ + i * width, static_cast<size_t>(width)};
  }
  std::span<T> flat() const { return {data_, static_cast<size_t>(size())}; }

 private:
  template <typename... Index>
  int64_t Offset(Index... index) const {
    const int64_t indices[] = {index...};
    return std::apply(
        [&](auto... e) {
          int64_t offset = 0;
          size_t d = 0;
          ((offset = offset * e.value + indices[d++]), ...);
          return offset;
        },
        extents_);
  }

  T* data_;
  std::tuple<Extents...> extents_;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_VIEWS_H_
