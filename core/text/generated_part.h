// SPDX-License-Identifier: Apache-2.0
//
// generated_part.h - the part of a Markdown document that a program writes.
#ifndef SOFTMOE_CORE_TEXT_GENERATED_PART_H_
#define SOFTMOE_CORE_TEXT_GENERATED_PART_H_

#include <string>

namespace softmoe {

// `document` with `part` between the lines "<!-- begin: COMMAND -->" and
// "<!-- end -->", which stay. `command`: what a reader runs to have it written.
// Throws DataError, naming `place`, if either line is missing.
std::string WithGeneratedPart(const std::string& document,
                              const std::string& command,
                              const std::string& part,
                              const std::string& place);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_GENERATED_PART_H_
