// SPDX-License-Identifier: Apache-2.0
//
// Conformance vectors can be read back as they were written, outputs of others
// are judged as if we had run their programs, and files from another version of
// this program are refused.
#include "property_tests/verify/foreign/vectors.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_file.h"
#include "core/process/stop_signal.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/foreign/case_file.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

std::vector<Case> CasesOf(const std::string& op, int count,
                          const std::string& words = "") {
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    cases.push_back(ParseCase(
        "op=" + op + " " + words + " case=" + std::to_string(i), "theirs"));
  }
  return cases;
}

// Acts as another framework: reads `vectors` and writes the outputs that
// `compute` returns for each case.
void WriteTheirs(const fs::path& vectors, const fs::path& outputs,
                 const std::function<TensorMap(const VectorCase&)>& compute) {
  Hdf5Writer writer(outputs, {"theirs", 1});
  int64_t index = 0;
  for (const VectorCase& each : ReadVectors(vectors)) {
    const std::string group = CaseGroup(index++);
    for (const auto& [name, tensor] : compute(each)) {
      WriteTensor(writer, group + "/" + name, tensor);
    }
  }
  writer.Commit();
}

TensorMap OnCpu(const VectorCase& each) {
  TensorMap outputs = MakeImplementation("cpu:v3")->Run(
      FindOperation(each.c.op), each.c, each.inputs, 0);
  for (auto& [name, tensor] : outputs) {
    // Sums over all rows: our kernels keep them in double.
    if (tensor.dtype == Dtype::kF64) tensor.dtype = each.c.dtype;
    RoundValues(tensor);
  }
  return outputs;
}

std::string last_reason;  // of a FAIL, for messages

// The reference's expected outputs, rounded.
TensorMap Rounded(const Expected& expected) {
  TensorMap outputs;
  for (const auto& [name, output] : expected.outputs) {
    outputs[name] = output.values;
    Tensor& tensor = outputs[name];
    if (tensor.dtype == Dtype::kF64) tensor.dtype = Dtype::kF32;
    RoundValues(tensor);
  }
  return outputs;
}

// The statuses of all cases, judged as recorded outputs.
std::set<std::string> Judge(const fs::path& vectors, const fs::path& outputs,
                            int64_t* ambiguous = nullptr) {
  const auto recorded = MakeImplementation("recorded:" + vectors.string() +
                                           "," + outputs.string());
  std::set<std::string> statuses;
  for (const VectorCase& each : ReadVectors(vectors)) {
    const CaseResult result = CheckInputs(each.c, each.inputs, *recorded);
    statuses.insert(StatusName(result.status));
    if (result.failed()) last_reason = result.reason;
    if (ambiguous != nullptr) *ambiguous += result.ambiguous;
  }
  return statuses;
}

TEST(Vectors, HoldEveryOperationAndComeBack) {
  const fs::path path = FreshFolder("vectors") / "v.h5";
  std::vector<Case> cases;
  for (const Operation* op : Operations()) {
    for (const Case& c : CasesOf(op->name(), 2)) cases.push_back(c);
  }
  WriteVectors(path, cases);
  const std::vector<VectorCase> back = ReadVectors(path);
  ASSERT_EQ(back.size(), cases.size());
  for (size_t i = 0; i < back.size(); ++i) {
    Case c = back[i].c;
    c.impl = "theirs";
    EXPECT_EQ(c, cases[i]);
    const Operation& op = FindOperation(c.op);
    EXPECT_EQ(back[i].inputs, InputsOf(op, c)) << CaseText(c);
    EXPECT_EQ(back[i].outputs.size(), op.outputs().size());
  }
  CheckExpectations(path, back);
}

