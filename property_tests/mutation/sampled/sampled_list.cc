// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/sampled_list.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"

namespace softmoe::mutation {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

// Texts longer than this are cut in lists.
constexpr size_t kKeptText = 200;

Json ToJson(const SampledRun& run) {
  return {{"format", kFormat},
          {"seed", run.seed},
          {"faults", run.faults},
          {"sources", run.sources},
          {"clang", run.clang},
          {"compiler", run.compiler},
          {"within", run.part},
          {"units", run.units},
          {"places", run.places},
          {"left_out_in_macros", run.left_out.in_macros},
          {"left_out_constants", run.left_out.constants},
          {"left_out_declarations", run.left_out.declarations},
          {"left_out_messages", run.left_out.messages},
          {"unseen", run.unseen}};
}

SampledRun RunOf(const Json& json) {
  if (json.at("format") != kFormat) {
    throw DataError(fmt::format("format {} is not {}, which this program reads",
                                json.at("format").dump(), kFormat));
  }
  return {.seed = json.at("seed"),
          .faults = json.at("faults"),
          .sources = json.at("sources"),
          .clang = json.at("clang"),
          .compiler = json.at("compiler"),
          .part = json.at("within"),
          .places = json.at("places"),
          .units = json.at("units"),
          .left_out = {.in_macros = json.at("left_out_in_macros"),
                       .constants = json.at("left_out_constants"),
                       .declarations = json.at("left_out_declarations"),
                       .messages = json.at("left_out_messages")},
          // (Older lists do not say.)
          .unseen = json.value("unseen", std::vector<std::string>())};
}

std::string Cut(const std::string& text) {
  return text.size() <= kKeptText ? text : text.substr(0, kKeptText) + "...";
}

MeasuredFault FaultOf(const Json& json) {
  MeasuredFault sampled;
  const bool is_statement = json.contains("statement");
  sampled.fault = {
      .id = json.at("id"),
      .file = json.at("file"),
      .span = {json.at("begin"), json.at("end")},
      .syntax = is_statement ? Syntax::kStatement : Syntax::kExpression,
      .kind = json.at("change"),
      .instead = json.at("instead")};
  sampled.line = json.at("line");
  sampled.original = json.at(is_statement ? "statement" : "expression");
  sampled.fate = FateOf(json.at("outcome"));
  sampled.suite = json.value("suite", "");
  sampled.signal = json.value("signal", 0);
  sampled.reason = json.value("reason", "");
  sampled.suites = json.value("suites", int64_t{0});
  sampled.seconds = json.value("seconds", 0.0);
  sampled.equal_objects = json.value("equal_objects", false);
  return sampled;
}

constexpr char kRemedy[] =
    "; a list belongs to one state of sources and options: finish it there, or "
    "remove it and start again";

}  // namespace

std::string IdPrefix(const SampledRun& run) {
  const std::string seed = fmt::format("s{}", run.seed);
  return run.part.empty() ? seed
                          : seed + "-" + Sha256Hex(run.part).substr(0, 8);
}

SampledList::SampledList(std::filesystem::path path) : path_(std::move(path)) {
  if (std::filesystem::exists(path_)) Read();
}

void SampledList::Read() {
  faults_.clear();
  by_id_.clear();
  int line = 0;
  for (const Json& record : ReadJsonLines(path_)) {
    const std::string place = fmt::format("{}:{}", path_.string(), ++line);
    try {
      if (line == 1) {
        run_ = RunOf(record);
        continue;
      }
      MeasuredFault fault = FaultOf(record);
      const auto [found, is_new] =
          by_id_.try_emplace(fault.fault.id, faults_.size());
      if (!is_new) {
        throw DataError(fault.fault.id +
                        " is in the list twice; remove one of the lines");
      }
      faults_.push_back(std::move(fault));
    } catch (const Json::exception& error) {
      throw DataError(place + ": not a line of a list of sampled faults (" +
                      error.what() + "); remove it, and start again");
    } catch (const DataError& error) {
      throw DataError(place + ": " + error.what());
    }
  }
}

const MeasuredFault* SampledList::Find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &faults_[found->second];
}

bool SampledList::IsComplete() const {
  int64_t drawn = 0;
  for (const MeasuredFault& fault : faults_) drawn += IsBuilt(fault.fate);
  return run_ && drawn == run_->faults;
}

void SampledList::RequireAskedFor(const SampledRun& run) const {
  if (!run_) return;
  const std::string name = path_.string();
  if (run_->seed != run.seed || run_->faults != run.faults) {
    throw DataError(fmt::format(
        "{}: begun as --sampled {} --seed {}, not --sampled {} --seed {}{}",
        name, run_->faults, run_->seed, run.faults, run.seed, kRemedy));
  }
  if (run_->part != run.part) {
    const auto text = [](const std::string& part) {
      return part.empty() ? "of all sources" : "with --in " + part;
    };
    throw DataError(fmt::format("{}: begun {}, not {}{}", name,
                                text(run_->part), text(run.part), kRemedy));
  }
}

void SampledList::Begin(const SampledRun& run) {
  const std::string name = path_.string();
  RequireAskedFor(run);
  if (run_) {
    if (run_->sources != run.sources) {
      throw DataError(name + ": the sources have changed since it was begun (" +
                      run_->sources.substr(0, 12) + ", now " +
                      run.sources.substr(0, 12) + ")" + kRemedy);
    }
    for (const auto& [recorded, now] :
         {std::pair{run_->clang, run.clang},
          std::pair{run_->compiler, run.compiler}}) {
      if (recorded != now) {
        throw EnvironmentError(name + ": begun with the compiler '" + recorded +
                               "', which is now '" + now + "'" + kRemedy);
      }
    }
    // (The sources and clang's version, both equal here, determine the places.)
    if (run_->places != run.places) {
      throw InternalError(
          fmt::format("{}: begun with {} places, of which there are now {}",
                      name, run_->places, run.places));
    }
  }
  MakeFolder(path_.parent_path());
  writer_.emplace(path_);
  if (run_) Read();  // again: the last line may have lacked its end
  if (!run_) writer_->Write(ToJson(run));
  run_ = run;
}

void SampledList::RequireSame(const PlacedFault& fault) const {
  const MeasuredFault* known = Find(fault.id);
  if (known == nullptr) return;
  if (known->fault.file != fault.file ||
      known->fault.span.begin != fault.span.begin ||
      known->fault.span.end != fault.span.end ||
      known->fault.instead != fault.instead) {
    throw DataError(
        fmt::format("{}: {} is not the fault that this seed draws{}",
                    path_.string(), fault.id, kRemedy));
  }
}

void SampledList::Add(const MeasuredFault& fault) {
  const std::lock_guard lock(mutex_);
  SOFTMOE_CHECK(writer_.has_value());
  SOFTMOE_CHECK(by_id_.try_emplace(fault.fault.id, faults_.size()).second)
      << fault.fault.id;
  MeasuredFault kept = fault;
  kept.original = Cut(kept.original);
  kept.reason = Cut(kept.reason);
  writer_->Write(FaultJson(kept));
  writer_->Sync();
  faults_.push_back(std::move(kept));
}

}  // namespace softmoe::mutation
