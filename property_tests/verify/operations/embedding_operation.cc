// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "reference/embedding.h"

namespace softmoe::verify {
namespace {

using reference::Matrix;

template <typename N>
struct EmbeddingFormula {
  std::map<std::string, std::vector<N>> outputs;

  EmbeddingFormula(const std::vector<int32_t>& ids, const Matrix& d_out,
                   int64_t vocab_size) {
    outputs["d_table"] = Flat<N>(reference::formula::EmbeddingBackward<N>(
        ids, As<N>(d_out), vocab_size));
  }
};

// Looks up rows of a table, and sums their cotangents (SPEC.md 3.2).
// inputs   table [vocab_size, d_model], ids (i32, [rows]), d_out
// outputs  out [rows, d_model], d_table
class Embedding : public Operation {
 public:
  Embedding() {
    name_ = "embedding";
    text_ = "rows of the table by id; the gradient sums each id's rows";
    parameters_ = {
        {.name = "rows",
         .text = "tokens",
         .high = 300,
         .apart = Parameter::Apart::kAlways},
        {.name = "d_model", .text = "width", .high = 140},
        {.name = "vocab_size", .text = "rows of the table", .high = 90},
    };
    // The last three: one piece of the sums of a device; several pieces and a
    // partial one, for two ids and for one.
    edges_ = {"rows=0",
              "d_model=264",
              "rows=600 vocab_size=257",
              "rows=600 vocab_size=66000 d_model=1",
              "rows=64 vocab_size=1",
              "rows=300 vocab_size=2 d_model=8",
              "rows=600 vocab_size=2 d_model=8 fill=repeated"};
    fills_ = {"generic", "exact", "subnormal", "huge", "repeated"};
    dtypes_ = {Dtype::kF32, Dtype::kF64, Dtype::kBf16};
    outputs_ = {{"out"}, {.name = "d_table", .in_float = true}};
    differentiable_ = {"table"};
    derivations_ = WithStoredBf16({
        {kDerivation, RawLines(R"(
Rows are copied: equality. A sum of n rows in any order: n u sum |x|.
)") + kRandomRoundingsText},
        ExactDerivation(),
    });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Window rows = filler.Axis("rows"), width = filler.Axis("d_model");
    return {{"table", filler.InFloat().Data(
                          "table", {filler.Axis("vocab_size"), width})},
            {"ids", filler.Ids("ids", {rows}, c.Size("vocab_size"))},
            {"d_out", filler.Data("d_out", {rows, width})}};
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNoIds(inputs, "ids", c.Size("vocab_size"));
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Matrix table = ToMatrix(At(inputs, "table"));
    const Matrix d_out = ToMatrix(At(inputs, "d_out"));
    const std::vector<int32_t> ids = ToInts(At(inputs, "ids"));
    const int64_t d = table.cols();
    Expected expected = ExpectInFloat<EmbeddingFormula>(
        c,
        {{"d_table",
          ToTensor(reference::EmbeddingBackward(ids, d_out, table.rows()),
                   {table.rows(), d})}},
        kDerivation, /*exact=*/true, ids, d_out, table.rows());
    expected.outputs["out"] = Exactly(
        ToTensor(reference::EmbeddingForward(ids, table), {d_out.rows(), d}),
        kDerivation);
    return StoredAsBf16(*this, c, expected);
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)c, (void)choice;
    return {{"out", ToTensor(reference::EmbeddingForward(
                                 ToInts(At(inputs, "ids")),
                                 ToMatrix(At(inputs, "table"))),
                             At(inputs, "d_out").shape)}};
  }

 private:
  static constexpr char kDerivation[] = "embedding-f32/3";
};

}  // namespace

const Operation& EmbeddingOperation() {
  static const Embedding operation;
  return operation;
}

}  // namespace softmoe::verify
