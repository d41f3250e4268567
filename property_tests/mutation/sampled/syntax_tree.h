// SPDX-License-Identifier: Apache-2.0
//
// syntax_tree.h - clang's syntax tree of a translation unit: its output for
// -Xclang -ast-dump=json, reduced to what places.h needs.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SYNTAX_TREE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SYNTAX_TREE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe::mutation {

// The place of a token; in a macro, the place where the macro is used.
struct TokenPlace {
  std::string file;     // as included, without "./"; "": nowhere
  int64_t offset = -1;  // bytes from the beginning of the file
  int64_t length = 0;
  bool in_macro = false;
};

struct SyntaxNode {
  std::string kind;    // clang's class: "BinaryOperator"
  std::string name;    // of a declaration, a member or a callee
  std::string opcode;  // an operator's: "+="
  std::string type;    // "const int"; a function's: "void (int)"
  std::string cast;    // a cast's kind: "PointerToBoolean"
  bool is_implicit = false;
  bool is_constexpr = false;
  bool is_postfix = false;
  bool has_else = false;
  TokenPlace begin, end;  // first and last token
  std::vector<std::unique_ptr<SyntaxNode>> children;
};

// Reads the trees in clang's output: with -ast-dump-filter, several, each after
// a line "Dumping NAME:". Throws DataError if one is truncated, or for anything
// else in the output.
std::vector<std::unique_ptr<SyntaxNode>> ReadSyntaxTrees(std::string_view dump);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SYNTAX_TREE_H_
