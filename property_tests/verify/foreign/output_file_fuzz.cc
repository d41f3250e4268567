// SPDX-License-Identifier: Apache-2.0
//
// Other people's outputs files: valid HDF5 with hostile contents, and then with
// any byte changed. libhdf5 may crash on them in the child process; this side
// always gets an answer that fits the request, or a sentence.
#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "core/hdf5/hdf5_file.h"
#include "property_tests/verify/foreign/case_file.h"
#include "property_tests/verify/foreign/output_file.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;
using verify::Dtype;

const Hdf5Kind kKind = {"outputs", 1};

std::vector<verify::Request> OneRequest() {
  verify::Request request;
  request.c.op = "lapsum";
  request.outputs = {{.name = "a", .dtype = Dtype::kF32, .shape = {2, 3}},
                     {.name = "b", .dtype = Dtype::kI32, .shape = {2}}};
  return {request};
}

fs::path GoodFile() {
  const fs::path path = ScratchFolder() / "good.h5";
  Hdf5Writer writer(path, kKind);
  const std::string group = verify::CaseGroup(0);
  WriteTensor(
      writer, group + "/a",
      verify::FromVector<double>(Dtype::kF32, {2, 3}, {1, 2, 3, 4, 5, 6}));
  WriteTensor(writer, group + "/b",
              verify::FromVector<double>(Dtype::kI32, {2}, {1, 2}));
  writer.Commit();
  return path;
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile(GoodFile());
  static const std::vector<verify::Request> requests = OneRequest();
  Choices choices(input);
  const fs::path path = ScratchFolder() / "outputs.h5";
  const std::string changes = choices.Text(64);
  if (!hostile.Write(path, Choices(changes))) return;
  std::string bytes = ReadWholeFile(path);
  while (!choices.done() && !bytes.empty()) {
    const size_t at = choices.Below(std::min<size_t>(bytes.size(), 1 << 16));
    if (choices.OneIn(32)) {
      bytes.resize(at);
    } else {
      bytes[at] = static_cast<char>(choices.Byte());
    }
  }
  WriteScratch(path, bytes);
  const verify::OutputFile file =
      ReadOutputFile(path, requests, {.seconds = 2});
  Require(!input.empty() ||
              (file.problem.empty() && file.answers.at(0).outputs.size() == 2),
          "the good file is refused: " + file.problem);
  if (!file.problem.empty()) return;
  Require(file.answers.size() == 1, "another number of answers");
  const verify::Answer& answer = file.answers[0];
  Require(answer.outputs.empty() || answer.problem.empty(),
          "outputs of an answer with a problem");
  for (const auto& [name, tensor] : answer.outputs) {
    Require((name == "a" && tensor.dtype == Dtype::kF32 &&
             tensor.shape == std::vector<int64_t>{2, 3}) ||
                (name == "b" && tensor.dtype == Dtype::kI32 &&
                 tensor.shape == std::vector<int64_t>{2}),
            name + " was not asked for like this");
  }
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const std::string& changes : HostileSeeds()) {
    seeds.push_back(static_cast<char>(changes.size()) + changes);
  }
  for (char at = 0; at < 64; ++at) {  // around the head of the HDF5 part
    seeds.push_back(std::string(1, '\0') + '\x02' + at + "\x01\x7f");
  }
  return seeds;
}

}  // namespace softmoe::fuzz
