// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/output_file.h"

#include <fmt/core.h>
#include <hdf5/serial/hdf5.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/hdf5/hdf5_handles.h"
#include "core/text/suggestion.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/foreign/answer_bytes.h"
#include "property_tests/verify/foreign/case_file.h"

namespace softmoe::verify {
namespace {

// More than any operation has; a longer list is not read to its end.
constexpr size_t kMaxMembers = 64;
constexpr size_t kMaxString = 4096;
constexpr int kMaxRank = 16;

// Everything below runs in the child, and throws problems as sentences.
struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string TypeText(hid_t type) {
  const size_t bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return fmt::format("float{}", bits);
    case H5T_INTEGER:
      return fmt::format("{}int{}",
                         H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_ENUM:
      return "bool or another enumeration";
    case H5T_STRING:
      return "a string";
    case H5T_COMPOUND:
      return "compound or complex";
    default:
      return "of another kind";
  }
}

const char* StoredText(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return "float64";
    case Dtype::kF32:
      return "float32";
    case Dtype::kBf16:
      return "float32, rounded to bf16";
    case Dtype::kI32:
      return "int32";
  }
  return "?";
}

// True if `name` exists, as an object of this very file.
bool HasOwn(hid_t group, const std::string& name) {
  if (H5Lexists(group, name.c_str(), H5P_DEFAULT) <= 0) return false;
  H5L_info_t info;
  if (H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT) < 0) {
    throw Problem("'" + name + "' cannot be read");
  }
  if (info.type != H5L_TYPE_HARD) {
    throw Problem("'" + name +
                  "' is a link to another place; store the data itself");
  }
  return true;
}

Hdf5Handle OpenGroup(hid_t parent, const std::string& name) {
  if (!HasOwn(parent, name)) return {};
  Hdf5Handle group(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), &H5Gclose);
  if (!group.valid()) throw Problem("'" + name + "' is not a group");
  return group;
}

// A text attribute of variable length, as h5py writes it, or of fixed length;
// "" if there is none.
std::string TextAttribute(hid_t group, const char* name) {
  if (H5Aexists(group, name) <= 0) return "";
  const Hdf5Handle attribute(H5Aopen(group, name, H5P_DEFAULT), &H5Aclose);
  const Hdf5Handle type(H5Aget_type(attribute.id()), &H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute.id()), &H5Sclose);
  std::string text;
  if (!type.valid() || H5Tget_class(type.id()) != H5T_STRING ||
      H5Sget_simple_extent_npoints(space.id()) != 1) {
    throw Problem(fmt::format("attribute '{}' is not one string", name));
  }
  if (H5Tis_variable_str(type.id()) > 0) {
    char* words = nullptr;
    if (H5Aread(attribute.id(), type.id(), &words) >= 0 && words != nullptr) {
      text.assign(words, strnlen(words, kMaxString));
    }
  } else {
    const size_t size = H5Tget_size(type.id());
    if (size > (1 << 20)) {
      throw Problem(fmt::format("attribute '{}' is too long", name));
    }
    std::string bytes(size + 1, '\0');
    if (H5Aread(attribute.id(), type.id(), bytes.data()) >= 0) {
      text.assign(bytes.c_str(), strnlen(bytes.c_str(), kMaxString));
    }
  }
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20) letter = ' ';
  }
  return text.empty() ? "without a word" : text;
}

std::vector<int64_t> ShapeOf(hid_t dataset) {
  const Hdf5Handle space(H5Dget_space(dataset), &H5Sclose);
  const H5S_class_t kind = H5Sget_simple_extent_type(space.id());
  if (kind == H5S_SCALAR) return {};
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (kind != H5S_SIMPLE || rank < 0 || rank > kMaxRank) {
    throw Problem("has no shape");
  }
  std::vector<hsize_t> extents(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
  return {extents.begin(), extents.end()};
}

// Refuses values that lie in other files.
void CheckStorage(hid_t dataset) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), &H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(creation.id());
  if (H5Pget_external_count(creation.id()) > 0 ||
      (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS &&
       layout != H5D_CHUNKED)) {
    throw Problem("lies in other files; store the data itself");
  }
}

template <typename T>
std::vector<T> ReadValues(hid_t dataset, hid_t memory_type, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  if (count > 0 && H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                           values.data()) < 0) {
    throw Problem("cannot be read: " + LastHdf5Error());
  }
  return values;
}

