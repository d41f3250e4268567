// SPDX-License-Identifier: Apache-2.0
#include "core/text/generated_part.h"

#include "core/errors.h"

namespace softmoe {

std::string WithGeneratedPart(const std::string& document,
                              const std::string& command,
                              const std::string& part,
                              const std::string& place) {
  const std::string begin_line = "<!-- begin: " + command + " -->\n";
  const std::string end_line = "<!-- end -->\n";
  const size_t begin = document.find(begin_line);
  const size_t end = document.find(end_line, begin);
  if (begin == std::string::npos || end == std::string::npos) {
    throw DataError(place +
                    ": what this command writes goes between the lines '" +
                    begin_line.substr(0, begin_line.size() - 1) + "' and '" +
                    end_line.substr(0, end_line.size() - 1) +
                    "', which are missing; add them");
  }
  return document.substr(0, begin) + begin_line + "\n" + part + "\n" +
         document.substr(end);
}

}  // namespace softmoe