// Judging and exporting use the same bound at every dtype.
TEST(Vectors, HoldTheBoundsThatJudge) {
  const fs::path path = FreshFolder("bounds") / "v.h5";
  std::vector<Case> cases;
  for (const Operation* op : Operations()) {
    for (const Dtype dtype : op->dtypes()) {
      for (const Case& c :
           CasesOf(op->name(), 2, std::string("dtype=") + DtypeName(dtype))) {
        cases.push_back(c);
      }
    }
  }
  WriteVectors(path, cases);
  // Makes the choices of the reference, which the exported values follow.
  const auto reference = MakeImplementation("reference_f64");
  int64_t compared = 0;
  for (const VectorCase& each : ReadVectors(path)) {
    Evidence judged;
    CheckInputs(each.c, each.inputs, *reference, &judged);
    ASSERT_EQ(each.outputs.size(), judged.expected.outputs.size());
    for (const auto& [name, output] : judged.expected.outputs) {
      EXPECT_EQ(each.outputs.at(name).bounds.values, output.bounds)
          << CaseText(each.c) << ": " << name;
      compared += output.values.size();
    }
  }
  EXPECT_GT(compared, 1000);
  const Hdf5Reader reader(path, {"verify-vectors", 2});
  EXPECT_EQ(reader.ReadInt("/", "vectors_version"), 2);
  EXPECT_EQ(reader.ReadString("/derivations", AtF64Derivation().id),
            AtF64Derivation().text);
}

// Refuses a double that errs by more than a double may, though by far less than
// the bound of float.
TEST(Vectors, AtF64RefuseWhatOnlyFloatAllows) {
  const fs::path folder = FreshFolder("f64");
  WriteVectors(folder / "v.h5", CasesOf("lapsum", 5, "rows=3 dtype=f64"));
  const auto answer = [](double off) {
    return [off](const VectorCase& each) {
      TensorMap outputs;
      for (const auto& [name, output] : each.outputs) {
        outputs[name] = output.values;
      }
      outputs["weights"].values[0] +=
          off * each.outputs.at("weights").bounds.values[0];
      return outputs;
    };
  };
  WriteTheirs(folder / "v.h5", folder / "right.h5", answer(0.5));
  EXPECT_EQ(Judge(folder / "v.h5", folder / "right.h5"),
            std::set<std::string>{"PASS"})
      << last_reason;
  WriteTheirs(folder / "v.h5", folder / "wrong.h5", answer(1.5));
  EXPECT_EQ(Judge(folder / "v.h5", folder / "wrong.h5"),
            std::set<std::string>{"FAIL"});
  // Expectations from another machine are accepted: its reference and ours may
  // each err by half of such a bound.
  std::vector<VectorCase> other = ReadVectors(folder / "v.h5");
  VectorOutput& weights = other[0].outputs.at("weights");
  const double value = weights.values.values[0];
  weights.values.values[0] = value + 0.9 * weights.bounds.values[0];
  CheckExpectations("v.h5", other);
  weights.values.values[0] = value + 1.5 * weights.bounds.values[0];
  EXPECT_THROW(CheckExpectations("v.h5", other), DataError);
}

TEST(Vectors, AStopLeavesNoFile) {
  const fs::path folder = FreshFolder("stopped_vectors");
  const StopSignal stop;
  ASSERT_EQ(::raise(SIGTERM), 0);
  EXPECT_TRUE(Says(MessageOf<StoppedError>([&] {
                     WriteVectors(folder / "v.h5", CasesOf("lapsum", 2));
                   }),
                   "SIGTERM: no vectors were written"));
  EXPECT_TRUE(FilesIn(folder).empty());
}

TEST(Vectors, AreTheSameBytesTwice) {
  const fs::path folder = FreshFolder("twice");
  WriteVectors(folder / "a.h5", CasesOf("lapsum", 5));
  WriteVectors(folder / "b.h5", CasesOf("lapsum", 5));
  EXPECT_EQ(ReadWholeFile(folder / "a.h5"), ReadWholeFile(folder / "b.h5"));
}