Tensor ReadTensor(hid_t group, const Wanted& wanted) {
  const Hdf5Handle dataset(H5Dopen2(group, wanted.name.c_str(), H5P_DEFAULT),
                           &H5Dclose);
  if (!dataset.valid()) throw Problem("is not a dataset");
  const Hdf5Handle type(H5Dget_type(dataset.id()), &H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.id());
  const size_t bytes = H5Tget_size(type.id());
  const bool fits =
      wanted.dtype == Dtype::kI32
          ? kind == H5T_INTEGER && bytes <= 8
          : kind == H5T_FLOAT && bytes == (wanted.dtype == Dtype::kF64 ? 8 : 4);
  if (!fits) {
    throw Problem(fmt::format("is {}, expected {}", TypeText(type.id()),
                              StoredText(wanted.dtype)));
  }
  Tensor tensor;
  tensor.dtype = wanted.dtype;
  tensor.shape = ShapeOf(dataset.id());
  if (tensor.shape != wanted.shape) {
    throw Problem(fmt::format("has shape {}, expected {}",
                              ShapeText(tensor.shape),
                              ShapeText(wanted.shape)));
  }
  CheckStorage(dataset.id());
  const int64_t count = NumElements(tensor.shape);
  if (wanted.dtype == Dtype::kI32) {
    for (const int64_t x :
         ReadValues<int64_t>(dataset.id(), H5T_NATIVE_INT64, count)) {
      if (x != static_cast<int32_t>(x)) {
        throw Problem(fmt::format("holds {}, which is not an int32", x));
      }
      tensor.values.push_back(static_cast<double>(x));
    }
    return tensor;
  }
  tensor.values = ReadValues<double>(dataset.id(), H5T_NATIVE_DOUBLE, count);
  for (const double x : tensor.values) {
    if (wanted.dtype == Dtype::kBf16 && !std::isnan(x) &&
        RoundTo(Dtype::kBf16, x) != x) {
      throw Problem(fmt::format("holds {:.9g}, which is not a bf16 number", x));
    }
  }
  return tensor;
}

// Refuses names in `group` that are no output.
void CheckNames(hid_t group, const Request& request) {
  std::vector<std::string> names, known;
  hsize_t index = 0;
  const herr_t status = H5Literate(
      group, H5_INDEX_NAME, H5_ITER_NATIVE, &index,
      [](hid_t, const char* name, const H5L_info_t*, void* result) -> herr_t {
        auto* list = static_cast<std::vector<std::string>*>(result);
        list->push_back(std::string(name).substr(0, 200));
        return list->size() > kMaxMembers ? 1 : 0;
      },
      &names);
  if (status < 0) throw Problem("its members cannot be listed");
  for (const Wanted& wanted : request.outputs) known.push_back(wanted.name);
  for (const std::string& name : names) {
    if (std::ranges::count(known, name) > 0) continue;
    throw Problem(fmt::format("'{}' is not an output of {}; {}", name,
                              request.c.op, Suggestion(name, known)));
  }
}

Answer ReadAnswer(hid_t cases, int64_t index, const Request& request) {
  const std::string place = CaseGroup(index);
  Answer answer;
  try {
    const Hdf5Handle group =
        OpenGroup(cases, place.substr(place.rfind('/') + 1));
    if (!group.valid()) throw Problem("is missing: the case was not answered");
    answer.unsupported = TextAttribute(group.id(), "unsupported");
    if (!answer.unsupported.empty()) return answer;
    const std::string error = TextAttribute(group.id(), "error");
    if (!error.empty()) {
      answer.problem = "the program reports an error: " + error;
      return answer;
    }
    CheckNames(group.id(), request);
    for (const Wanted& wanted : request.outputs) {
      answer.output = wanted.name;
      if (!HasOwn(group.id(), wanted.name)) continue;  // check.cc reports it
      answer.outputs[wanted.name] = ReadTensor(group.id(), wanted);
    }
    answer.output.clear();
  } catch (const Problem& problem) {
    answer.outputs.clear();
    answer.problem =
        answer.output.empty()
            ? fmt::format("outputs file, {}: {}", place, problem.what())
            : fmt::format("{} {}", answer.output, problem.what());
  }
  return answer;
}

std::string ReadAll(const std::filesystem::path& path,
                    std::span<const Request> requests) {
  SilenceHdf5();
  H5PLset_loading_state(0);  // load no filter that a file names
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                        &H5Fclose);
  if (!file.valid()) {
    const std::string reason = LastHdf5Error();
    throw Problem(
        "HDF5 cannot open it (" + reason + ")" +
        (reason.find("lock file") == std::string::npos
             ? ""
             : "; is it still open? Close it before the line \"done\""));
  }
  const Hdf5Handle cases = OpenGroup(file.id(), "cases");
  if (!cases.valid()) throw Problem("it has no group '/cases'");
  std::vector<Answer> answers;
  for (size_t i = 0; i < requests.size(); ++i) {
    answers.push_back(
        ReadAnswer(cases.id(), static_cast<int64_t>(i), requests[i]));
  }
  return EncodeAnswers(answers);
}

}  // namespace

OutputFile ReadOutputFile(const std::filesystem::path& path,
                          std::span<const Request> requests,
                          IsolationLimits limits) {
  OutputFile result;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() != std::filesystem::file_type::regular) {
    result.problem = status.type() == std::filesystem::file_type::not_found
                         ? "the outputs file is missing"
                         : "the outputs file is not a file";
    return result;
  }
  limits.value_bytes = MaxAnswerBytes(requests);
  limits.memory_bytes += 2 * limits.value_bytes;
  const IsolatedResult read =
      CallIsolated([&] { return ReadAll(path, requests); }, limits);
  if (!read.completed) {
    result.problem =
        AsUtf8(read.failure.starts_with("failed: ")
                   ? "the outputs file is unusable: " + read.failure.substr(8)
                   : "reading the outputs file " + read.failure);
    return result;
  }
  result.answers = DecodeAnswers(read.value, requests);
  return result;
}

}  // namespace softmoe::verify
