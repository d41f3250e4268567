// SPDX-License-Identifier: Apache-2.0
//
// reference_program.cc - answers every case of every operation with the rounded
// reference, which proves that all of a case gets through the files. With
// $AT_MOST, it declines cases with more rows than that; with $PAUSE, it takes
// that many microseconds more for each. It ends with 3 if its input is not what
// the text of the case says.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/foreign/case_file.h"

namespace {

using namespace softmoe;          // NOLINT: a main
using namespace softmoe::verify;  // NOLINT

void Check(bool same, const std::string& what) {
  if (!same) throw DataError(what + " is not what the case says");
}

void CheckParameters(const Hdf5Reader& reader, const std::string& group,
                     const Case& c) {
  for (const auto& [name, window] : c.sizes) {
    Check(reader.ReadInt(group, name) == window.count, name);
  }
  for (const auto& [name, value] : c.reals) {
    Check(reader.ReadDouble(group, name) == value, name);
  }
  for (const auto& [name, choice] : c.choices) {
    Check(reader.ReadString(group, name) == choice, name);
  }
}

void AnswerCase(const Hdf5Reader& reader, const std::string& group,
                Hdf5Writer& writer) {
  const Case c = ParseCase(reader.ReadString(group, "case"));
  const Operation& op = FindOperation(reader.ReadString(group, "op"));
  Check(op.name() == c.op, "op");
  Check(reader.ReadString(group, "dtype") == DtypeName(c.dtype), "dtype");
  CheckParameters(reader, group + "/parameters", c);
  TensorMap inputs;
  for (const std::string& name : reader.Children(group + "/inputs")) {
    inputs[name] = ReadTensor(reader, group + "/inputs/" + name);
  }
  Check(inputs == InputsOf(op, c), "an input");
  const char* pause = std::getenv("PAUSE");  // microseconds
  if (pause != nullptr) ::usleep(static_cast<useconds_t>(std::atoi(pause)));
  const char* at_most = std::getenv("AT_MOST");
  if (at_most != nullptr && c.Size("rows") > std::atoi(at_most)) {
    writer.CreateGroup(group);
    writer.WriteAttribute(group, "unsupported",
                          std::string("at most ") + at_most + " rows");
    return;
  }
  const auto outputs = ExpectOf(op, c, inputs, {}).outputs;
  for (const OutputSpec& spec : op.outputs()) {
    const std::string wanted = group + "/outputs/" + spec.name;
    Tensor tensor = outputs.at(spec.name).values;
    Check(reader.ReadDataset<int64_t>(wanted).values == tensor.shape, wanted);
    Check(reader.ReadInt(wanted, "optional") == spec.optional, wanted);
    tensor.dtype = ParseDtype(reader.ReadString(wanted, "dtype"));
    RoundValues(tensor);
    WriteTensor(writer, group + "/" + spec.name, tensor);
  }
}

void AnswerFile(const std::string& cases, const std::string& outputs) {
  const Hdf5Reader reader(cases, {"verify-cases", 1});
  Hdf5Writer writer(outputs, {"theirs", 1});
  int64_t answered = 0;
  for (const std::string& name : reader.Children("/cases")) {
    Check("/cases/" + name == CaseGroup(answered++), "the order");
    AnswerCase(reader, "/cases/" + name, writer);
  }
  Check(answered == reader.ReadInt("/", "num_cases"), "num_cases");
  writer.Commit();
}

}  // namespace

int main() {
  try {
    for (std::string cases, outputs; std::getline(std::cin, cases, '\t') &&
                                     std::getline(std::cin, outputs);) {
      AnswerFile(cases, outputs);
      std::cout << "done" << std::endl;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}
