// SPDX-License-Identifier: Apache-2.0
//
// Outputs files that are damaged anywhere, and answers from a child that was
// overrun, never cause more than a problem.
#include "property_tests/verify/foreign/output_file.h"

#include <gtest/gtest.h>

#include <string>

#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_file.h"
#include "core/philox.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/foreign/answer_bytes.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

// Two requests, as if for cases of lapsum.
std::vector<Request> TwoRequests() {
  Request request;
  request.c.op = "lapsum";
  request.outputs = {{"weights", Dtype::kF32, {2, 3}, false},
                     {"active", Dtype::kI32, {2, 3}, false},
                     {"d_mean_active", Dtype::kF32, {}, true}};
  return {request, request};
}

// Writes as another program would, without our envelope, which the reader of
// outputs does not look for.
void WriteOutputs(const fs::path& path) {
  Hdf5Writer writer(path, {"theirs", 1});
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> active = {0, 1, 0, 1, 0, -7};
  for (const std::string group : {"/cases/000000", "/cases/000001"}) {
    writer.WriteDataset<float>(group + "/weights", weights, {2, 3});
    writer.WriteDataset<int64_t>(group + "/active", active, {2, 3});
    writer.WriteDataset<float>(group + "/d_mean_active",
                               std::vector<float>{0.5}, {});
    writer.WriteAttribute(group, "note", "ignored");
  }
  writer.Commit();
}

TEST(OutputFile, IsReadInTheTypesThatPeopleWrite) {
  const fs::path path = FreshFolder("outputs") / "theirs.h5";
  WriteOutputs(path);
  const std::vector<Request> requests = TwoRequests();
  const OutputFile file = ReadOutputFile(path, requests);
  ASSERT_EQ(file.problem, "");
  ASSERT_EQ(file.answers.size(), 2u);
  for (const Answer& answer : file.answers) {
    EXPECT_EQ(answer.problem, "");
    EXPECT_EQ(answer.outputs.at("weights").values,
              (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(answer.outputs.at("active").values.back(), -7);
    EXPECT_TRUE(answer.outputs.at("d_mean_active").shape.empty());
    EXPECT_EQ(answer.outputs.at("d_mean_active").values[0], 0.5);
  }
}

TEST(OutputFile, AnIntegerThatIsNoInt32IsNamed) {
  const fs::path path = FreshFolder("integers") / "theirs.h5";
  Hdf5Writer writer(path, {"theirs", 1});
  writer.WriteDataset<int64_t>("/cases/000000/active",
                               std::vector<int64_t>{1LL << 40}, {1});
  writer.Commit();
  Request request;
  request.c.op = "router";
  request.outputs = {{"active", Dtype::kI32, {1}, false}};
  const OutputFile file = ReadOutputFile(path, std::span(&request, 1));
  ASSERT_EQ(file.problem, "");
  EXPECT_EQ(file.answers[0].problem,
            "active holds 1099511627776, which is not an int32");
  EXPECT_EQ(file.answers[0].output, "active");
}

TEST(OutputFile, ABf16OutputHoldsBf16Numbers) {
  const fs::path path = FreshFolder("bf16") / "theirs.h5";
  Hdf5Writer writer(path, {"theirs", 1});
  writer.WriteDataset<float>("/cases/000000/y", std::vector<float>{1.5f}, {1});
  writer.WriteDataset<float>("/cases/000001/y", std::vector<float>{1.001f},
                             {1});
  writer.Commit();
  Request request;
  request.outputs = {{"y", Dtype::kBf16, {1}, false}};
  const std::vector<Request> requests = {request, request};
  const OutputFile file = ReadOutputFile(path, requests);
  EXPECT_EQ(file.answers.at(0).problem, "");
  EXPECT_TRUE(Says(file.answers.at(1).problem, "is not a bf16 number"));
}

// A file that is damaged and cut at random yields a problem, other values or,
// by chance, the same ones; it never crashes or hangs this process.
TEST(OutputFile, SurvivesDamageAnywhere) {
  const fs::path folder = FreshFolder("damaged");
  WriteOutputs(folder / "whole.h5");
  const std::string whole = ReadWholeFile(folder / "whole.h5");
  const std::vector<Request> requests = TwoRequests();
  const fs::path path = folder / "damaged.h5";
  int refused = 0, damaged = 0;
  for (uint32_t i = 0; i < 400; ++i) {
    const auto words = PhiloxWords({.seed = 5}, i);
    std::string bytes = whole;
    if (i % 8 == 0) {
      bytes.resize(words[0] % bytes.size());
    } else {
      for (uint32_t k = 0; k <= i % 4; ++k) {
        // After the user block, which HDF5 does not read.
        const auto more = PhiloxWords({.seed = 6, .step = k}, i);
        bytes[512 + more[0] % (bytes.size() - 512)] =
            static_cast<char>(more[1]);
      }
    }
    WritePlain(path, bytes);
    const OutputFile file = ReadOutputFile(
        path, requests, {.memory_bytes = 256 << 20, .seconds = 5});
    if (!file.problem.empty()) {
      ++refused;
      continue;
    }
    ASSERT_EQ(file.answers.size(), 2u);
    for (const Answer& answer : file.answers) {
      damaged += !answer.problem.empty();
      for (const auto& [name, tensor] : answer.outputs) {
        ASSERT_EQ(NumElements(tensor.shape), tensor.size());
      }
    }
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(damaged, 0);
}

TEST(AnswerBytes, ComeBackAsTheyWere) {
  const std::vector<Request> requests = TwoRequests();
  std::vector<Answer> answers(2);
  answers[0].outputs["weights"] = Tensor(Dtype::kF32, {2, 3});
  answers[0].outputs["weights"].values[4] = -0.25;
  answers[1].problem = "a sentence";
  answers[1].output = "weights";
  const std::vector<Answer> back =
      DecodeAnswers(EncodeAnswers(answers), requests);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].outputs, answers[0].outputs);
  EXPECT_EQ(back[1].problem, "a sentence");
  EXPECT_EQ(back[1].output, "weights");
}

TEST(AnswerBytes, NothingThatAnOverrunChildSendsIsBelieved) {
  const std::vector<Request> requests = TwoRequests();
  std::vector<Answer> answers(2);
  answers[0].outputs["weights"] = Tensor(Dtype::kF32, {2, 3});
  const std::string good = EncodeAnswers(answers);
  // Every prefix, every byte changed, and extra bytes.
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(DecodeAnswers(good.substr(0, size), requests)[1].problem, "");
  }
  EXPECT_NE(DecodeAnswers(good + "x", requests)[1].problem, "");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(0xff);
    for (const Answer& answer : DecodeAnswers(bytes, requests)) {
      for (const auto& [name, tensor] : answer.outputs) {
        EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
      }
    }
  }
  // A tensor whose shape, dtype or name was not asked for.
  for (const auto& [name, tensor] :
       TensorMap{{"weights", Tensor(Dtype::kF32, {3, 2})},
                 {"active", Tensor(Dtype::kF32, {2, 3})},
                 {"wieghts", Tensor(Dtype::kF32, {2, 3})}}) {
    std::vector<Answer> wrong(2);
    wrong[0].outputs[name] = tensor;
    EXPECT_NE(DecodeAnswers(EncodeAnswers(wrong), requests)[0].problem, "")
        << name;
  }
}

}  // namespace
}  // namespace softmoe::verify
