// SPDX-License-Identifier: Apache-2.0
//
// syntax_tree.h - what clang says a translation unit is made of: its output
// for -Xclang -ast-dump=json, cut down to what places.h looks at.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SYNTAX_TREE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SYNTAX_TREE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe::mutation {

// Where a token is. In a macro it is where the macro is used.
struct TokenPlace {
  std::string file;     // as it was included, "./" removed; "": nowhere
  int64_t offset = -1;  // bytes from the beginning of the file
  int64_t length = 0;
  bool in_macro = false;
};

struct SyntaxNode {
  std::string kind;    // of clang's class: "BinaryOperator"
  std::string name;    // of a declaration, member, or what is called
  std::string opcode;  // of an operator: "+="
  std::string type;    // "const int"; of a function "void (int)"
  std::string cast;    // kind of a cast: "PointerToBoolean"
  bool is_implicit = false;
  bool is_constexpr = false;
  bool is_postfix = false;
  bool has_else = false;
  TokenPlace begin, end;  // first and last token
  std::vector<std::unique_ptr<SyntaxNode>> children;
};

// The trees in such an output, of which -ast-dump-filter makes several, each
// after a line "Dumping NAME:". Throws DataError if one of them is cut off, or
// if there is something else.
std::vector<std::unique_ptr<SyntaxNode>> ReadSyntaxTrees(std::string_view dump);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SYNTAX_TREE_H_
