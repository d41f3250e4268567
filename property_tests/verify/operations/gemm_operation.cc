// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

constexpr char kGemm[] = "gemm-f32/2";

bool Says(const Case& c, const char* choice) {
  return c.Choice(choice) == "yes";
}

// The matrix as it is multiplied: transposed back if it is stored transposed.
Matrix Operand(const TensorMap& inputs, const char* name, bool transposed) {
  const Matrix stored = ToMatrix(At(inputs, name));
  return transposed ? Matrix(stored.transpose()) : stored;
}

template <typename N>
struct GemmFormula {
  std::map<std::string, std::vector<N>> outputs;

  // `before` counts only if the product is added to it.
  GemmFormula(const Matrix& a, const Matrix& b, const Matrix& before,
              bool accumulate) {
    std::vector<N>& c = outputs["c"];
    for (int64_t i = 0; i < a.rows(); ++i) {
      for (int64_t j = 0; j < b.cols(); ++j) {
        BoundedSum<N> sum;
        if (accumulate) sum.Add(N(before(i, j)));
        for (int64_t l = 0; l < a.cols(); ++l) {
          sum.Add(N(a(i, l)) * N(b(l, j)));
        }
        c.push_back(sum.Get());
      }
    }
  }
};

// The matrix product on which the model is built.
// inputs   a [m, k] or [k, m], b [k, n] or [n, k], c_before [m, n]
// outputs  c [m, n] = op(a) op(b), or c_before + op(a) op(b)
class Gemm : public Operation {
 public:
  Gemm() {
    name_ = "gemm";
    text_ = "c = op(a) op(b), or c += it; op transposes or not";
    parameters_ = {
        {.name = "m",
         .text = "rows of c",
         .high = 100,
         .apart = Parameter::Apart::kAlways},
        {.name = "n",
         .text = "columns of c",
         .high = 100,
         .apart = Parameter::Apart::kAlways},
        {.name = "k", .text = "length of the sums", .high = 300},
        {.name = "padding",
         .text = "elements between stored rows, never to be touched",
         .low = 0,
         .high = 5},
        YesOrNo("transpose_a", "a is stored [k, m]"),
        YesOrNo("transpose_b", "b is stored [n, k]"),
        YesOrNo("accumulate", "c += instead of c ="),
        ScaleParameter("a"),
    };
    edges_ = {"m=0", "k=0 accumulate=no", "k=0 accumulate=yes", "k=600",
              "k=600 transpose_a=yes transpose_b=yes", "m=129 k=257", "n=530",
              // Square: a matrix that is taken for its transpose fits, too.
              "m=20 n=20 k=20 transpose_a=yes transpose_b=yes fill=generic"};
    fills_ = {"generic", "exact", "subnormal", "huge"};
    dtypes_ = {Dtype::kF32, Dtype::kBf16};
    outputs_ = {{"c"}};
    derivations_ = WithStoredOperands({
        {kGemm, RawLines(R"(
Dot products of n terms in any order, n u sum |ab|, and one more term
where c is added to. )") +
                    kRandomRoundingsText},
        ExactDerivation(),
    });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Window m = filler.Axis("m"), n = filler.Axis("n"),
                 k = filler.Axis("k");
    const auto stored = [&](const char* transpose, Window rows,
                            Window columns) -> std::vector<Window> {
      if (Says(c, transpose)) return {columns, rows};
      return {rows, columns};
    };
    return {
        {"a", filler.Data("a", stored("transpose_a", m, k), c.Real("scale"))},
        {"b", filler.Plain("b", stored("transpose_b", k, n))},
        {"c_before", filler.Plain("c_before", {m, n}, c.Real("scale"))}};
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Matrix a = Operand(inputs, "a", Says(c, "transpose_a"));
    const Matrix b = Operand(inputs, "b", Says(c, "transpose_b"));
    const bool accumulate = Says(c, "accumulate");
    const Matrix before = accumulate ? ToMatrix(At(inputs, "c_before"))
                                     : Matrix::Zero(a.rows(), b.cols());
    const std::map<std::string, Tensor> values = {
        {"c", ToTensor(Matrix(before + reference::Multiply(a, b)),
                       {a.rows(), b.cols()})}};
    if (c.dtype == Dtype::kBf16 && c.fill.name != "exact") {
      return ExpectStored<GemmFormula, StoredOperands>(*this, c, values, a, b,
                                                       before, accumulate);
    }
    return StoredAsBf16(
        *this, c,
        ExpectInFloat<GemmFormula>(c, values, kGemm, /*exact=*/true, a, b,
                                   before, accumulate));
  }

 private:
  static Parameter YesOrNo(const char* name, const char* text) {
    return {.name = name,
            .kind = Kind::kChoice,
            .text = text,
            .choices = {"no", "yes"}};
  }
};

}  // namespace

const Operation& GemmOperation() {
  static const Gemm operation;
  return operation;
}

}  // namespace softmoe::verify
