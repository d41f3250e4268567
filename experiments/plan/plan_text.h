// SPDX-License-Identifier: Apache-2.0
//
// plan_text.h - numbers and paragraphs as a plan prints them.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_TEXT_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace softmoe::experiments {

inline constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

// "1,631,409,280"
std::string Thousands(int64_t number);

// "7.91e18": three significant digits.
std::string Scientific(double number);

// "1 run", "3 runs", "2 corpora".
std::string Count(int64_t number, const std::string& noun,
                  const std::string& plural = "");

// Two significant digits, or a whole number from 10: "0.072", "7.4", "4,051".
std::string Amount(double number);

// `text` in lines of at most 98 columns: `first` spaces before the first line,
// two more before the others.
std::string Paragraph(const std::string& text, size_t first = 0);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_TEXT_H_
