// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/text/text_table.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

std::string RangeText(const Parameter& p) {
  if (p.kind == Parameter::Kind::kChoice) {
    return fmt::format("{}", fmt::join(p.choices, " | "));
  }
  std::string text = fmt::format("{} to {}", p.low, p.high);
  if (!p.at_most.empty()) {
    text += (p.below ? ", below " : ", at most ") + p.at_most;
  }
  if (p.step > 1) text += fmt::format(", multiples of {}", p.step);
  if (!p.low_in_fill.empty()) {
    text += fmt::format(", {} with fill={}", p.low, p.low_in_fill);
  }
  return text;
}

// The smallest, median and largest magnitudes.
std::string Quantiles(std::vector<double> values) {
  if (values.empty()) return "none";
  for (double& x : values) x = std::abs(x);
  std::ranges::sort(values);
  return fmt::format("{:.3g} / {:.3g} / {:.3g}", values.front(),
                     values[values.size() / 2], values.back());
}

std::string Indent(const std::string& text) {
  std::string indented = "    ";
  for (const char letter : text) {
    indented += letter;
    if (letter == '\n') indented += "    ";
  }
  return indented;
}

// Parameters, dtypes, fills and outputs of one operation.
std::string OperationText(const Operation& op) {
  std::string text = fmt::format("{}: {}\n", op.name(), op.text());
  TextTable table({"parameter", "range", "meaning"});
  for (const Parameter& p : op.parameters()) {
    table.Add({p.name, RangeText(p), p.text});
  }
  text += table.Text();
  std::vector<std::string> outputs;
  for (const OutputSpec& output : op.outputs()) {
    outputs.push_back(output.name + (output.optional ? " (optional)" : ""));
  }
  std::vector<std::string> dtypes;
  for (const Dtype dtype : op.dtypes()) dtypes.push_back(DtypeName(dtype));
  return text +
         fmt::format("edges: {}\ndtypes: {}\nfills: {}\noutputs: {}\n",
                     fmt::join(op.edges(), ", "), fmt::join(dtypes, ", "),
                     fmt::join(op.fills(), ", "), fmt::join(outputs, ", "));
}

}  // namespace

std::string ListText() {
  std::string text = "OPERATIONS\n";
  std::set<std::string> used;
  for (const Operation* op : Operations()) {
    text += OperationText(*op) + "\n";
    for (const std::string& fill : op->fills()) used.insert(fill);
  }
  text += "FILLS\n";
  TextTable fills({"fill", "data"});
  for (const FillInfo& fill : Fills()) {
    if (!used.contains(fill.name)) continue;
    fills.Add({fill.name + (fill.takes_argument ? ":N" : ""), fill.text});
  }
  text += fills.Text() + "\nIMPLEMENTATIONS\n";
  TextTable implementations({"implementation", "runs here"});
  for (const std::string& name : ImplementationNames()) {
    const auto implementation = MakeImplementation(name);
    std::vector<std::string> runs;
    std::string reason;
    for (const Operation* op : Operations()) {
      const std::string why =
          implementation->WhyUnsupported(*op, DtypeFor(*op, *implementation));
      if (why.empty()) {
        runs.push_back(op->name());
      } else {
        reason = why;
      }
    }
    implementations.Add({name, runs.empty()
                                   ? reason
                                   : fmt::format("{}", fmt::join(runs, " "))});
  }
  implementations.Add(
      {"same:IMPL,IMPL", "the first, which must have the bits of the second"});
  for (const char* yours : {"serve:PATH", "lib:PATH"}) {
    implementations.Add(
        {yours, "yours: property_tests/verify/foreign/README.md"});
  }
  text += implementations.Text();
  TextTable faults({"faulty:FAULT:OUTPUT:BASE", "what is spoilt"});
  for (const FaultInfo& fault : Faults()) faults.Add({fault.name, fault.text});
  return text + "\nPLANTED FAULTS, to see what a failure looks like\n" +
         faults.Text();
}

std::string ExplainText(const CaseResult& result, const Evidence& seen) {
  const Case& c = result.c;
  const Operation& op = FindOperation(c.op);
  std::string text = OperationText(op) + "\nINPUTS OF THIS CASE\n";
  TextTable inputs({"tensor", "dtype", "shape", "min/median/max |x|"});
  for (const auto& [name, tensor] : InputsOf(op, c)) {
    inputs.Add({name, DtypeName(tensor.dtype), ShapeText(tensor.shape),
                Quantiles(tensor.values)});
  }
  text += inputs.Text() + "\nWHAT IS EXPECTED\n";
  TextTable outputs({"output", "shape", "min/median/max |value|",
                     "min/median/max bound", "derivation"});
  std::set<std::string> ids;
  for (const auto& [name, output] : seen.expected.outputs) {
    outputs.Add({name, ShapeText(output.values.shape),
                 Quantiles(output.values.values), Quantiles(output.bounds),
                 output.derivation});
    ids.insert(output.derivation);
  }
  text += outputs.Text() + "\nHOW THE BOUNDS ARE DERIVED\n";
  for (const std::string& id : ids) {
    const Derivation* derivation = op.FindDerivation(id);
    text += id + "\n" +
            Indent(derivation == nullptr ? "no text" : derivation->text) + "\n";
  }
  if (c.dtype == Dtype::kF64) {
    text += AtF64Derivation().id + "\n" + Indent(AtF64Derivation().text) + "\n";
  }
  return text + "\nRESULT\n" + CaseResultText(result);
}

}  // namespace softmoe::verify
