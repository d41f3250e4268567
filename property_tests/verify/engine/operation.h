// SPDX-License-Identifier: Apache-2.0
//
// operation.h - what is verified: an operation of the method, its parameters,
// its data, and for every element of every output the value it should have and
// how far a correct implementation may be from it.
//
// An operation knows the reference and the error analysis, but no
// implementation. It deals in named tensors only. By convention output "d_x" is
// the gradient of input "x" for the cotangents "d_y" among the inputs, one per
// output "y" that a gradient flows from.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_OPERATION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/comparator.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

struct Parameter {
  enum class Kind { kSize, kReal, kChoice };
  std::string name = {};
  Kind kind = Kind::kSize;
  std::string text = {};  // one line: meaning and unit
  // Sizes and reals: the valid range, both ends included.
  double low = 1, high = 1;
  // Sizes and reals: at most this other parameter (a size, declared earlier),
  // or, if `below`, less than it by at least 2^-16, and mostly 1/64.
  std::string at_most = {};
  bool below = false;
  // Sizes: the fill with which it is `low`.
  std::string low_in_fill = {};
  // Reals: the values that are mostly drawn. If empty, multiples of 1/64 in the
  // range are drawn.
  std::vector<double> typical = {};
  int64_t step = 1;  // sizes: a multiple of this
  // Sizes: whether elements of outputs along this size have the same bits
  // whatever the other elements are; kIfFinite: provided that these are finite.
  enum class Apart { kNo, kIfFinite, kAlways };
  Apart apart = Apart::kNo;
  std::vector<std::string> choices = {};
  // The value that shrinking tries first; sizes shrink towards `low`.
  double simple = 1;
};

struct OutputSpec {
  std::string name;
  // An implementation may leave it out, which is reported but is not a failure.
  bool optional = false;
  // Computed and returned in double, whatever dtype the data has.
  bool in_double = false;
  // At dtype bf16, returned in float, as programs do not keep it as bf16.
  bool in_float = false;
  // The number of outputs of equal width that are packed in each of its rows.
  int64_t parts = 1;
  // The size along which its elements do not see later ones, if these are
  // finite; the innermost of those that make up its first dimension.
  std::string causal = {};

  // The dtype of the output in a case of dtype `data`, unless the output holds
  // choices.
  Dtype DtypeAt(Dtype data) const {
    if (in_double) return Dtype::kF64;
    return in_float && data == Dtype::kBf16 ? Dtype::kF32 : data;
  }
};

// How a bound was derived, as a text that `verify explain` prints. If the claim
// of the text changes, the id must change, too.
struct Derivation {
  std::string id, text;
};

// The raw string without the line break that it begins with, so that all lines
// of a text stand in the source as they are printed.
inline std::string RawLines(const char* raw) { return raw + 1; }

struct ExpectedOutput {
  Tensor values;               // f64, or i32 where equality is required
  std::vector<double> bounds;  // |got - value| <= bound, element by element
  std::string derivation;      // id
  Expectations expectations;
  // The errors of `values` themselves, where they are not 2^-29 of the bounds:
  // the same formula in double instead of float.
  std::vector<double> own_errors = {};

  double OwnError(int64_t i) const {
    return own_errors.empty() ? 0x1p-29 * bounds[i] : own_errors[i];
  }
};

struct Expected {
  std::map<std::string, ExpectedOutput> outputs;
  // The expectations for implementations that store bf16 and scale scores where
  // our kernels do (Implementation::stores_as_ours).
  std::map<std::string, ExpectedOutput> of_ours;
  // Defects of an output whatever its bounds (a selection that no margin
  // excuses): output -> one sentence.
  std::map<std::string, std::string> defects;
  int64_t decisions = 0;  // discrete choices compared
  int64_t ambiguous = 0;  // of these, decided differently within their margin
};

