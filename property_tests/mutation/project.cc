// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/project.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/process/process.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json Parse(const fs::path& listing) {
  Json json = Json::parse(ReadWholeFile(listing), nullptr, false);
  if (!json.is_object()) {
    throw DataError(listing.string() +
                    ": not a JSON object; build it again (./bazelw build)");
  }
  return json;
}

std::map<std::string, fs::path> Files(const Json& pairs, const fs::path& root) {
  std::map<std::string, fs::path> files;
  for (const Json& pair : pairs) {
    files[pair.at(0)] = root / pair.at(1).get<std::string>();
  }
  return files;
}

void Add(const Json& json, const fs::path& root, Project& project) {
  project.sources.merge(Files(json.at("sources"), root));
  for (const Json& unit : json.at("units")) {
    project.units[unit.at("key")] = {
        unit.at("key"),           unit.at("source"),   unit.at("flags"),
        unit.at("always_linked"), unit.at("compiler"), unit.at("is_test")};
  }
  const Json& program = json.at("program");
  if (program.is_null()) return;
  project.programs[program.at("path")] = {program.at("path"),
                                          program.at("is_test"),
                                          program.at("units"),
                                          program.at("archives"),
                                          program.at("linkopts"),
                                          program.at("compiler"),
                                          program.at("script"),
                                          program.at("arguments"),
                                          Files(program.at("files"), root),
                                          program.at("programs")};
}

// A program's output. Throws EnvironmentError with its errors if it fails.
std::string OutputOf(const std::vector<std::string>& arguments,
                     const fs::path& folder) {
  ProcessOptions options;
  options.arguments = arguments;
  options.folder = folder;
  options.output = ProcessOptions::Output::kApart;
  Process process(options);
  std::string output, errors;
  process.ListenToEnd([&](Process::Stream stream, std::string_view text) {
    (stream == Process::Stream::kOutput ? output : errors) += text;
  });
  if (process.ExitStatus() != 0) {
    throw EnvironmentError(fmt::format("{} ended with {}:\n{}", arguments[0],
                                       process.ExitStatus(), errors));
  }
  return output;
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

void ReadListing(const fs::path& listing, const fs::path& root,
                 Project& project) {
  try {
    Add(Parse(listing), root, project);
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: {}; build it again (./bazelw build)",
                                listing.string(), error.what()));
  }
}

void ReadFlags(const fs::path& listing, Project& project) {
  try {
    const Json json = Parse(listing);
    project.compiler = json.at("compiler");
    project.clang = json.at("clang");
    project.flags = json.at("flags").get<std::vector<std::string>>();
    project.linkopts = json.at("linkopts").get<std::vector<std::string>>();
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: {}; build it again (./bazelw build)",
                                listing.string(), error.what()));
  }
}

Project ReadProject(const fs::path& workspace, const fs::path& flags,
                    const std::set<std::string>& programs) {
  const std::string bazelw = (workspace / "bazelw").string();
  const std::string rules = "bazel/mutants.bzl";
  std::vector<std::string> build = {bazelw, "build", "--config=full",
                                    "--aspects=" + rules + "%code_aspect",
                                    "--output_groups=mutant_listing"};
  std::string all = "//...";  // targets
  if (!programs.empty()) {
    build.push_back("//property_tests/mutation:switch");
    all = "deps(" + build.back();
    for (const std::string& path : programs) {
      const size_t slash = path.rfind('/');
      build.push_back("//" + path.substr(0, slash) + ":" +
                      path.substr(slash + 1));
      all += " + " + build.back();
    }
    all += ")";
  } else {
    build.push_back(all);
  }
  OutputOf(build, workspace);
  const fs::path root =
      FirstLine(OutputOf({bazelw, "info", "execution_root"}, workspace));
  const fs::path bin =
      FirstLine(OutputOf({bazelw, "info", "bazel-bin"}, workspace));
  // Only current targets: the folder may have listings of earlier ones.
  std::istringstream labels(OutputOf(
      {bazelw, "query",
       "kind('cc_(library|binary|test) rule|_shim_variant_test rule', " + all +
           ") except attr(tags, '[\\[ ]manual[,\\]]', " + all + ")"},
      workspace));
  Project project;
  ReadFlags(flags, project);
  std::string label;
  while (std::getline(labels, label)) {
    const size_t colon = label.find(':');
    if (!label.starts_with("//") || colon == label.npos) continue;
    const fs::path listing = bin / label.substr(2, colon - 2) /
                             (label.substr(colon + 1) + ".mutants.json");
    if (fs::exists(listing)) ReadListing(listing, root, project);
  }
  if (project.programs.empty() || project.units.empty()) {
    throw InternalError("Bazel lists no programs in " + bin.string());
  }
  // Sources lie in the workspace; Bazel's view may lack a link to it.
  const auto find = [&](std::map<std::string, fs::path>& files) {
    for (auto& [path, file] : files) {
      if (file == root / path) file = workspace / path;
    }
  };
  find(project.sources);
  for (auto& [path, program] : project.programs) {
    find(program.files);
    for (std::string& archive : program.archives) archive = root / archive;
  }
  return project;
}

bool IsProduct(const std::string& path) {
  const auto starts = [&](std::string_view text) {
    return path.starts_with(text);
  };
  if (!starts("reference/") && !starts("kernels/") && !starts("optimized/") &&
      !starts("trainer/") && !starts("golden/")) {
    return false;
  }
  for (const char* part :
       {"_test.", "_test_util.", "_test_support.", "_testing.", "_fuzz.",
        "benchmark", "/planted_", "/testing/", "kernels/simt/device/",
        "kernels/simt/ptx/", "kernels/simt/shim/"}) {
    if (path.find(part) != path.npos) return false;
  }
  const std::string extension = fs::path(path).extension();
  return extension == ".cc" || extension == ".h" || extension == ".cu";
}

std::string VersionOf(const std::string& compiler) {
  return FirstLine(OutputOf({compiler, "--version"}, "."));
}

}  // namespace softmoe::mutation
