// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a syntax tree that clang does not finish.
#include "property_tests/mutation/sampled/find_places.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/message_test_util.h"
#include "property_tests/mutation/compile.h"
#include "property_tests/mutation/testing.h"

namespace softmoe::mutation {
namespace {

// Places that are missing would change what a seed draws.
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
