// SPDX-License-Identifier: Apache-2.0
//
// for_all.h - a parallel loop.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_FOR_ALL_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_FOR_ALL_H_

#include <cstddef>
#include <functional>

namespace softmoe::mutation {

// Calls body(0), ..., body(count-1) from `jobs` threads, started in this order,
// until `stop` returns true. The first exception ends the loop and is rethrown
// here.
void ForAll(size_t count, int jobs, const std::function<bool()>& stop,
            const std::function<void(size_t)>& body);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_FOR_ALL_H_
