// SPDX-License-Identifier: Apache-2.0
#include "core/hdf5/hdf5_handles.h"

#include "core/errors.h"

namespace softmoe {

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    SOFTMOE_CHECK(extent >= 0) << extent;
    elements *= extent;
  }
  return elements;
}

Hdf5Handle StringType(size_t length) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), &H5Tclose);
  SOFTMOE_CHECK(type.valid() && H5Tset_size(type.id(), length) >= 0 &&
                H5Tset_strpad(type.id(), H5T_STR_NULLPAD) >= 0 &&
                H5Tset_cset(type.id(), H5T_CSET_UTF8) >= 0)
      << "length=" << length;
  return type;
}

void SilenceHdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

std::string LastHdf5Error() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* entry, void* result) -> herr_t {
        if (depth == 0 && entry->desc != nullptr) {
          *static_cast<std::string*>(result) = entry->desc;
        }
        return 0;
      },
      &text);
  return text;
}

}  // namespace softmoe
