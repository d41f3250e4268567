// SPDX-License-Identifier: Apache-2.0
#include "core/testing/random_test_util.h"

#include <cmath>

namespace softmoe {

std::vector<float> NormalFloats(int64_t size, uint64_t seed, uint32_t which,
                                double scale) {
  Normals normals(seed, which);
  std::vector<float> x(static_cast<size_t>(size));
  for (float& element : x) element = static_cast<float>(scale * normals.Next());
  return x;
}

std::vector<int32_t> RandomIds(int64_t size, int64_t limit, uint64_t seed,
                               uint32_t which) {
  const RandomKey key{seed, RandomStream::kTestData, which, 1};
  std::vector<int32_t> ids(static_cast<size_t>(size));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(PhiloxWords(key, i)[0] %
                                  static_cast<uint64_t>(limit));
  }
  return ids;
}

std::vector<float> FloatsOfManyBinades(int64_t size, const RandomKey& key) {
  std::vector<float> x(static_cast<size_t>(size));
  for (size_t i = 0; i < x.size(); ++i) {
    const auto words = PhiloxWords(key, i);
    x[i] = static_cast<float>(
        std::ldexp(UniformFromWord(words[0]) - 0.5, words[1] % 16));
  }
  return x;
}

}  // namespace softmoe