TEST(Vectors, JudgeWhatOthersComputed) {
  const fs::path folder = FreshFolder("judge");
  WriteVectors(folder / "v.h5", CasesOf("lapsum", 10, "rows=3"));
  WriteTheirs(folder / "v.h5", folder / "right.h5", OnCpu);
  EXPECT_EQ(Judge(folder / "v.h5", folder / "right.h5"),
            std::set<std::string>{"PASS"})
      << last_reason;
  WriteTheirs(folder / "v.h5", folder / "wrong.h5", [](const VectorCase& each) {
    TensorMap outputs = OnCpu(each);
    // One element is off by 2.5 times the bound.
    const VectorOutput& expected = each.outputs.at("weights");
    outputs["weights"].values.back() =
        RoundTo(Dtype::kF32, expected.values.values.back() +
                                 2.5 * expected.bounds.values.back());
    return outputs;
  });
  EXPECT_EQ(Judge(folder / "v.h5", folder / "wrong.h5"),
            std::set<std::string>{"FAIL"});
}

// Each case is judged by the answer of its own group, even if another case has
// the same inputs.
TEST(Vectors, JudgeEachGroupByItself) {
  const fs::path folder = FreshFolder("groups");
  WriteVectors(folder / "v.h5", CasesOf("add", 30, "fill=exact size=1"));
  std::vector<TensorMap> seen;
  int64_t repeated = 0;
  WriteTheirs(folder / "v.h5", folder / "o.h5", [&](const VectorCase& each) {
    TensorMap outputs = OnCpu(each);
    if (std::ranges::find(seen, each.inputs) != seen.end()) {
      ++repeated;
      for (auto& [name, tensor] : outputs) tensor.values.front() = 777;
    }
    seen.push_back(each.inputs);
    return outputs;
  });
  ASSERT_GT(repeated, 0);
  const auto recorded =
      MakeImplementation("recorded:" + (folder / "v.h5").string() + "," +
                         (folder / "o.h5").string());
  int64_t failed = 0;
  for (const VectorCase& each : ReadVectors(folder / "v.h5")) {
    failed += CheckInputs(each.c, each.inputs, *recorded).failed();
  }
  EXPECT_EQ(failed, repeated);
}

// At a cutoff that float cannot distinguish from the weight, the choice may
// differ from that of the reference, and the other outputs are judged by it.
TEST(Vectors, FollowTheChoiceOfTheOther) {
  const fs::path folder = FreshFolder("choice");
  WriteVectors(
      folder / "v.h5",
      CasesOf("router", 60,
              "kind=soft fill=cutoff_exact rows=9 num_experts=8 max_active=8"));
  // The other framework rounds weights up across the cutoff if their bounds
  // allow it, chooses by them, and computes what follows.
  int64_t flipped = 0;
  const auto rounding_up = [&flipped](const VectorCase& each) {
    const Operation& op = FindOperation(each.c.op);
    const double cutoff = ScalarOf(each.inputs, "cutoff");
    TensorMap outputs = Rounded(ExpectOf(op, each.c, each.inputs, {}));
    Tensor& weights = outputs["soft_weights"];
    const VectorOutput& expected = each.outputs.at("soft_weights");
    for (int64_t i = 0; i < weights.size(); ++i) {
      const double above = StepBy(Dtype::kF32, cutoff, 1);
      if (weights.values[i] > cutoff ||
          std::abs(above - expected.values.values[i]) >
              expected.bounds.values[i]) {
        continue;
      }
      weights.values[i] = above;
      outputs["active"].values[i] = 1;
      ++flipped;
    }
    const Tensor theirs = weights;
    outputs = Rounded(ExpectOf(op, each.c, each.inputs, outputs));
    outputs["soft_weights"] = theirs;
    return outputs;
  };
  WriteTheirs(folder / "v.h5", folder / "right.h5", rounding_up);
  EXPECT_GT(flipped, 0);
  int64_t ambiguous = 0;
  const std::set<std::string> statuses =
      Judge(folder / "v.h5", folder / "right.h5", &ambiguous);
  EXPECT_FALSE(statuses.contains("FAIL")) << last_reason;
  EXPECT_EQ(ambiguous, flipped / 8);  // counted by token
  // A choice that no margin excuses: one expert more or less.
  WriteTheirs(folder / "v.h5", folder / "wrong.h5", [](const VectorCase& each) {
    TensorMap outputs = OnCpu(each);
    double& active = outputs["active"].values[0];
    active = 1 - active;
    return outputs;
  });
  EXPECT_TRUE(Judge(folder / "v.h5", folder / "wrong.h5").contains("FAIL"));
}

