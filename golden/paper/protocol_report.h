// SPDX-License-Identifier: Apache-2.0
//
// protocol_report.h - whether the paper's protocol can give the active experts
// that its tables print: what its routers would activate if scores kept the
// spread with which they are drawn (still_scores.h).
#ifndef SOFTMOE_GOLDEN_PAPER_PROTOCOL_REPORT_H_
#define SOFTMOE_GOLDEN_PAPER_PROTOCOL_REPORT_H_

#include <string>
#include <vector>

#include "golden/document/document.h"

namespace softmoe::golden {

// One soft row of the paper's main table in one reading of its protocol: tau
// calibrated on the first scores or as published, with or without fallback.
struct ProtocolReading {
  std::string row;  // "owt/softmoe_star/k1.5/a2"
  bool calibrated = false, fallback_top1 = false;
  double tau = 0;  // in force
  // The spread / T at which calibration would give this tau; 0 if none up to 4
  // does.
  double calibrated_at = 0;
  // Active experts, and shares of tokens without one before any fallback, for T
  // at its start, halfway and at its end; the last is Infer-AE.
  double start = 0, start_zero = 0, middle = 0, middle_zero = 0, end = 0,
         end_zero = 0;
  double train_ae = 0;  // mean over the steps
  double printed_train_ae = 0, printed_infer_ae = 0;
  // Spreads from 0.02 to 4 at which the end has the printed Infer-AE, good to
  // two digits, ascending.
  std::vector<double> spreads;
};

// Every soft row of `paper`, in order, in four readings each. The spread is
// init_std sqrt(d_model): scores of an input with mean square 1. Rows with
// learned allocation keep their initial one. Takes seconds. Throws DataError
// for a document that is not the paper's.
std::vector<ProtocolReading> ReadProtocol(const Document& paper);

std::string DescribeProtocol(const std::vector<ProtocolReading>& readings);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_PROTOCOL_REPORT_H_
