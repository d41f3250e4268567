// SPDX-License-Identifier: Apache-2.0
//
// format_bytes.h - sizes of files and memory as text for people.
#ifndef SOFTMOE_CORE_TEXT_FORMAT_BYTES_H_
#define SOFTMOE_CORE_TEXT_FORMAT_BYTES_H_

#include <cstdint>
#include <string>

namespace softmoe {

// "512 B", "3.2 KiB", "6.1 GiB".
std::string FormatBytes(int64_t bytes);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_FORMAT_BYTES_H_
