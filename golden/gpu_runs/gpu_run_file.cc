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

// Texts of many lines: of one length in HDF5 they would be mostly nothing.
bool IsLong(const GpuField& field) {
  return field.name == "text" || field.name == "failed";
}

std::string PathOf(const std::string& kind, const GpuField& field) {
  return "/" + kind + "/" + field.name;
}

void WriteColumn(const std::vector<Json>& lines, const GpuField& field,
                 const std::string& path, Hdf5Writer* file) {
  std::vector<std::string> texts;
  std::vector<double> numbers;
  std::vector<int64_t> wholes;
  std::vector<uint8_t> truths;
  for (const Json& line : lines) {
    switch (field.type) {
      case Type::kText:
        texts.push_back(line[field.name]);
        break;
      case Type::kNumber:
        numbers.push_back(line.contains(field.name)
                              ? JsonNumber(line, field.name, path)
                              : NAN);
        break;
      case Type::kWhole:
        wholes.push_back(line[field.name]);
        break;
      case Type::kYesNo:
        truths.push_back(line[field.name] == true ? 1 : 0);
        break;
    }
  }
  switch (field.type) {
    case Type::kText:
      if (IsLong(field)) {
        const std::string bytes = Json(texts).dump();
        file->WriteDataset(path,
                           std::vector<uint8_t>(bytes.begin(), bytes.end()));
      } else {
        file->WriteDataset(path, texts);
      }
      break;
    case Type::kNumber:
      file->WriteDataset(path, numbers);
      break;
    case Type::kWhole:
      file->WriteDataset(path, wholes);
      break;
    case Type::kYesNo:
      file->WriteDataset(path, truths);
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

void ReadColumn(const Hdf5Reader& file, const GpuField& field,
                const std::string& path, std::vector<Json>* lines) {
  const auto add = [&](const auto& values) {
    AddColumn(file, field, path, values, lines);
  };
  switch (field.type) {
    case Type::kText:
      if (IsLong(field)) {
        const auto bytes = file.ReadDataset<uint8_t>(path).values;
        const Json texts =
            Json::parse(bytes.begin(), bytes.end(), nullptr, false);
        if (!texts.is_array()) Refuse(file, path, "no JSON array");
        std::vector<std::string> values;
        for (const Json& text : texts) {
          if (!text.is_string()) Refuse(file, path, "no texts");
          values.push_back(text);
        }
        add(values);
      } else {
        add(file.ReadDataset<std::string>(path).values);
      }
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