class Operation {
 public:
  virtual ~Operation() = default;
  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }  // one line: the formula
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Cases that no draw reaches, as words: no rows at all, more than a block of
  // the kernels holds, ... They extend the valid ranges.
  const std::vector<std::string>& edges() const { return edges_; }
  const std::vector<std::string>& fills() const { return fills_; }  // fill.h
  const std::vector<Dtype>& dtypes() const { return dtypes_; }
  const std::vector<OutputSpec>& outputs() const { return outputs_; }
  // The inputs that have a gradient output "d_NAME".
  const std::vector<std::string>& differentiable() const {
    return differentiable_;
  }
  const std::vector<Derivation>& derivations() const { return derivations_; }

  // The inputs, including cotangents, before any simplification.
  virtual TensorMap Inputs(const Case& c) const = 0;
  // The outputs that a gradient flows from, in double, at any inputs, and the
  // discrete choices as i32 outputs. `choice` is empty or holds the choices of
  // another Forward: then a choice that makes the outputs jump (a selection) is
  // kept, and one that only bends them (a score that crosses LapSum's root) is
  // reported as it is. Used by `verify grad`; every operation with
  // differentiable() inputs implements it.
  virtual TensorMap Forward(const Case& c, const TensorMap& inputs,
                            const TensorMap& choice) const {
    (void)c, (void)inputs, (void)choice;
    return {};
  }
  // The cotangents of what Forward returned: the inputs "d_<output>".
  virtual TensorMap Cotangents(const TensorMap& inputs,
                               const TensorMap& outputs) const;
  // The i32 outputs that follow from `outputs` as they are stored, for an
  // implementation that decides by what it returns. {} if there are no discrete
  // choices.
  virtual TensorMap Decide(const Case& c, const TensorMap& inputs,
                           const TensorMap& outputs) const {
    (void)c, (void)inputs, (void)outputs;
    return {};
  }
  // Why the inputs, after a simplification, are no longer a valid case of this
  // operation; "" if they are.
  virtual std::string WhyInvalid(const Case& c, const TensorMap& inputs) const {
    (void)c, (void)inputs;
    return "";
  }

  const Parameter* FindParameter(const std::string& name) const;
  const Derivation* FindDerivation(const std::string& id) const;

 protected:
  // The constructor of an operation sets these.
  std::string name_, text_;
  std::vector<Parameter> parameters_;
  std::vector<std::string> edges_, fills_;
  std::vector<Dtype> dtypes_ = {Dtype::kF32};
  std::vector<OutputSpec> outputs_;
  std::vector<std::string> differentiable_;
  std::vector<Derivation> derivations_;

 private:
  // The expected value of every output, with the reference's own choices; at
  // f64, with the bounds of float, except for outputs in_double. Private,
  // because both judging and exporting must ask for bounds through ExpectOf.
  virtual Expected Expect(const Case& c, const TensorMap& inputs) const = 0;
  // For operations whose other results depend on discrete choices or weights in
  // `got`, the outputs of an implementation: checks the choices against their
  // margin and expects what follows from them (routing replay), or takes the
  // one of several results that the weights allow. Must not throw for missing
  // or misshapen tensors in `got`.
  virtual std::optional<Expected> ExpectAfter(const Case&, const TensorMap&,
                                              const TensorMap& /*got*/) const {
    return std::nullopt;
  }
  friend Expected ExpectOf(const Operation& op, const Case& c,
                           const TensorMap& inputs, const TensorMap& got);
};

// op.Inputs(c) with c.simplify applied. Throws ConfigError if c.simplify names
// a tensor or element that does not exist or makes the data invalid, and
// InternalError if the operation makes numbers that a tensor's dtype lacks.
TensorMap InputsOf(const Operation& op, const Case& c);

// The expected value of every output, with the bounds that hold at c.dtype: at
// f64, 2^-28 of float's (AtF64Derivation), except for outputs that are in
// double at every dtype. `got` is as for Operation::ExpectAfter; {} means the
// reference's own choices and bounds that cover all results.
Expected ExpectOf(const Operation& op, const Case& c, const TensorMap& inputs,
                  const TensorMap& got);
const Derivation& AtF64Derivation();

// Every operation, in the order of the model. Defined in operation_table.cc,
// which sits above everything that uses operations and is linked with every
// program of the engine.
const std::vector<const Operation*>& Operations();
// Throws ConfigError, with a suggestion, for an unknown name.
const Operation& FindOperation(const std::string& name);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_OPERATION_H_
