// SPDX-License-Identifier: Apache-2.0
//
// The faults that can be drawn in sources that clang really parses.
#include "property_tests/mutation/sampled/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "property_tests/mutation/compile.h"
#include "property_tests/mutation/sampled/find_places.h"
#include "property_tests/mutation/testing.h"

namespace softmoe::mutation {
namespace {

// "TEXT -> INSTEAD (KIND)" for every change, and what is left out.
struct Found {
  std::vector<std::string> changes;
  LeftOut left_out;
};

Found FindIn(const std::map<std::string, std::string>& sources) {
  const TestProject test(sources);
  SourceTree tree(test.project(), test.folder() / "tree");
  const Compiler compiler(test.project(), tree, "");
  const FoundPlaces found = FindPlaces(
      test.project(), tree, compiler, Part(), 2, [] { return false; },
      [](size_t, size_t) {});
  EXPECT_TRUE(found.unseen.empty());
  Found result;
  result.left_out = found.left_out;
  for (const Place& place : found.places) {
    const std::string text =
        tree.Text(place.file)
            ->substr(place.span.begin, place.span.end - place.span.begin);
    EXPECT_FALSE(place.changes.empty()) << text;
    for (const Change& change : place.changes) {
      result.changes.push_back(text + " -> " + change.instead + " (" +
                               change.kind + ")");
    }
  }
  return result;
}

// Searches one function body in namespace softmoe.
Found FindInBody(const std::string& signature, const std::string& body,
                 const std::string& before = "") {
  return FindIn({{"golden/a.cc", before + "\nnamespace softmoe {\n" +
                                     signature + " {\n" + body + "\n}\n}\n"}});
}

void ExpectHas(const Found& found, const std::string& change) {
  EXPECT_EQ(std::ranges::count(found.changes, change), 1)
      << change << "\nis not among\n"
      << ::testing::PrintToString(found.changes);
}

void ExpectNone(const Found& found, const std::string& part) {
  for (const std::string& change : found.changes) {
    EXPECT_FALSE(Says(change, part));
  }
}

TEST(Places, HaveEveryKindOfChange) {
  const Found found = FindInBody("int F(int a, const int* p)",
                                 "  int b = a + 1;\n"
                                 "  b += p[a];\n"
                                 "  if (a < b) b = G(a, b);\n"
                                 "  return -b;",
                                 "int G(int, int);");
  EXPECT_EQ(found.changes,
            (std::vector<std::string>{
                "a + 1 -> a - 1 (operator)", "1 -> 1 + 1 (constant)",
                "1 -> 1 - 1 (constant)", "b += p[a] -> b -= p[a] (operator)",
                "b += p[a]; ->  (dropped)", "b += p[a]; -> return {}; (return)",
                "a -> (a) + 1 (index)", "a -> (a) - 1 (index)",
                "if (a < b) b = G(a, b); ->  (dropped)",
                "if (a < b) b = G(a, b); -> return {}; (return)",
                "a < b -> a <= b (comparison)", "a < b -> a > b (comparison)",
                "a < b -> !(a < b) (condition)", "b = G(a, b); ->  (dropped)",
                "b = G(a, b); -> return {}; (return)",
                "G(a, b) -> G(b, a) (arguments)",
                // Without the last statement control would run off the end.
                "return -b; -> return {}; (return)", "-b -> b (operator)"}));
  EXPECT_EQ(found.left_out.declarations, 1);
}

// Both sides of a switch are bool, whatever is negated: beside a plain `a`,
// `!a` would be converted to an optional that always has a value.
TEST(Places, ANegationThatIsLeftOutGivesABool) {
  const Found found = FindInBody("bool F(std::optional<double> a)",
                                 "return !a;", "#include <optional>");
  ExpectHas(found, "!a -> !!a (operator)");
}

TEST(Places, KnowWhatAFunctionReturns) {
  const Found nothing =
      FindInBody("void F(int& a)", "++a;\nif (a > 0) return;");
  ExpectHas(nothing, "++a; -> return; (return)");
  ExpectHas(nothing, "++a -> --a (operator)");
  ExpectHas(nothing, "return; ->  (dropped)");
  const Found reference = FindInBody("int& F(int& a)", "a++;\nreturn a;");
  ExpectHas(reference, "a++; ->  (dropped)");
  ExpectNone(reference, "(return)");
  const Found lambda = FindInBody(
      "int F(int a)",
      "auto f = [&] { a = 2; };\nauto g = [&]() -> int { return a; };\n"
      "auto h = [&] { a = 3; return a; };\nf();\nreturn g() + h();");
  ExpectHas(lambda, "a = 2; -> return; (return)");
  ExpectHas(lambda, "return a; -> return {}; (return)");
  ExpectHas(lambda, "a = 3; ->  (dropped)");
  ExpectNone(lambda, "a = 3; -> return");
}

// A compiler assumes that control does not run off the end of a function that
// returns something, and may optimise such a fault away.
TEST(Places, NeverRunOffTheEnd) {
  for (const char* loop : {"while (true) {\n++a;\nif (a > 5) return a;\n}",
                           "for (; (true);) {\n++a;\nif (a > 5) return a;\n}",
                           "if (a > 8) {\nreturn 2;\n} else {\ndo {\n++a;\n"
                           "if (a > 5) return a;\n} while (true);\n}"}) {
    const Found value = FindInBody("int F(int a)", loop);
    ExpectHas(value, "++a; ->  (dropped)");
    ExpectNone(value, "true -> ");
    ExpectNone(value, "!(true)");
    ExpectNone(value, "(false)");
  }
  const Found endless = FindInBody("void F(int& a)", "while (true) --a;");
  ExpectHas(endless, "true -> false (constant)");
  ExpectHas(endless, "true -> !(true) (condition)");
  // If something follows the loop, control goes on there.
  const Found inner = FindInBody(
      "int F(int a)", "while (true) {\nif (++a > 5) break;\n}\nreturn a;");
  ExpectHas(inner, "true -> false (constant)");
  ExpectHas(inner, "true -> !(true) (condition)");

  const Found thrown = FindInBody("int F(int a)",
                                  "try {\nG(a);\nreturn G(a);\n} catch (int) "
                                  "{\nG(2);\nthrow;\n}",
                                  "int G(int);");
  ExpectHas(thrown, "G(a); ->  (dropped)");
  ExpectHas(thrown, "G(2); ->  (dropped)");
  ExpectNone(thrown, "throw; ->  (dropped)");
  const Found nothing =
      FindInBody("void F(int a)", "try {\nG(a);\n} catch (int) {\nthrow;\n}",
                 "int G(int);");
  ExpectHas(nothing, "throw; ->  (dropped)");

  const Found lambdas = FindInBody(
      "void F(int a)",
      "auto f = [&]() -> int {\n++a;\nif (a > 5) { return 2; } else { throw 3; "
      "}\n};\n"
      "auto g = [&] {\nif (a > 6) { return a; } else { throw 4; }\n};\n"
      "auto h = [&](auto b) { a = b; };\nf();\ng();\nh(a);");
  ExpectHas(lambdas, "++a; ->  (dropped)");
  ExpectNone(lambdas, "throw 3; ->  (dropped)");
  ExpectNone(lambdas, "throw 4; ->  (dropped)");
  ExpectHas(lambdas, "a = b; ->  (dropped)");
}

TEST(Places, LeaveOutWhatCannotBeSwitched) {
  const Found found = FindInBody("int F(int a)",
                                 "constexpr int kTwo = 1 + 1;\n"
                                 "static_assert(sizeof(int) == 4);\n"
                                 "int array[3 + 1] = {};\n"
                                 "switch (a) {\n case 5 + 1: ++a; break;\n}\n"
                                 "if (a > SIX) a = TWICE(a + 8);\n"
                                 "if (a == 9) throw Oops{a + 10, a};\n"
                                 "return array[kTwo];",
                                 "#define SIX 6\n#define TWICE(x) (2 * (x))\n"
                                 "struct Oops { int a = 3, b; };\n"
                                 "constexpr int Seven() { return 3 + 4; }\n");
  for (const char* original :
       {"1 + 1", "4", "5 + 1", "SIX", "a + 8", "a + 10", "3 + 4", "3"}) {
    for (const std::string& change : found.changes) {
      EXPECT_FALSE(change.starts_with(std::string(original) + " -> "))
          << change;
    }
  }
  ExpectHas(found, "a == 9 -> a != 9 (comparison)");
  ExpectHas(found, "throw Oops{a + 10, a}; ->  (dropped)");
  EXPECT_GE(found.left_out.in_macros, 2);
  EXPECT_GE(found.left_out.constants, 4);
  EXPECT_EQ(found.left_out.messages, 2);  // `a + 10` and `10`
}

TEST(Places, AreOfWhatIsSpelledOnce) {
  const std::string header =
      "namespace softmoe {\n"
      "template <typename T> T Sum(T a, T b) { return a + b; }\n"
      "template <typename T> struct Box {\n  T t;\n"
      "  T Next() { return t + 1; }\n};\n}\n";
  const std::string use =
      "#include \"golden/a.h\"\nnamespace softmoe {\n"
      "int NAME() { return Sum(Box<int>{}.Next(), int(Sum(0.5, 1.5))); }\n}\n";
  const auto named = [&](const std::string& name) {
    std::string text = use;
    return text.replace(text.find("NAME"), 4, name);
  };
  const Found found = FindIn({{"golden/a.h", header},
                              {"golden/b.cc", named("B")},
                              {"kernels/c.cc", named("C")},
                              // Test sources have no places.
                              {"golden/d_test.cc", named("D")}});
  ExpectHas(found, "a + b -> a - b (operator)");
  ExpectHas(found, "t + 1 -> t - 1 (operator)");
  EXPECT_EQ(std::ranges::count_if(found.changes,
                                  [](const std::string& change) {
                                    return change.starts_with("0.5 -> 2");
                                  }),
            2);
}

TEST(Places, AreFoundInAMain) {
  const Found found = FindIn({{"trainer/a_main.cc",
                               "namespace {\nint Two() { return 1 * 2; }\n}\n"
                               "int main(int argc, char**) {\n"
                               "  return Two() - argc;\n}\n"}});
  ExpectHas(found, "1 * 2 -> 1 / 2 (operator)");
  ExpectHas(found, "Two() - argc -> Two() + argc (operator)");
}

// The replacement is one line without comments.
TEST(Places, DropCommentsOfWhatIsReplaced) {
  const Found found =
      FindInBody("int F(int a, int b)", "return a +  // why\n b;");
  ExpectHas(found, "a +  // why\n b -> a - b (operator)");
  // A quotation mark that is a character opens no string.
  const Found mark = FindInBody("int F(char c)", "return G('\"',  // why\n c);",
                                "int G(char, char);");
  ExpectHas(mark, "G('\"',  // why\n c) -> G(c,        \n '\"') (arguments)");
}

TEST(SyntaxTree, RefusesWhatIsCutOff) {
  EXPECT_TRUE(ReadSyntaxTrees("").empty());
  const auto message = [](const std::string& dump) -> std::string {
    return MessageOf<DataError>([&] { ReadSyntaxTrees(dump); });
  };
  EXPECT_TRUE(Says(message("Dumping a:\n{\n  \"id\": \"0x1\",\n"), "cut off"));
  EXPECT_TRUE(Says(message("error: no such file\n"), "no tree"));
  EXPECT_TRUE(Says(message("{\n  \"id\": ,\n}\n"), "syntax tree: "));
}

// Clang names a file only where it changes.
TEST(SyntaxTree, KeepsTrackOfTheFile) {
  const auto trees = ReadSyntaxTrees(
      "Dumping f:\n"
      "{\n"
      "  \"kind\": \"FunctionDecl\",\n"
      "  \"loc\": {\"offset\": 4, \"file\": \"./a/b.h\", \"tokLen\": 1,\n"
      "    \"includedFrom\": {\"file\": \"a/c.cc\"}},\n"
      "  \"range\": {\"begin\": {\"offset\": 0, \"tokLen\": 3},\n"
      "    \"end\": {\"spellingLoc\": {\"offset\": 7, \"file\": \"m.h\",\n"
      "      \"tokLen\": 2}, \"expansionLoc\": {\"offset\": 9,\n"
      "      \"file\": \"a/b.h\", \"tokLen\": 5}}},\n"
      "  \"type\": {\"qualType\": \"int ()\"},\n"
      "  \"inner\": [{}, {\"kind\": \"X\", \"range\": {\"begin\":\n"
      "    {\"offset\": 11, \"tokLen\": 1}}, \"referencedDecl\":\n"
      "    {\"name\": \"g\", \"type\": {\"qualType\": \"T\"}}}]\n"
      "}\n");
  ASSERT_EQ(trees.size(), 1u);
  const SyntaxNode& root = *trees[0];
  EXPECT_EQ(root.begin.file, "a/b.h");
  EXPECT_EQ(root.begin.offset, 0);
  EXPECT_EQ(root.begin.length, 3);
  EXPECT_FALSE(root.begin.in_macro);
  EXPECT_TRUE(root.end.in_macro);
  EXPECT_EQ(root.end.offset, 9);
  EXPECT_EQ(root.type, "int ()");
  ASSERT_EQ(root.children.size(), 2u);
  EXPECT_EQ(root.children[1]->begin.file, "a/b.h");
  EXPECT_EQ(root.children[1]->name, "g");
  EXPECT_EQ(root.children[1]->type, "");
}

}  // namespace
}  // namespace softmoe::mutation
