// SPDX-License-Identifier: Apache-2.0
//
// hostile_program.cc - does what other people's programs do wrong, selected by
// the word in $HOSTILE: ends, hangs, writes nothing, writes garbage, or writes
// HDF5 that libhdf5 opens but that is not what was asked for. Otherwise it
// writes zeros.
#include <hdf5/serial/hdf5.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

std::string mode;

std::vector<hsize_t> WantedShape(hid_t group, const std::string& name) {
  const hid_t dataset =
      H5Dopen2(group, ("outputs/" + name).c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  std::vector<long long> sizes(
      static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(dataset, H5T_NATIVE_LLONG, H5S_ALL, H5S_ALL, H5P_DEFAULT,
          sizes.data());
  H5Sclose(space);
  H5Dclose(dataset);
  return {sizes.begin(), sizes.end()};
}

void Write(hid_t group, const char* name, hid_t type,
           const std::vector<hsize_t>& shape, double value,
           hid_t creation = H5P_DEFAULT) {
  const hid_t space = shape.empty()
                          ? H5Screate(H5S_SCALAR)
                          : H5Screate_simple(static_cast<int>(shape.size()),
                                             shape.data(), nullptr);
  const hid_t dataset =
      H5Dcreate2(group, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count > 0 && count < 1 << 20 && H5Tget_class(type) != H5T_STRING) {
    const std::vector<double> values(static_cast<size_t>(count), value);
    H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
             values.data());
  }
  H5Dclose(dataset);
  H5Sclose(space);
}

void SetText(hid_t group, const char* name, const char* text) {
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, H5T_VARIABLE);  // as h5py does
  const hid_t attribute =
      H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, &text);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

// Writes "weights", the output to which the mischief is done.
void WriteWeights(hid_t to, std::vector<hsize_t> shape) {
  const char* name = "weights";
  hid_t type = H5T_IEEE_F32LE;
  double value = 0;
  if (mode == "missing") return;
  if (mode == "misnamed") name = "wieghts";
  if (mode == "misshapen") shape.front() += 1;
  if (mode == "transposed") std::swap(shape.front(), shape.back());
  if (mode == "nan") value = 0.0 / 0.0;
  if (mode == "float64") type = H5T_IEEE_F64LE;
  if (mode == "int32") type = H5T_STD_I32LE;
  if (mode == "string") type = H5Tcopy(H5T_C_S1);
  if (mode == "soft_link") {
    H5Lcreate_soft("/elsewhere", to, name, H5P_DEFAULT, H5P_DEFAULT);
  } else if (mode == "external_link") {
    H5Lcreate_external("/etc/passwd", "/", to, name, H5P_DEFAULT, H5P_DEFAULT);
  } else if (mode == "group") {
    H5Gclose(H5Gcreate2(to, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  } else if (mode == "external_data") {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/passwd", 0, H5F_UNLIMITED);
    const hid_t space =
        H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    H5Dclose(
        H5Dcreate2(to, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  } else if (mode == "huge") {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[] = {1024, 1024};
    H5Pset_chunk(creation, 2, chunk);
    Write(to, name, type, {hsize_t{1} << 31, hsize_t{1} << 30}, 0, creation);
  } else if (mode == "huge_chunk") {  // a chunk of 3 GiB for a few values
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[] = {1, 800'000'000};
    H5Pset_chunk(creation, 2, chunk);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_LATE);
    const hsize_t most[] = {H5S_UNLIMITED, H5S_UNLIMITED};
    const hid_t space = H5Screate_simple(2, shape.data(), most);
    H5Dclose(
        H5Dcreate2(to, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  } else {
    Write(to, name, type, shape, value);
  }
}

void WriteFile(const char* cases, const char* outputs) {
  const hid_t in = H5Fopen(cases, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t out = H5Fcreate(outputs, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (mode == "no_cases") {
    H5Fclose(out);
    return;
  }
  const hid_t from = H5Gopen2(in, "cases", H5P_DEFAULT);
  const hid_t to =
      H5Gcreate2(out, "cases", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5G_info_t info;
  H5Gget_info(from, &info);
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[32];
    snprintf(name, sizeof name, "%06llu", static_cast<unsigned long long>(i));
    if (mode == "unanswered" && i > 0) break;
    const hid_t one = H5Gopen2(from, name, H5P_DEFAULT);
    const hid_t answer =
        H5Gcreate2(to, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (mode == "unsupported" || mode == "error") {
      SetText(answer, mode.c_str(), "not on\na Friday");
    } else if (mode == "latin1") {
      SetText(answer, "error", "not on a f\xeate");
    } else {
      const std::vector<hsize_t> shape = WantedShape(one, "weights");
      WriteWeights(answer, shape);
      Write(answer, "d_scores", H5T_IEEE_F32LE, shape, 0);
      Write(answer, "d_mean_active", H5T_IEEE_F32LE, {}, 0);
    }
    H5Gclose(answer);
    H5Gclose(one);
  }
  H5Gclose(to);
  H5Fclose(out);
}

int Answer(const char* cases, const char* outputs) {
  if (mode == "exit") {
    fputs("I give\nup\n", stderr);
    return 3;
  }
  if (mode == "umlauts") {
    for (int i = 0; i < 300; ++i) fputs("\xc3\xb6", stderr);
    fputs(".", stderr);  // an odd number of bytes
    return 3;
  }
  if (mode == "crash") {
    signal(SIGSEGV, SIG_DFL);  // even if a sanitizer handles it
    raise(SIGSEGV);
  }
  if (mode == "leaves_group") setpgid(0, getpgid(getppid()));
  if (mode == "hang" || mode == "leaves_group") {
    while (true) pause();
  }
  if (mode == "chatter") {  // forever, so that a pipe would fill up
    while (true) puts("and another thing");
  }
  if (mode == "progress") {  // right, in far more lines than are kept
    for (int i = 0; i < 20000; ++i) printf("item %06d : done\n", i);
  }
  if (mode == "leaves_a_child" && fork() == 0) {
    sleep(30);  // holds our pipes
    _exit(0);
  }
  if (mode == "nothing") return 0;
  if (mode == "garbage") {
    std::ofstream(outputs) << "\x89HDF\r\n\x1a\n" << std::string(5000, 'g');
    return 0;
  }
  WriteFile(cases, outputs);
  if (mode == "torn") return truncate(outputs, 700);
  if (mode == "left_open") H5Fopen(outputs, H5F_ACC_RDWR, H5P_DEFAULT);
  return 0;
}

}  // namespace

int main() {
  const char* word = getenv("HOSTILE");
  mode = word == nullptr ? "" : word;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  for (std::string cases, outputs; std::getline(std::cin, cases, '\t') &&
                                   std::getline(std::cin, outputs);) {
    const int status = Answer(cases.c_str(), outputs.c_str());
    if (status != 0) return status;
    if (mode == "silent") continue;
    puts(mode == "other_words" ? "Done, I think" : "done");
    fflush(stdout);
    if (mode == "leaves") return 0;
  }
  return 0;
}
