// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/source_tree.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;

// Returns PATH of each line #include "PATH", and FOLDER/NAME of each #include
// <NAME> for every FOLDER of `folders`.
std::vector<std::string> Included(std::string_view text,
                                  const std::vector<std::string>& folders) {
  constexpr std::string_view kInclude = "#include ";
  std::vector<std::string> paths;
  for (size_t at = text.find(kInclude); at != text.npos;
       at = text.find(kInclude, at + 1)) {
    const std::string_view rest = text.substr(at + kInclude.size());
    const bool quoted = rest.starts_with('"');
    const size_t end = rest.find(quoted ? '"' : '>', 1);
    if ((!quoted && !rest.starts_with('<')) || end == rest.npos) continue;
    const std::string name(rest.substr(1, end - 1));
    if (quoted) {
      paths.push_back(name);
      continue;
    }
    for (const std::string& folder : folders) {
      paths.push_back((folder / fs::path(name)).lexically_normal());
    }
  }
  return paths;
}

// Whether the build makes the file. (Generated sources may name the commit.)
bool IsMade(const fs::path& file) {
  return file.string().find("/bazel-out/") != std::string::npos;
}

}  // namespace

SourceTree::SourceTree(const Project& project, fs::path tree,
                       const fs::path& written)
    : folder_(std::move(tree)) {
  fs::remove_all(folder_);
  std::string all;
  for (const auto& [path, file] : project.sources) {
    const std::string& text = texts_[path] = ReadWholeFile(file);
    MakeFolder((folder_ / path).parent_path());
    // Copied, since the file may be edited during the run.
    fs::copy_file(file, folder_ / path);
    if (!IsMade(file)) all += path + "\n" + Sha256Hex(text) + "\n";
  }
  std::map<std::string, fs::path> read;  // files that tests read
  for (const auto& [path, program] : project.programs) {
    if (!program.is_test) continue;
    read.insert(program.files.begin(), program.files.end());
  }
  const fs::path own = fs::weakly_canonical(written);
  std::string documents;
  for (const auto& [path, file] : read) {
    if (!fs::is_regular_file(file) || IsMade(file) ||
        path.starts_with("property_tests/mutation/") ||
        fs::weakly_canonical(file) == own) {
      continue;
    }
    const bool is_document = path.ends_with(".md");
    (is_document ? documents : all) += path + "\n" + Sha256OfFile(file) + "\n";
  }
  digest_ = Sha256Hex(all);
  digest_with_documents_ = Sha256Hex(all + documents);
}

const std::string* SourceTree::Text(const std::string& file) const {
  const auto found = texts_.find(file);
  return found == texts_.end() ? nullptr : &found->second;
}

const std::set<std::string>& SourceTree::ClosureOf(const std::string& file,
                                                   const Folders& folders) {
  const auto [found, is_new] = closures_.try_emplace({file, folders});
  if (!is_new) return found->second;
  std::set<std::string>& closure = found->second;
  std::vector<std::string> open = {file};
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    const std::string* text = Text(path);
    if (text == nullptr || !closure.insert(path).second) continue;
    for (std::string& next : Included(*text, folders)) {
      open.push_back(std::move(next));
    }
  }
  return closure;
}

const std::set<std::string>& SourceTree::Closure(const Unit& unit) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = of_units_.try_emplace(unit.key);
  if (is_new) {
    Folders folders;
    for (const std::string& flag : unit.flags) {
      if (flag.starts_with("-I")) folders.push_back(flag.substr(2));
    }
    found->second = ClosureOf(unit.source, folders);
    for (const std::string& flag : unit.flags) {  // of -include
      const std::set<std::string>& more = ClosureOf(flag, folders);
      found->second.insert(more.begin(), more.end());
    }
  }
  return found->second;
}

MeasuredFault Describe(const SourceTree& tree, const PlacedFault& fault) {
  const std::string& text = *tree.Text(fault.file);
  MeasuredFault measured;
  measured.fault = fault;
  measured.line = LineOf(text, fault.span.begin);
  measured.original =
      text.substr(fault.span.begin, fault.span.end - fault.span.begin);
  return measured;
}

Overlay SwitchedCopies(const SourceReader& read,
                       const std::vector<PlacedFault>& faults) {
  std::map<std::string, std::vector<Edit>> edits;
  for (const PlacedFault& fault : faults) {
    edits[fault.file].push_back(fault.edit());
  }
  Overlay overlay;
  for (auto& [file, of_file] : edits) {
    const std::string* text = read(file);
    SOFTMOE_CHECK(text != nullptr) << file;
    overlay[file] = Rewrite(*text, std::move(of_file));
  }
  return overlay;
}

std::string PlainCopy(const SourceTree& tree, const PlacedFault& fault) {
  const std::string* text = tree.Text(fault.file);
  SOFTMOE_CHECK(text != nullptr) << fault.file;
  const std::string_view original = std::string_view(*text).substr(
      fault.span.begin, fault.span.end - fault.span.begin);
  const bool is_expression = fault.syntax == Syntax::kExpression;
  std::string instead =
      is_expression ? "(" + fault.instead + ")" : "{" + fault.instead + "}";
  const auto lines = [](std::string_view of) {
    return std::ranges::count(of, '\n');
  };
  instead.append(std::max<int64_t>(0, lines(original) - lines(instead)), '\n');
  std::string copy = *text;
  copy.replace(fault.span.begin, original.size(), instead);
  return copy;
}

void WriteOverlay(const Overlay& overlay, const fs::path& folder) {
  fs::remove_all(folder);
  MakeFolder(folder);
  for (const auto& [file, text] : overlay) {
    MakeFolder((folder / file).parent_path());
    WriteFileAtomically(folder / file, text);
  }
}

}  // namespace softmoe::mutation
