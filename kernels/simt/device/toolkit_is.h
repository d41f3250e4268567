// SPDX-License-Identifier: Apache-2.0
//
// toolkit_is.h - what a library's header says: the words of toolkit_api.h and
// toolkit_nccl.h.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_IS_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_IS_H_

#include <type_traits>

namespace softmoe::simt {

// Whether a function of this very type has the name; of several, one.
template <typename Function>
constexpr bool Is(Function*) {
  return true;
}

}  // namespace softmoe::simt

#define SOFTMOE_IS(name, ...) static_assert(Is<__VA_ARGS__>(&name))
#define SOFTMOE_VALUE(name, value) \
  static_assert(static_cast<int>(name) == (value))
#define SOFTMOE_MEMBER(type, name, ...) \
  static_assert(std::is_same_v<decltype(type::name), __VA_ARGS__>)

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_IS_H_
