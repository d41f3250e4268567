// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/find_places.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/message_test_util.h"
#include "property_tests/mutation/compile.h"
#include "property_tests/mutation/testing.h"

namespace softmoe::mutation {
namespace {

TEST(Part, HasWhatLiesUnderItsPaths) {
  const Part part({"kernels/cuda", "optimized/backend_model.cc"});
  EXPECT_FALSE(part.IsAll());
  EXPECT_TRUE(part.Has("kernels/cuda/queue.cu"));
  EXPECT_TRUE(part.Has("kernels/cuda/deeper/a.h"));
  EXPECT_TRUE(part.Has("optimized/backend_model.cc"));
  EXPECT_FALSE(part.Has("kernels/cuda_more/a.h"));
  EXPECT_FALSE(part.Has("kernels/adamw.cc"));
  EXPECT_FALSE(part.Has("optimized/backend_model.cc.orig"));
  EXPECT_FALSE(part.Has("trainer/kernels/cuda/a.cc"));
}

TEST(Part, OfNothingIsAll) {
  const Part asked{std::vector<std::string>()};
  EXPECT_TRUE(asked.IsAll());
  EXPECT_TRUE(asked.Has("golden/a.cc"));
  EXPECT_EQ(asked.Text(), "");
  EXPECT_EQ(Part().Text(), "");
}

// The text identifies a list, so it must not depend on how the part was given.
TEST(Part, HasOneText) {
  const std::string text = "kernels/cuda,kernels/simt,optimized";
  EXPECT_EQ(Part({text}).Text(), text);
  EXPECT_EQ(Part({"optimized", "kernels/simt", "kernels/cuda"}).Text(), text);
  EXPECT_EQ(Part({"optimized/,kernels/simt", "kernels/cuda//"}).Text(), text);
  EXPECT_EQ(Part({text, "optimized", "kernels/cuda/queue.cu"}).Text(), text);
  EXPECT_EQ(Part({Part({text}).Text()}).Text(), text);
}

TEST(Part, RefusesPathsThatAreNone) {
  for (const char* text : {"", ",", "optimized,", "/", "optimized,,kernels"}) {
    EXPECT_THROW(Part({text}), ConfigError) << text;
  }
  const Part part({"kernels/cuda,kernels/cudda"});
  try {
    part.RequireIn({"kernels/cuda/queue.cu", "optimized/backend_model.cc"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("--in kernels/cudda: this contains no source"),
              std::string::npos)
        << error.what();
  }
  Part({"kernels"}).RequireIn({"kernels/cuda/queue.cu"});
  Part().RequireIn({});
}

// Otherwise their places would be missing silently.
TEST(FindPlaces, NamesTheSourcesThatClangHasNotSeen) {
  const std::map<std::string, std::string> sources = {
      {"golden/a.cc",
       "#include \"golden/a.h\"\n"
       "namespace softmoe {\nint A() { return 1 + 2; }\n}\n"},
      // Nothing can be drawn in this file, but clang sees it.
      {"golden/a.h", "namespace softmoe {\nint A();\n}\n"},
      {"golden/only_for_tests.h",
       "namespace softmoe {\ninline int B() { return 3; }\n}\n"},
      {"golden/a_test.cc", "#include \"golden/only_for_tests.h\"\n"},
      {"golden/elsewhere.cc", "int elsewhere = 4;\n"},
      {"kernels/cuda/only_nvcc.cu", "int Nvcc() { return 5; }\n"},
      {"kernels/cuda/README.md", "No source.\n"}};
  const TestProject test(sources);
  SourceTree tree(test.project(), test.folder() / "tree");
  const Compiler compiler(test.project(), tree, "");
  const auto unseen = [&](const Part& part) {
    const FoundPlaces found = FindPlaces(
        test.project(), tree, compiler, part, 2, [] { return false; },
        [](size_t, size_t) {});
    EXPECT_EQ(ReadPlaces(PlacesText(found)).unseen, found.unseen);
    return found.unseen;
  };
  EXPECT_EQ(unseen(Part()),
            (std::vector<std::string>{"golden/elsewhere.cc",
                                      "golden/only_for_tests.h",
                                      "kernels/cuda/only_nvcc.cu"}));
  EXPECT_EQ(unseen(Part({"kernels"})),
            std::vector<std::string>{"kernels/cuda/only_nvcc.cu"});
}

// A syntax tree that clang does not finish is refused: missing places would
// change what a seed draws.
TEST(FindPlaces, RefusesATreeThatIsNotWhole) {
  const std::map<std::string, std::string> sources = {
      {"golden/b.cc", "int Twice(int x) { return 2 * x; }\n"}};
  TestProject test(sources);
  Project project = test.project();
  const auto message = [&](const std::string& script) -> std::string {
    const auto clang = test.folder() / "clang";
    WriteFileAtomically(clang, "#!/bin/sh\n" + script);
    std::filesystem::permissions(clang, std::filesystem::perms::owner_all);
    project.clang = clang.string();
    SourceTree tree(project, test.folder() / "tree");
    try {
      FindPlaces(
          project, tree, Compiler(project, tree, ""), Part({"golden/b.cc"}), 1,
          [] { return false; }, [](size_t, size_t) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "(no error)";
  };
  const std::string crashed = message("echo '{'; echo ouch >&2; kill -9 $$\n");
  EXPECT_TRUE(Says(crashed, "golden/b.cc: clang ended with 137", "ouch"));
  EXPECT_EQ(message("[ -e once ] || { touch once; kill -9 $$; }; exit 1\n"),
            "(no error)");
  const std::string cut = message("echo '{'\n");
  EXPECT_TRUE(cut.starts_with("golden/b.cc: ")) << cut;
  // Clang may refuse what g++ accepts.
  EXPECT_EQ(message("exit 1\n"), "(no error)");
}

}  // namespace
}  // namespace softmoe::mutation
