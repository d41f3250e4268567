// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/places.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace softmoe::mutation {

namespace {

// A statement's surroundings, which limit its changes.
struct Context {
  // The enclosing function: what `return` may return.
  enum class Returns { kUnknown, kNothing, kValue };
  Returns returns = Returns::kUnknown;
  // Without this statement control would run off the end of a function that
  // returns a value, which compilers assume never happens.
  bool is_last = false;
  bool is_constant = false, is_message = false;
  bool in_function = false;  // or in another kind of declaration
};

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)); }

// The text with comments replaced by spaces; strings are kept.
std::string WithoutComments(std::string_view text) {
  std::string result(text);
  for (size_t i = 0; i < text.size(); ++i) {
    if (const size_t mark = QuotationEnd(text, i); mark != i) {
      i = mark;
    } else if (text.substr(i, 2) == "//" || text.substr(i, 2) == "/*") {
      const bool is_line = text[i + 1] == '/';
      const size_t at = text.find(is_line ? "\n" : "*/", i + 2);
      const size_t end = at == text.npos ? text.size() : at + (is_line ? 0 : 2);
      std::fill(result.begin() + i, result.begin() + end, ' ');
      i = end - 1;
    }
  }
  return result;
}

std::string Trimmed(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// operator -> what might have been written instead
struct Operators {
  std::string_view is;
  const char* kind;
  std::vector<std::string_view> instead;
};

const std::vector<Operators>& AllOperators() {
  static const std::vector<Operators> operators = {
      {"+", "operator", {"-"}},         {"-", "operator", {"+"}},
      {"*", "operator", {"/"}},         {"/", "operator", {"*"}},
      {"%", "operator", {"*"}},         {"&", "operator", {"|"}},
      {"|", "operator", {"&"}},         {"^", "operator", {"&"}},
      {"<<", "operator", {">>"}},       {">>", "operator", {"<<"}},
      {"&&", "operator", {"||"}},       {"||", "operator", {"&&"}},
      {"+=", "operator", {"-="}},       {"-=", "operator", {"+="}},
      {"*=", "operator", {"/="}},       {"/=", "operator", {"*="}},
      {"%=", "operator", {"/="}},       {"&=", "operator", {"|="}},
      {"|=", "operator", {"&="}},       {"^=", "operator", {"|="}},
      {"<<=", "operator", {">>="}},     {">>=", "operator", {"<<="}},
      {"<", "comparison", {"<=", ">"}}, {"<=", "comparison", {"<", ">="}},
      {">", "comparison", {">=", "<"}}, {">=", "comparison", {">", "<="}},
      {"==", "comparison", {"!="}},     {"!=", "comparison", {"=="}},
  };
  return operators;
}

const Operators* FindOperators(std::string_view is) {
  for (const Operators& operators : AllOperators()) {
    if (operators.is == is) return &operators;
  }
  return nullptr;
}

template <size_t n>
bool IsOneOf(const std::string& kind,
             const std::array<std::string_view, n>& kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool IsConstantOnly(const SyntaxNode& node) {
  return IsOneOf(
      node.kind,
      std::to_array<std::string_view>(
          {"ConstantExpr", "StaticAssertDecl", "EnumDecl", "TemplateArgument",
           "UnaryExprOrTypeTraitExpr", "CXXNoexceptExpr", "ConceptDecl",
           "RequiresExpr", "TemplateTypeParmDecl", "NonTypeTemplateParmDecl",
           "TemplateTemplateParmDecl", "TypedefDecl", "TypeAliasDecl",
           "TypeAliasTemplateDecl", "ConceptSpecializationExpr"}));
}

bool IsFunction(const SyntaxNode& node) {
  return IsOneOf(node.kind,
                 std::to_array<std::string_view>(
                     {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl",
                      "CXXDestructorDecl", "CXXConversionDecl"}));
}

bool IsCompoundStatement(const SyntaxNode& node) {
  return IsOneOf(node.kind,
                 std::to_array<std::string_view>(
                     {"IfStmt", "ForStmt", "WhileStmt", "DoStmt", "SwitchStmt",
                      "CXXForRangeStmt", "CXXTryStmt"}));
}

bool IsStatement(const SyntaxNode& node) {
  return IsCompoundStatement(node) ||
         IsOneOf(node.kind, std::to_array<std::string_view>(
                                {"ReturnStmt", "BreakStmt", "ContinueStmt"}));
}

bool IsExpression(const SyntaxNode& node) {
  return node.kind.ends_with("Expr") || node.kind.ends_with("Operator") ||
         node.kind.ends_with("Literal") || node.kind == "ExprWithCleanups";
}

// The node inside the wrappers that clang adds.
const SyntaxNode& Spelled(const SyntaxNode& node) {
  const SyntaxNode* spelled = &node;
  while (spelled->children.size() == 1 &&
         IsOneOf(spelled->kind, std::to_array<std::string_view>(
                                    {"ImplicitCastExpr", "ExprWithCleanups",
                                     "MaterializeTemporaryExpr",
                                     "CXXBindTemporaryExpr", "ParenExpr"}))) {
    spelled = spelled->children[0].get();
  }
  return *spelled;
}

bool Throws(const SyntaxNode& node) {
  return Spelled(node).kind == "CXXThrowExpr";
}

// The result type of "int &(const int *) const" or "auto (int) -> bool".
std::string ResultType(const std::string& type) {
  const size_t arrow = type.rfind("-> ");
  if (arrow != type.npos) return type.substr(arrow + 3);
  size_t i = type.rfind(')');
  int depth = 0;  // depth of brackets around the parameters
  for (; i < type.size(); --i) {
    depth += type[i] == ')';
    depth -= type[i] == '(';
    if (depth == 0) break;
  }
  return Trimmed(type.substr(0, std::min(i, type.size())));
}

Context::Returns ReturnsOf(const SyntaxNode& function) {
  const std::string result = ResultType(function.type);
  if (function.kind == "CXXConstructorDecl" ||
      function.kind == "CXXDestructorDecl" || result == "void") {
    return Context::Returns::kNothing;
  }
  if (result.empty() || result.find("auto") != result.npos ||
      result.find("dependent") != result.npos || result.back() == '&') {
    return Context::Returns::kUnknown;
  }
  return Context::Returns::kValue;
}

bool IsWhole(std::string type) {
  if (type.starts_with("const ")) type.erase(0, 6);
  return IsOneOf(type, std::to_array<std::string_view>(
                           {"int", "unsigned int", "long", "unsigned long",
                            "short", "unsigned short", "size_t", "std::size_t",
                            "int64_t", "uint64_t", "int32_t", "uint32_t",
                            "long long", "unsigned long long", "ptrdiff_t",
                            "std::ptrdiff_t", "<dependent type>"}));
}

std::string PlainType(std::string type) {
  if (type.starts_with("const ")) type.erase(0, 6);
  while (!type.empty() && (type.back() == '&' || type.back() == ' ')) {
    type.pop_back();
  }
  return type;
}

}  // namespace

class PlaceWalk {
 public:
  explicit PlaceWalk(PlaceFinder& finder) : finder_(finder) {}

  void Visit(const SyntaxNode& node, Context context) {
    if (node.is_implicit && node.kind.ends_with("Decl")) return;
    if (IsConstantOnly(node)) context.is_constant = true;
    if (node.kind == "VarDecl" && node.is_constexpr) context.is_constant = true;
    if (IsFunction(node)) {
      context = {};
      context.returns = ReturnsOf(node);
      context.is_constant = node.is_constexpr;
      context.in_function = true;
    }
    if (node.kind == "ParmVarDecl" || node.kind == "FieldDecl") {
      context.in_function = false;  // the default value
    }
    if (node.kind == "LambdaExpr") return VisitLambda(node, context);
    if (IsExpression(node)) AddExpression(node, context);
    if (node.kind == "CXXThrowExpr") context.is_message = true;
    if (IsCompoundStatement(node) || node.kind == "ConditionalOperator") {
      AddCondition(node, context);
    }
    VisitChildren(node, context);
  }

 private:
  // The tree has the body twice: inside the lambda's class and beside it. The
  // one in the class knows the return type, but counts as constexpr, like every
  // lambda that can be.
  void VisitLambda(const SyntaxNode& lambda, Context context) {
    for (const auto& child : lambda.children) {
      Context inner = context;
      if (child->kind == "CXXRecordDecl") continue;
      if (child->kind == "CompoundStmt") {
        inner.in_function = true;
        inner.returns = Context::Returns::kUnknown;
        if (const SyntaxNode* call = CallOf(*lambda.children[0])) {
          inner.returns = ReturnsOf(*call);
          // Without a declared type it could return only what it does return.
          if (inner.returns == Context::Returns::kValue &&
              !HasResultType(lambda, *child)) {
            inner.returns = Context::Returns::kUnknown;
          }
        }
        inner.is_last =
            inner.returns == Context::Returns::kValue ||
            (inner.returns == Context::Returns::kUnknown && HasResult(*child));
      }
      Visit(*child, inner);
    }
  }

  static const SyntaxNode* CallOf(const SyntaxNode& node) {
    if (node.kind == "CXXMethodDecl" && node.name == "operator()") return &node;
    for (const auto& child : node.children) {
      if (const SyntaxNode* call = CallOf(*child)) return call;
    }
    return nullptr;
  }

  // Whether a lambda's body, without those of lambdas in it, returns something.
  static bool HasResult(const SyntaxNode& body) {
    return std::ranges::any_of(body.children, [](const auto& child) {
      if (child->kind == "ReturnStmt") return !child->children.empty();
      return child->kind != "LambdaExpr" && HasResult(*child);
    });
  }

  bool HasResultType(const SyntaxNode& lambda, const SyntaxNode& body) const {
    const std::string* text = Text(lambda.begin.file);
    if (text == nullptr || lambda.begin.in_macro || body.begin.in_macro ||
        body.begin.offset < lambda.begin.offset) {
      return false;
    }
    return text->substr(lambda.begin.offset,
                        body.begin.offset - lambda.begin.offset)
               .find("->") != std::string::npos;
  }

  void VisitChildren(const SyntaxNode& node, const Context& context) {
    const std::string& kind = node.kind;
    bool has_pattern = false;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const SyntaxNode& child = *node.children[i];
      Context inner = context;
      if (kind == "FunctionTemplateDecl" && IsFunction(child)) {
        if (std::exchange(has_pattern, true)) continue;  // an instantiation
      }
      if ((kind == "ClassTemplateDecl" &&
           child.kind == "ClassTemplateSpecializationDecl") ||
          (kind == "VarTemplateDecl" &&
           child.kind == "VarTemplateSpecializationDecl")) {
        continue;
      }
      if (kind == "IfStmt" && node.is_constexpr && IsExpression(child) &&
          !IsBody(node, i)) {
        inner.is_constant = true;
      }
      const bool is_last_of_block =
          kind == "CompoundStmt" && i + 1 == node.children.size();
      if (IsFunction(node)) {
        inner.is_last = child.kind == "CompoundStmt" &&
                        context.returns != Context::Returns::kNothing;
      } else if (kind == "CompoundStmt") {
        inner.is_last = context.is_last && is_last_of_block;
      } else if (!IsCompoundStatement(node) && kind != "CaseStmt" &&
                 kind != "DefaultStmt" && kind != "CXXCatchStmt") {
        inner.is_last = false;
      }
      if (&child == ConditionOf(node) && IsNeverLeft(node, child, context)) {
        continue;
      }
      if (IsBody(node, i)) AddStatement(child, inner);
      Visit(child, inner);
    }
  }

  // Whether child `i` is a statement in its own right.
  static bool IsBody(const SyntaxNode& node, size_t i) {
    const std::string& kind = node.kind;
    const size_t count = node.children.size();
    if (kind == "CompoundStmt") return true;
    if (kind == "IfStmt") return i + 1 + (node.has_else ? 1 : 0) >= count;
    if (kind == "DoStmt") return i == 0;
    return i + 1 == count && (kind == "ForStmt" || kind == "WhileStmt" ||
                              kind == "CXXForRangeStmt" || kind == "CaseStmt" ||
                              kind == "DefaultStmt");
  }

  const std::string* Text(const std::string& file) const {
    return file.empty() ? nullptr : finder_.texts_(file);
  }

  // The bytes of a node in a file where places are wanted; nullopt if they are
  // elsewhere or only partly in it. Nodes hidden in macros are counted.
  std::optional<Span> SpanOf(const SyntaxNode& node) {
    const std::string* text = Text(node.begin.file);
    if (text == nullptr) return std::nullopt;
    if (node.begin.in_macro || node.end.in_macro) {
      finder_.in_macros_.emplace(node.begin.file, node.begin.offset);
      return std::nullopt;
    }
    if (node.end.file != node.begin.file) return std::nullopt;
    const auto begin = static_cast<size_t>(node.begin.offset);
    const auto end = static_cast<size_t>(node.end.offset + node.end.length);
    if (begin >= end || end > text->size()) return std::nullopt;
    return Span{begin, end};
  }

  std::string TextOf(const SyntaxNode& node, const Span& span) const {
    return WithoutComments(
        Text(node.begin.file)->substr(span.begin, span.end - span.begin));
  }

  void Add(const SyntaxNode& node, const Span& span, Syntax syntax,
           std::vector<Change> changes, const Context& context) {
    if (changes.empty()) return;
    const std::string& file = node.begin.file;
    const auto offset = static_cast<int64_t>(span.begin);
    if (context.is_constant) {
      finder_.constants_.emplace(file, offset);
    } else if (context.is_message) {
      finder_.messages_.emplace(file, offset);
    } else if (!context.in_function) {
      finder_.declarations_.emplace(file, offset);
    } else {
      auto& all = finder_.places_[{file, span.begin, span.end, syntax}];
      for (Change& change : changes) all.insert(std::move(change));
    }
  }

  // `first OPERATOR second`, written that way.
  void AddOperator(const SyntaxNode& node, const SyntaxNode& first,
                   const SyntaxNode& second, const Context& context) {
    const std::optional<Span> span = SpanOf(node);
    if (!span) return;
    const std::optional<Span> left = SpanOf(first), right = SpanOf(second);
    if (!left || !right || left->end > right->begin ||
        left->begin != span->begin || right->end != span->end) {
      return;
    }
    const std::string between = Trimmed(WithoutComments(
        Text(node.begin.file)->substr(left->end, right->begin - left->end)));
    const Operators* operators = FindOperators(between);
    if (operators == nullptr) return;
    std::vector<Change> changes;
    for (const std::string_view instead : operators->instead) {
      changes.push_back({operators->kind, TextOf(first, *left) + " " +
                                              std::string(instead) + " " +
                                              TextOf(second, *right)});
    }
    Add(node, *span, Syntax::kExpression, changes, context);
  }

  void AddUnary(const SyntaxNode& node, const Context& context) {
    const std::string& op = node.opcode;
    if (op != "!" && op != "-" && op != "~" && op != "++" && op != "--") return;
    const std::optional<Span> span = SpanOf(node);
    if (!span || node.children.size() != 1) return;
    const std::string text = TextOf(node, *span);
    std::string instead;
    if (op == "++" || op == "--") {
      const std::string other = op == "++" ? "--" : "++";
      if (node.is_postfix && text.ends_with(op)) {
        instead = text.substr(0, text.size() - 2) + other;
      } else if (!node.is_postfix && text.starts_with(op)) {
        instead = other + text.substr(2);
      }
    } else if (op == "!") {
      // The operand alone may be of a class: in the switch, the bool beside it
      // would become one, too.
      instead = "!" + text;
    } else if (text.starts_with(op)) {
      instead = Trimmed(text.substr(1));
    }
    if (instead.empty()) return;
    Add(node, *span, Syntax::kExpression, {{"operator", instead}}, context);
  }

  void AddConstant(const SyntaxNode& node, const Context& context) {
    const std::optional<Span> span = SpanOf(node);
    if (!span) return;
    const std::string text = TextOf(node, *span);
    if (!std::isalnum(static_cast<unsigned char>(text[0])) && text[0] != '.') {
      return;
    }
    std::vector<Change> changes;
    if (node.kind == "CXXBoolLiteralExpr") {
      changes = {{"constant", text == "true" ? "false" : "true"}};
    } else if (node.kind == "IntegerLiteral") {
      changes = {{"constant", text + " + 1"}, {"constant", text + " - 1"}};
    } else if (text.find_first_of("123456789") == text.npos) {  // zero
      changes = {{"constant", text + " + 1"}};
    } else {
      changes = {{"constant", "2 * " + text}, {"constant", "0 * " + text}};
    }
    Add(node, *span, Syntax::kExpression, changes, context);
  }

  void AddIndex(const SyntaxNode& index, const Context& context) {
    if (!IsWhole(index.type)) return;
    const std::optional<Span> span = SpanOf(index);
    if (!span) return;
    const std::string text = TextOf(index, *span);
    Add(index, *span, Syntax::kExpression,
        {{"index", "(" + text + ") + 1"}, {"index", "(" + text + ") - 1"}},
        context);
  }

  // Calls with two neighbouring arguments of one type swapped.
  void AddSwaps(const SyntaxNode& call, size_t first, const Context& context) {
    if (call.children.size() < first + 2) return;
    const std::optional<Span> whole = SpanOf(call);
    if (!whole) return;
    const std::string text = TextOf(call, *whole);
    std::vector<Change> changes;
    for (size_t i = first; i + 1 < call.children.size(); ++i) {
      const SyntaxNode& a = *call.children[i];
      const SyntaxNode& b = *call.children[i + 1];
      if (a.kind == "CXXDefaultArgExpr" || b.kind == "CXXDefaultArgExpr" ||
          PlainType(a.type) != PlainType(b.type)) {
        continue;
      }
      const std::optional<Span> of_a = SpanOf(a), of_b = SpanOf(b);
      if (!of_a || !of_b || of_a->begin < whole->begin ||
          of_a->end >= of_b->begin || of_b->end > whole->end) {
        continue;
      }
      const std::string text_a = TextOf(a, *of_a), text_b = TextOf(b, *of_b);
      if (text_a == text_b) continue;
      const size_t begin = whole->begin;
      changes.push_back(
          {"arguments",
           text.substr(0, of_a->begin - begin) + text_b +
               text.substr(of_a->end - begin, of_b->begin - of_a->end) +
               text_a + text.substr(of_b->end - begin)});
    }
    Add(call, *whole, Syntax::kExpression, changes, context);
  }

  void AddExpression(const SyntaxNode& node, const Context& context) {
    const auto& children = node.children;
    const std::string& kind = node.kind;
    if (kind == "BinaryOperator" || kind == "CompoundAssignOperator") {
      if (children.size() == 2) {
        AddOperator(node, *children[0], *children[1], context);
      }
    } else if (kind == "UnaryOperator") {
      AddUnary(node, context);
    } else if (kind == "IntegerLiteral" || kind == "FloatingLiteral" ||
               kind == "CXXBoolLiteralExpr") {
      AddConstant(node, context);
    } else if (kind == "ArraySubscriptExpr") {
      if (children.size() == 2) AddIndex(*children[1], context);
    } else if (kind == "CXXOperatorCallExpr") {
      if (children.size() != 3) return;
      const std::string name = Spelled(*children[0]).name;
      if (name == "operator[]") {
        AddIndex(*children[2], context);
      } else if (name != "operator<<" && name != "operator>>") {
        AddOperator(node, *children[1], *children[2], context);
      }
    } else if (kind == "CallExpr" || kind == "CXXMemberCallExpr") {
      AddSwaps(node, 1, context);
    } else if (kind == "CXXTemporaryObjectExpr" ||
               kind == "CXXUnresolvedConstructExpr") {
      AddSwaps(node, 0, context);
    }
  }

  // The condition of a statement or of `?`; nullptr if it has none.
  static const SyntaxNode* ConditionOf(const SyntaxNode& node) {
    const size_t count = node.children.size();
    if (node.kind == "IfStmt" && count >= 2) {
      return node.children[count - 2 - (node.has_else ? 1 : 0)].get();
    }
    if (node.kind == "WhileStmt" && count >= 2) {
      return node.children[count - 2].get();
    }
    if (node.kind == "ForStmt" && count == 5) return node.children[2].get();
    if (node.kind == "DoStmt" && count == 2) return node.children[1].get();
    if (node.kind == "ConditionalOperator" && count == 3) {
      return node.children[0].get();
    }
    return nullptr;
  }

  // Whether control runs off the end of the function if this loop is left by
  // its condition, which is the literal true.
  bool IsNeverLeft(const SyntaxNode& node, const SyntaxNode& condition,
                   const Context& context) {
    const bool is_loop = node.kind == "WhileStmt" || node.kind == "ForStmt" ||
                         node.kind == "DoStmt";
    const SyntaxNode& literal = Spelled(condition);
    if (!context.is_last || !is_loop || literal.kind != "CXXBoolLiteralExpr" ||
        literal.begin.in_macro) {
      return false;
    }
    const std::optional<Span> span = SpanOf(literal);
    return span && TextOf(literal, *span) == "true";
  }

  void AddCondition(const SyntaxNode& node, Context context) {
    const SyntaxNode* condition = ConditionOf(node);
    if (node.kind == "IfStmt" && node.is_constexpr) context.is_constant = true;
    if (condition == nullptr || !IsExpression(*condition) ||
        condition->cast == "PointerToBoolean" ||
        condition->cast == "UserDefinedConversion") {
      return;  // (`!pointer` would have another type than `pointer`)
    }
    if (IsNeverLeft(node, *condition, context)) return;
    const std::optional<Span> span = SpanOf(*condition);
    if (!span) return;
    Add(*condition, *span, Syntax::kExpression,
        {{"condition", "!(" + TextOf(*condition, *span) + ")"}}, context);
  }

  // One past the last byte of a statement: its semicolon or bracket.
  std::optional<size_t> EndOf(const SyntaxNode& node, const std::string& text) {
    if (node.kind == "CompoundStmt" || node.kind == "CXXTryStmt" ||
        node.kind == "SwitchStmt") {
      const std::optional<Span> span = SpanOf(node);
      if (!span || text[span->end - 1] != '}') return std::nullopt;
      return span->end;
    }
    if (node.kind == "IfStmt" || node.kind == "ForStmt" ||
        node.kind == "WhileStmt" || node.kind == "CXXForRangeStmt") {
      if (node.children.empty()) return std::nullopt;
      return EndOf(*node.children.back(), text);
    }
    const std::optional<Span> span = SpanOf(node);
    if (!span) return std::nullopt;
    const std::string rest = WithoutComments(
        text.substr(span->end, std::min<size_t>(400, text.size() - span->end)));
    size_t i = 0;
    while (i < rest.size() && IsSpace(rest[i])) ++i;
    if (i == rest.size() || rest[i] != ';') return std::nullopt;
    return span->end + i + 1;
  }

  void AddStatement(const SyntaxNode& node, const Context& context) {
    if (node.kind == "DeclStmt") {
      if (Text(node.begin.file) != nullptr && !node.begin.in_macro) {
        finder_.declarations_.emplace(node.begin.file, node.begin.offset);
      }
      return;
    }
    if (!IsStatement(node) && !IsExpression(node)) return;
    std::optional<Span> span = SpanOf(node);
    if (!span) return;
    const std::optional<size_t> end = EndOf(node, *Text(node.begin.file));
    if (!end) return;
    span->end = *end;
    std::vector<Change> changes;
    const bool nothing = context.returns == Context::Returns::kNothing;
    if (nothing || (!context.is_last && node.kind != "ReturnStmt")) {
      changes.push_back({"dropped", ""});
    }
    if (nothing && node.kind != "ReturnStmt" && !Throws(node)) {
      changes.push_back({"return", "return;"});
    } else if (context.returns == Context::Returns::kValue && !Throws(node) &&
               TextOf(node, *span) != "return {};") {
      changes.push_back({"return", "return {};"});
    }
    Add(node, *span, Syntax::kStatement, changes, context);
  }

  PlaceFinder& finder_;
};

void PlaceFinder::Add(const SyntaxNode& tree) {
  PlaceWalk(*this).Visit(tree, {});
}

std::vector<Place> PlaceFinder::Places() const {
  std::vector<Place> places;
  for (const auto& [key, changes] : places_) {
    const auto& [file, begin, end, syntax] = key;
    places.push_back(
        {file, {begin, end}, syntax, {changes.begin(), changes.end()}});
  }
  return places;
}

LeftOut PlaceFinder::Missing() const {
  const auto count = [](const Offsets& offsets) {
    return static_cast<int64_t>(offsets.size());
  };
  return {count(in_macros_), count(constants_), count(declarations_),
          count(messages_)};
}

}  // namespace softmoe::mutation
