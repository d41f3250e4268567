// SPDX-License-Identifier: Apache-2.0
//
// fixture.h - a header with a body, for fixture_main.cc.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_FIXTURE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_FIXTURE_H_

inline int Twice(int x) { return 2 * x; }

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_FIXTURE_H_
