// SPDX-License-Identifier: Apache-2.0
//
// hdf5_hostile_values.h - types, shapes and values that nobody expects, for
// hdf5_hostile.h.
#ifndef SOFTMOE_CORE_FUZZING_HDF5_HOSTILE_VALUES_H_
#define SOFTMOE_CORE_FUZZING_HDF5_HOSTILE_VALUES_H_

#include <cstddef>
#include <vector>

#include "core/fuzzing/fuzz_support.h"
#include "core/hdf5/hdf5_handles.h"

namespace softmoe::fuzz {

// A type of any class that HDF5 has, ours among them.
Hdf5Handle MakeType(Choices& choices);

// Scalar, null, or up to 32 dimensions of up to 2^63.
Hdf5Handle MakeSpace(Choices& choices);

// `size` bytes of values of a type: numbers of its kind, or text.
std::vector<char> MakeValues(Choices& choices, hid_t type, size_t size);

// Types whose values in memory are pointers cannot be filled with bytes.
bool HasPointers(hid_t type);

// Whether it has at most 64 KiB, which may be filled.
bool IsSmall(hid_t space, hid_t type);

// Number of elements, or 0 if there are too many to fill.
size_t FillableElements(hid_t space, hid_t type);

}  // namespace softmoe::fuzz

#endif  // SOFTMOE_CORE_FUZZING_HDF5_HOSTILE_VALUES_H_
