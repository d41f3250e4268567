// SPDX-License-Identifier: Apache-2.0
//
// library_without_functions.cc - a library, but none that can be verified.
extern "C" int an_answer(void) { return 42; }
