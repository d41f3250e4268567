// SPDX-License-Identifier: Apache-2.0
//
// soft_topk_program.cc - the soft top-k of soft_topk.h as a program of its own,
// that uses only libhdf5: `verify run op=lapsum
// impl=serve:./soft_topk_program`, and, for conformance vectors,
// `soft_topk_program v.h5 theirs.h5`.
#include <hdf5/serial/hdf5.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "property_tests/verify/examples/soft_topk.h"

namespace {

struct Floats {
  std::vector<hsize_t> shape;
  std::vector<float> values;
};

Floats Read(hid_t group, const std::string& name) {
  const hid_t dataset = H5Dopen2(group, name.c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  Floats floats;
  floats.shape.resize(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, floats.shape.data(), nullptr);
  floats.values.resize(
      static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
          floats.values.data());
  H5Sclose(space);
  H5Dclose(dataset);
  return floats;
}

void Write(hid_t group, const char* name, const Floats& floats) {
  const hid_t space =
      floats.shape.empty()
          ? H5Screate(H5S_SCALAR)
          : H5Screate_simple(static_cast<int>(floats.shape.size()),
                             floats.shape.data(), nullptr);
  const hid_t dataset = H5Dcreate2(group, name, H5T_IEEE_F32LE, space,
                                   H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
           floats.values.data());
  H5Dclose(dataset);
  H5Sclose(space);
}

std::string TextAttribute(hid_t group, const char* name) {
  const hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
  const hid_t type = H5Aget_type(attribute);
  std::string text(H5Tget_size(type), '\0');
  H5Aread(attribute, type, text.data());
  H5Tclose(type);
  H5Aclose(attribute);
  return text.c_str();
}

void SetTextAttribute(hid_t group, const char* name, const std::string& text) {
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, text.size());
  const hid_t attribute =
      H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, text.data());
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

// Answers one case: its outputs, or that its operation is not offered.
void Answer(hid_t from, hid_t to) {
  const std::string op = TextAttribute(from, "op");
  if (op != "lapsum") {
    SetTextAttribute(to, "unsupported", "only lapsum, not " + op);
    return;
  }
  const Floats scores = Read(from, "inputs/scores");
  const Floats d_weights = Read(from, "inputs/d_weights");
  Floats weights = scores, d_scores = scores;
  Floats d_k{{}, {0}}, d_temperature{{}, {0}};
  soft_topk::Run(
      {static_cast<int64_t>(scores.shape[0]),
       static_cast<int64_t>(scores.shape[1]), scores.values.data(),
       d_weights.values.data(), Read(from, "inputs/mean_active").values[0],
       Read(from, "inputs/temperature").values[0]},
      soft_topk::PlantedBug(),
      {weights.values.data(), d_scores.values.data(), d_k.values.data(),
       d_temperature.values.data()});
  Write(to, "weights", weights);
  Write(to, "d_scores", d_scores);
  Write(to, "d_mean_active", d_k);
  Write(to, "d_temperature", d_temperature);
}

bool AnswerFile(const std::string& cases, const std::string& outputs) {
  const hid_t in = H5Fopen(cases.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t out =
      H5Fcreate(outputs.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (in < 0 || out < 0) return false;
  const hid_t from = H5Gopen2(in, "cases", H5P_DEFAULT);
  const hid_t to =
      H5Gcreate2(out, "cases", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5G_info_t info;
  H5Gget_info(from, &info);
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[32];
    snprintf(name, sizeof name, "%06llu", static_cast<unsigned long long>(i));
    const hid_t one = H5Gopen2(from, name, H5P_DEFAULT);
    const hid_t answer =
        H5Gcreate2(to, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    Answer(one, answer);
    H5Gclose(answer);
    H5Gclose(one);
  }
  H5Gclose(to);
  H5Gclose(from);
  H5Fclose(in);
  return H5Fclose(out) >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return AnswerFile(argv[1], argv[2]) ? 0 : 1;
  // As a server, it reads a pair of paths from every line.
  for (std::string cases, outputs; std::getline(std::cin, cases, '\t') &&
                                   std::getline(std::cin, outputs);) {
    if (!AnswerFile(cases, outputs)) return 1;
    std::cout << "done" << std::endl;
  }
  return 0;
}
