// SPDX-License-Identifier: Apache-2.0
//
// normals.h - standard normals one after the other, for numbers that are made
// up: the same for the same seed and sequence.
#ifndef SOFTMOE_CORE_NORMALS_H_
#define SOFTMOE_CORE_NORMALS_H_

#include <cstdint>

#include "core/philox.h"

namespace softmoe {

class Normals {
 public:
  Normals(uint64_t seed, uint32_t sequence)
      : key_{.seed = seed,
             .stream = RandomStream::kTestData,
             .step = sequence} {}
  double Next() {
    const auto words = PhiloxWords(key_, index_++);
    return NormalsFromWords(words[0], words[1])[0];
  }

 private:
  RandomKey key_;
  uint64_t index_ = 0;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_NORMALS_H_
