// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/find_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "property_tests/mutation/for_all.h"

namespace softmoe::mutation {
namespace {

using Json = nlohmann::ordered_json;

bool IsUnder(const std::string& path, const std::string& file) {
  return file == path || file.starts_with(path + "/");
}

// A .cu file is part of a source that the build generates for the simulator.
bool IsWanted(const Unit& unit) {
  return !unit.is_test && unit.compiler.empty() &&
         (IsProduct(unit.source) ||
          unit.source.find("/_shim_") != unit.source.npos);
}

std::vector<std::unique_ptr<SyntaxNode>> TreesOf(const Compiler& compiler,
                                                 const Unit& unit,
                                                 const std::string& filter) {
  const std::string dump = compiler.SyntaxTree(unit, filter);
  try {
    return ReadSyntaxTrees(dump);
  } catch (const DataError& error) {
    throw DataError(unit.source + ": " + error.what());
  }
}

}  // namespace

Part::Part(const std::vector<std::string>& paths) {
  std::set<std::string> asked;
  for (const std::string& text : paths) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      std::string path = text.substr(begin, end - begin);
      while (path.ends_with('/')) path.pop_back();
      if (path.empty()) {
        throw ConfigError("--in '" + text +
                          "': a path is empty; write kernels/cuda, or "
                          "kernels/cuda,optimized");
      }
      asked.insert(path);
      begin = end + 1;
    }
  }
  for (const std::string& path : asked) {
    const bool is_within = std::ranges::any_of(asked, [&](const auto& other) {
      return other != path && IsUnder(other, path);
    });
    if (!is_within) paths_.push_back(path);
  }
}

bool Part::Has(const std::string& file) const {
  return IsAll() || std::ranges::any_of(paths_, [&](const std::string& path) {
           return IsUnder(path, file);
         });
}

std::string Part::Text() const {
  return fmt::format("{}", fmt::join(paths_, ","));
}

void Part::RequireIn(const std::vector<std::string>& files) const {
  for (const std::string& path : paths_) {
    if (std::ranges::none_of(files, [&](const std::string& file) {
          return IsUnder(path, file);
        })) {
      throw ConfigError(
          fmt::format("--in {}: this contains no source in which faults are "
                      "drawn; name a folder or a file of reference, kernels, "
                      "optimized, trainer or golden, by its path from the root",
                      path));
    }
  }
}

FoundPlaces FindPlaces(const Project& project, SourceTree& tree,
                       const Compiler& compiler, const Part& part, int jobs,
                       const std::function<bool()>& stop,
                       const std::function<void(size_t, size_t)>& done) {
  const auto has_places = [&](const std::string& file) {
    return IsProduct(file) && part.Has(file);
  };
  std::vector<std::string> products;
  for (const auto& [path, file] : project.sources) {
    if (IsProduct(path)) products.push_back(path);
  }
  part.RequireIn(products);
  std::vector<const Unit*> units;
  for (const auto& [key, unit] : project.units) {
    if (IsWanted(unit) && std::ranges::any_of(tree.Closure(unit), has_places)) {
      units.push_back(&unit);
    }
  }
  PlaceFinder finder([&](const std::string& file) {
    return has_places(file) ? tree.Text(file) : nullptr;
  });
  std::mutex mutex;
  std::set<std::string> seen;  // files
  size_t count = 0;
  ForAll(units.size(), jobs, stop, [&](size_t i) {
    const Unit& unit = *units[i];
    // A program's main file is outside our namespace.
    const std::string* text = tree.Text(unit.source);
    std::vector<std::string> filters = {"softmoe"};
    if (text != nullptr && text->find("\nint main(") != text->npos) {
      filters.insert(filters.end(), {"main", "(anonymous namespace)"});
    }
    for (const std::string& filter : filters) {
      const auto trees = TreesOf(compiler, unit, filter);
      const std::lock_guard lock(mutex);
      for (const auto& one : trees) finder.Add(*one);
      if (trees.empty()) continue;
      const std::set<std::string>& closure = tree.Closure(unit);
      seen.insert(closure.begin(), closure.end());
    }
    const std::lock_guard lock(mutex);
    done(++count, units.size());
  });
  FoundPlaces found;
  found.places = finder.Places();
  found.left_out = finder.Missing();
  found.units = static_cast<int64_t>(units.size());
  for (const std::string& path : products) {
    if (has_places(path) && !seen.contains(path)) {
      found.unseen.push_back(path);
    }
  }
  return found;
}

std::string PlacesText(const FoundPlaces& found) {
  Json json = {{"units", found.units},
               {"unseen", found.unseen},
               {"in_macros", found.left_out.in_macros},
               {"constants", found.left_out.constants},
               {"declarations", found.left_out.declarations},
               {"messages", found.left_out.messages},
               {"places", Json::array()}};
  for (const Place& place : found.places) {
    Json changes = Json::array();
    for (const Change& change : place.changes) {
      changes.push_back({change.kind, change.instead});
    }
    json["places"].push_back({place.file, place.span.begin, place.span.end,
                              place.syntax == Syntax::kStatement, changes});
  }
  return json.dump();
}

FoundPlaces ReadPlaces(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    FoundPlaces found;
    found.units = json.at("units");
    found.unseen = json.at("unseen").get<std::vector<std::string>>();
    found.left_out = {json.at("in_macros"), json.at("constants"),
                      json.at("declarations"), json.at("messages")};
    for (const Json& one : json.at("places")) {
      Place place = {one.at(0),
                     {one.at(1), one.at(2)},
                     one.at(3) ? Syntax::kStatement : Syntax::kExpression,
                     {}};
      for (const Json& change : one.at(4)) {
        place.changes.push_back({change.at(0), change.at(1)});
      }
      found.places.push_back(std::move(place));
    }
    return found;
  } catch (const Json::exception& error) {
    throw DataError(std::string("a list of places: ") + error.what());
  }
}

}  // namespace softmoe::mutation
