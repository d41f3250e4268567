// SPDX-License-Identifier: Apache-2.0
//
// toolkit_is.h - the words with which toolkit_api.h and toolkit_nccl.h say what
// a library's header declares.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_IS_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_IS_H_

#include <type_traits>

namespace softmoe::simt {

// Whether the name is that of a function, or of an overload, of this very type.
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
