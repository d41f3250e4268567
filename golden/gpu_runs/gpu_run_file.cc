// SPDX-License-Identifier: Apache-2.0
//
//   /order              [lines] kinds of all lines, as they came
//   /KIND/FIELD         [lines of this kind]: text, i64, u8 (0, 1) or f64; NaN
//                       where something was not measured
//   /KIND/FIELD (long)  u8 [bytes]: a JSON array of texts
#include "golden/gpu_runs/gpu_run_file.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/sha256.h"
#include "core/hdf5/hdf5_file.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;
using Type = GpuField::Type;

const Hdf5Kind kKind = {"gpu-run", 1};
constexpr char kOrder[] = "/order";

std::string PathOf(const std::string& kind, const GpuField& field) {
  return "/" + kind + "/" + field.name;
}

void WriteColumn(const std::vector<Json>& lines, const GpuField& field,
                 const std::string& path, Hdf5Writer* file) {
  // The field of every line, as given by value_of.
  const auto column = [&](const auto& value_of) {
    std::vector<std::invoke_result_t<decltype(value_of), const Json&>> values;
    for (const Json& line : lines) values.push_back(value_of(line));
    return values;
  };
  const auto text = [&](const Json& line) {
    return line[field.name].get<std::string>();
  };
  switch (field.type) {
    case Type::kText:
      file->WriteDataset(path, column(text));
      break;
    case Type::kLongText: {
      // HDF5 would store them as texts of one length, mostly padding.
      const std::string bytes = Json(column(text)).dump();
      file->WriteDataset(path,
                         std::vector<uint8_t>(bytes.begin(), bytes.end()));
      break;
    }
    case Type::kNumber:
      file->WriteDataset(path, column([&](const Json& line) {
                           return line.contains(field.name)
                                      ? JsonNumber(line, field.name, path)
                                      : NAN;
                         }));
      break;
    case Type::kWhole:
      file->WriteDataset(path, column([&](const Json& line) {
                           return line[field.name].get<int64_t>();
                         }));
      break;
    case Type::kYesNo:
      file->WriteDataset(path, column([&](const Json& line) {
                           return uint8_t{line[field.name] == true};
                         }));
      break;
  }
}

[[noreturn]] void Refuse(const Hdf5Reader& file, const std::string& path,
                         const std::string& what) {
  throw DataError(fmt::format("{}: {}: {}; import the record again",
                              file.path().string(), path, what));
}

template <typename T>
void AddColumn(const Hdf5Reader& file, const GpuField& field,
               const std::string& path, const std::vector<T>& values,
               std::vector<Json>* lines) {
  if (values.size() != lines->size()) {
    Refuse(file, path,
           fmt::format("{} values for {} lines", values.size(), lines->size()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    Json& line = (*lines)[i];
    if constexpr (std::is_same_v<T, double>) {
      if (field.measured && std::isnan(values[i])) continue;
    }
    if (field.type == Type::kYesNo) {
      line[field.name] = values[i] != T{};
    } else {
      line[field.name] = values[i];
    }
  }
}

std::vector<std::string> LongTexts(const Hdf5Reader& file,
                                   const std::string& path) {
  const auto bytes = file.ReadDataset<uint8_t>(path).values;
  const Json texts = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!texts.is_array()) Refuse(file, path, "no JSON array");
  std::vector<std::string> values;
  for (const Json& text : texts) {
    if (!text.is_string()) Refuse(file, path, "no texts");
    values.push_back(text);
  }
  return values;
}

void ReadColumn(const Hdf5Reader& file, const GpuField& field,
                const std::string& path, std::vector<Json>* lines) {
  const auto add = [&](const auto& values) {
    AddColumn(file, field, path, values, lines);
  };
  switch (field.type) {
    case Type::kText:
      add(file.ReadDataset<std::string>(path).values);
      break;
    case Type::kLongText:
      add(LongTexts(file, path));
      break;
    case Type::kNumber:
      add(file.ReadDataset<double>(path).values);
      break;
    case Type::kWhole:
      add(file.ReadDataset<int64_t>(path).values);
      break;
    case Type::kYesNo:
      add(file.ReadDataset<uint8_t>(path).values);
      break;
  }
}

}  // namespace

void RequireGolden(const GpuRecord& record, AcceptedRuns accepted,
                   const std::string& place) {
  const Json& run = record.Only("run");
  if (accepted == AcceptedRuns::kOfDevices && run["backend"] != "cuda") {
    throw DataError(place +
                    ": the record is of a simulated device, which "
                    "shows nothing of a real one; run run_all.sh on a "
                    "machine with a GPU");
  }
  if (run["planted"] != "") {
    throw DataError(place + ": in this run " +
                    run["planted"].get<std::string>() +
                    " was told to be wrong; run run_all.sh without --plant");
  }
  (void)record.Only("facts");
}

std::string GpuRunName(const GpuRecord& record) {
  const Json& facts = record.Only("facts");
  std::string lines;
  for (const Json& line : record.lines) lines += JsonLine(line) + "\n";
  return fmt::format("{}-{}-{}", facts["date"].get<std::string>(),
                     facts["architecture"].get<std::string>(),
                     Sha256Hex(lines).substr(0, 8));
}

void WriteGpuRun(const std::filesystem::path& path, const GpuRecord& record) {
  Hdf5Writer file(path, kKind);
  std::vector<std::string> order;
  for (const Json& line : record.lines) order.push_back(line["kind"]);
  file.WriteDataset(kOrder, order);
  for (const GpuLineKind& kind : GpuLineKinds()) {
    const std::vector<Json> lines = record.All(kind.name);
    if (lines.empty()) continue;
    for (const GpuField& field : kind.fields) {
      WriteColumn(lines, field, PathOf(kind.name, field), &file);
    }
  }
  file.Commit();
}

GpuRecord ReadGpuRun(const std::filesystem::path& path) {
  const Hdf5Reader file(path, kKind);
  const std::vector<std::string> order =
      file.ReadDataset<std::string>(kOrder).values;
  std::map<std::string, std::vector<Json>> by_kind;
  for (const std::string& kind : order) {
    by_kind[kind].push_back({{"kind", kind}});
  }
  for (const GpuLineKind& kind : GpuLineKinds()) {
    const auto lines = by_kind.find(kind.name);
    if (lines == by_kind.end()) continue;
    for (const GpuField& field : kind.fields) {
      ReadColumn(file, field, PathOf(kind.name, field), &lines->second);
    }
  }
  GpuRecord record;
  std::map<std::string, size_t> next;
  for (const std::string& kind : order) {
    Json line = by_kind[kind][next[kind]++];
    CheckGpuLine(line, path.string());
    record.lines.push_back(std::move(line));
  }
  CheckGpuRecord(record, path.string());
  return record;
}

}  // namespace softmoe::golden
