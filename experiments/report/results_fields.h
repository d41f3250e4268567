// SPDX-License-Identifier: Apache-2.0
//
// results_fields.h - the facts that a results document states beside its
// numbers: configuration, corpus, versions, and where the runs were trained.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_RESULTS_FIELDS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_RESULTS_FIELDS_H_

#include <string>
#include <vector>

#include "experiments/report/row_summary.h"
#include "golden/document/document.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {

// "a, b": each value once, in the order of its first place.
std::string JoinDistinct(const std::vector<std::string>& values);

// The fields of a row: its configuration, and what its finished runs say.
// corpora: those of the grid.
std::vector<golden::Field> FieldsOf(
    const RowSummary& row, const std::vector<trainer::PreparedCorpus>& corpora);

// "calibrated x 0.5: 0.587": the setting of a row with calibrated tau that is
// validated with `factor` times that, and what it came to.
std::string CalibratedTauText(const RowSummary& row, double factor);

// Moves the fields that all rows share to the document.
void HoistCommonFields(golden::Document* document);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_RESULTS_FIELDS_H_
