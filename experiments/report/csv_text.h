// SPDX-License-Identifier: Apache-2.0
//
// csv_text.h - fields of a CSV file.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_CSV_TEXT_H_
#define SOFTMOE_EXPERIMENTS_REPORT_CSV_TEXT_H_

#include <string>

namespace softmoe::experiments {

// RFC 4180: quoted if it contains a separator, a quote or a line end.
std::string CsvField(const std::string& text);

// Shortest text that reads back as the same double.
std::string CsvNumber(double value);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_CSV_TEXT_H_
