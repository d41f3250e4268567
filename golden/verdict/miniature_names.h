// SPDX-License-Identifier: Apache-2.0
//
// miniature_names.h - the names of miniature.h's enumerations in
// paper/miniature.toml.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_NAMES_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_NAMES_H_

#include "golden/document/document_format.h"
#include "golden/verdict/miniature.h"

namespace softmoe::golden {

template <>
const NamedValues<Quantity>& Names();
template <>
const NamedValues<Against>& Names();
template <>
const NamedValues<Holds>& Names();
template <>
const NamedValues<OfCases>& Names();
template <>
const NamedValues<Noise>& Names();

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_NAMES_H_
