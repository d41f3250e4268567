// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/syntax_tree.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/errors.h"

namespace softmoe::mutation {
namespace {

using Json = nlohmann::ordered_json;

// Reads one tree as a stream, since clang's whole document would take gigabytes
// of memory. A place names its file only if it differs from the file printed
// before, so the order matters.
class Reader {
 public:
  std::unique_ptr<SyntaxNode> root;

  bool key(std::string& name) {
    key_ = name;
    return true;
  }
  bool start_object(size_t) {
    Frame frame;
    frame.key = key_;
    frame.list = list_;
    const Frame* parent = frames_.empty() ? nullptr : &frames_.back();
    if (parent == nullptr || (parent->node != nullptr && InArray("inner"))) {
      auto node = std::make_unique<SyntaxNode>();
      frame.node = node.get();
      if (parent == nullptr) {
        root = std::move(node);
      } else {
        parent->node->children.push_back(std::move(node));
      }
    } else if (parent->owner != nullptr || parent->node != nullptr) {
      frame.owner = parent->node != nullptr ? parent->node : parent->owner;
      frame.is_direct = parent->node != nullptr;
      frame.place = parent->place;
      frame.is_place = key_ == "begin" || key_ == "end" || key_ == "loc" ||
                       key_ == "spellingLoc" || key_ == "expansionLoc";
      if (parent->key == "range" && key_ == "begin") {
        frame.place = &frame.owner->begin;
      } else if (parent->key == "range" && key_ == "end") {
        frame.place = &frame.owner->end;
      }
      // The place where a macro is used counts, not the place of its text.
      frame.in_macro = key_ == "expansionLoc";
      if (key_ == "spellingLoc") frame.place = nullptr;
    }
    list_.clear();
    frames_.push_back(std::move(frame));
    return true;
  }
  bool end_object() {
    const Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (frame.is_place && frame.place != nullptr && frame.offset >= 0) {
      *frame.place = {file_, frame.offset, frame.length, frame.in_macro};
    }
    list_ = frame.list;
    return true;
  }
  bool start_array(size_t) {
    arrays_.push_back(list_);
    list_ = key_;
    return true;
  }
  bool end_array() {
    list_ = arrays_.back();
    arrays_.pop_back();
    return true;
  }

  bool string(std::string& value) {
    Frame& frame = frames_.back();
    if (frame.is_place) {
      if (key_ == "file") {
        file_ = std::filesystem::path(value).lexically_normal().string();
      }
    } else if (frame.node != nullptr) {
      SyntaxNode& node = *frame.node;
      if (key_ == "kind") node.kind = value;
      if (key_ == "name") node.name = value;
      if (key_ == "opcode") node.opcode = value;
      if (key_ == "castKind") node.cast = value;
    } else if (frame.is_direct) {
      if (frame.key == "type" && key_ == "qualType") frame.owner->type = value;
      if (frame.key == "referencedDecl" && key_ == "name") {
        frame.owner->name = value;
      }
    }
    return true;
  }
  bool boolean(bool value) {
    SyntaxNode* node = frames_.back().node;
    if (node == nullptr) return true;
    if (key_ == "isImplicit") node->is_implicit = value;
    if (key_ == "constexpr" || key_ == "isConstexpr") {
      node->is_constexpr = value;
    }
    if (key_ == "isPostfix") node->is_postfix = value;
    if (key_ == "hasElse") node->has_else = value;
    return true;
  }
  bool number_integer(int64_t value) { return Number(value); }
  bool number_unsigned(uint64_t value) {
    return Number(static_cast<int64_t>(value));
  }
  bool number_float(double, const std::string&) { return true; }
  bool null() { return true; }
  bool binary(Json::binary_t&) { return true; }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& error) {
    throw DataError(std::string("clang's syntax tree: ") + error.what());
  }

 private:
  struct Frame {
    std::string key;              // key of the object
    std::string list;             // the array in which it stands
    SyntaxNode* node = nullptr;   // if it is a node
    SyntaxNode* owner = nullptr;  // the node that it describes
    TokenPlace* place = nullptr;  // place of that node
    bool is_direct = false;       // not of a node it mentions
    bool is_place = false, in_macro = false;
    int64_t offset = -1, length = 0;
  };

  bool InArray(std::string_view name) const { return list_ == name; }

  bool Number(int64_t value) {
    Frame& frame = frames_.back();
    if (frame.is_place && key_ == "offset") frame.offset = value;
    if (frame.is_place && key_ == "tokLen") frame.length = value;
    return true;
  }

  std::vector<Frame> frames_;
  std::vector<std::string> arrays_;
  std::string key_, list_, file_;
};

}  // namespace

std::vector<std::unique_ptr<SyntaxNode>> ReadSyntaxTrees(
    std::string_view dump) {
  std::vector<std::unique_ptr<SyntaxNode>> trees;
  while (!dump.empty()) {
    const size_t line = std::min(dump.find('\n'), dump.size() - 1) + 1;
    if (dump.starts_with("Dumping ") || dump[0] == '\n') {
      dump.remove_prefix(line);
      continue;
    }
    // A tree ends with the first bracket in column 0.
    const size_t end = dump.starts_with("{\n") ? dump.find("\n}") : dump.npos;
    if (end == dump.npos) {
      throw DataError("clang's syntax tree is cut off, or no tree, at '" +
                      std::string(dump.substr(0, std::min<size_t>(line, 60))) +
                      "'");
    }
    Reader reader;
    Json::sax_parse(dump.begin(), dump.begin() + end + 2, &reader);
    trees.push_back(std::move(reader.root));
    dump.remove_prefix(end + 2);
  }
  return trees;
}

}  // namespace softmoe::mutation
