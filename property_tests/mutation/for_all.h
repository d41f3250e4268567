// SPDX-License-Identifier: Apache-2.0
//
// for_all.h - the same for many things, several at a time.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_FOR_ALL_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_FOR_ALL_H_

#include <cstddef>
#include <functional>

namespace softmoe::mutation {

// Calls body(0), ..., body(count-1) from `jobs` threads, in that order as far
// as they begin, until `stop` says so; the first exception ends it, and is
// thrown again here.
void ForAll(size_t count, int jobs, const std::function<bool()>& stop,
            const std::function<void(size_t)>& body);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_FOR_ALL_H_
