// SPDX-License-Identifier: Apache-2.0
//
// library_without_functions.cc - a library that cannot be verified, because it
// lacks the functions of the ABI.
extern "C" int an_answer(void) { return 42; }