// A bundle keeps the computed outputs and the expected ones.
TEST(Vectors, ABundleReplaysWithoutItsGenerator) {
  const fs::path path = FreshFolder("bundle") / "b.h5";
  const Case c = ParseCase(
      "op=lapsum fill=generic rows=5 num_experts=13 "
      "impl=faulty:sign:d_scores:reference_f32");
  const auto implementation = MakeImplementation(c.impl);
  Evidence seen;
  const CaseResult result = CheckCase(c, *implementation, &seen);
  ASSERT_TRUE(result.failed());
  WriteBundle(path, result, seen.got);
  const std::vector<VectorCase> back = ReadVectors(path);
  ASSERT_EQ(back.size(), 1);
  EXPECT_EQ(back[0].c, c);
  EXPECT_EQ(back[0].inputs, seen.inputs);
  EXPECT_EQ(back[0].result, ReproLine(result));
  ASSERT_EQ(back[0].got.size(), seen.got.size());
  for (const auto& [name, tensor] : seen.got) {
    EXPECT_TRUE(SameBits(back[0].got.at(name), tensor)) << name;
  }
  CheckExpectations(path, back);
  EXPECT_EQ(ReproLine(CheckInputs(back[0].c, back[0].inputs, *implementation)),
            back[0].result);
}

TEST(Vectors, OfAnotherProgramAreRefused) {
  const fs::path folder = FreshFolder("other");
  WriteVectors(folder / "v.h5", CasesOf("lapsum", 2));
  std::vector<VectorCase> cases = ReadVectors(folder / "v.h5");
  std::vector<VectorCase> other = cases;
  other[1].outputs.at("weights").values.values[0] += 1e-6;
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { CheckExpectations("v.h5", other); }),
           "/cases/000001: weights[0, 0]: "));
  other = cases;
  other[0].outputs.at("weights").bounds.values[0] *= 2;
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { CheckExpectations("v.h5", other); }),
           "another version"));
  other = cases;
  other[0].outputs.at("weights").derivation = "lapsum-weights-f32/3";
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { CheckExpectations("v.h5", other); }),
           "are derived by lapsum-weights-f32/4 here, but by "
           "'lapsum-weights-f32/3' in the file",
           "export it again"));
  other = cases;
  other[0].inputs.at("scores").values[0] += 1;
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { CheckExpectations("v.h5", other); }),
           "input scores differs from the input of its case"));
  // A file that was changed in place, is of another version or another kind.
  std::string bytes = ReadWholeFile(folder / "v.h5");
  bytes[bytes.size() / 2] ^= 1;
  WriteFileAtomically(folder / "changed.h5", bytes);
  EXPECT_THROW(ReadVectors(folder / "changed.h5"), DataError);
  Hdf5Writer(folder / "former.h5", {"verify-vectors", 1}).Commit();
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { ReadVectors(folder / "former.h5"); }),
           "of version 1, this program reads version 2", "make it anew"));
  WriteTheirs(folder / "v.h5", folder / "theirs.h5", OnCpu);
  EXPECT_THROW(ReadVectors(folder / "theirs.h5"), DataError);
  // A dtype that another version may know.
  Hdf5Writer odd(folder / "odd.h5", {"verify-vectors", 2});
  for (const char* group :
       {"/cases", "/cases/000000", "/cases/000000/inputs"}) {
    odd.CreateGroup(group);
  }
  odd.WriteAttribute("/cases/000000", "case", CaseText(cases[0].c));
  odd.WriteDataset("/cases/000000/inputs/scores", std::vector<float>{1});
  odd.WriteAttribute("/cases/000000/inputs/scores", "dtype",
                     std::string("f16"));
  odd.Commit();
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { ReadVectors(folder / "odd.h5"); }),
           "odd.h5: /cases/000000: ", "f16", "export it again"));
}

}  // namespace
}  // namespace softmoe::verify
