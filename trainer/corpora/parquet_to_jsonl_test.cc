// SPDX-License-Identifier: Apache-2.0
//
// Runs parquet_to_jsonl.py with a pyarrow of our own, whose Parquet files are
// words and whose packed files are plain.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kPyarrow[] =
    "def CompressedOutputStream(path, form):\n"
    "    return open(path, 'wb')\n";
constexpr char kPyarrowParquet[] =
    "from types import SimpleNamespace as Made\n"
    "class ParquetFile:\n"
    "    def __init__(self, path):\n"
    "        self.words = open(path).read().split()\n"
    "    def iter_batches(self, columns):\n"
    "        column = Made(to_pylist=lambda: self.words)\n"
    "        yield Made(column=lambda index: column)\n";

class ParquetToJsonl : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("pyarrow/__init__.py", kPyarrow);
    Write("pyarrow/parquet.py", kPyarrowParquet);
    Write("in/b.parquet", "two three");
    Write("in/a/x.parquet", "one");
    Write("in/README", "no Parquet");
  }
  void Write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    WritePlain(folder_ / name, content);
  }
  ProgramResult Run(const std::string& folder = "in") const {
    return RunProgram({"env", "PYTHONPATH=" + folder_.string(), "python3",
                       RunfilePath("trainer/corpora/parquet_to_jsonl.py"),
                       folder_ / folder, Out()},
                      ".");
  }
  fs::path Out() const { return folder_ / "out.jsonl.zst"; }

  const fs::path folder_ = FreshFolder("parquet");
};

TEST_F(ParquetToJsonl, ReadsFoldersInsideAndThoseThatLinksName) {
  Write("elsewhere/y.parquet", "four");
  fs::create_directory_symlink("../elsewhere", folder_ / "in" / "c");
  fs::create_directory_symlink("..", folder_ / "in" / "a" / "up");
  EXPECT_TRUE(EndedWith(Run(), 0, "4 documents"));
  EXPECT_EQ(ReadWholeFile(Out()),
            "{\"text\": \"one\"}\n{\"text\": \"two\"}\n{\"text\": \"three\"}\n"
            "{\"text\": \"four\"}\n");
}

TEST_F(ParquetToJsonl, RefusesTwoFilesOfOneContent) {
  Write("in/z.parquet", "six");  // as long as "one"
  EXPECT_TRUE(EndedWith(Run(), 0, "4 documents"));
  fs::remove(Out());
  Write("in/z.parquet", "one");
  EXPECT_TRUE(EndedWith(Run(), 1, "in/a/x.parquet and ", "in/z.parquet hold",
                        "would be read twice"));
  EXPECT_FALSE(fs::exists(Out()));
}

TEST_F(ParquetToJsonl, RefusesWhatItWouldLeaveOut) {
  Write("in/a/z.PARQUET", "four");
  EXPECT_TRUE(EndedWith(Run(), 1, "in/a/z.PARQUET: ", "would be ignored"));
  EXPECT_TRUE(EndedWith(Run("none"), 1, "cannot read", "none"));
  EXPECT_TRUE(EndedWith(Run("pyarrow"), 1, "no *.parquet files"));
}

}  // namespace
}  // namespace softmoe::trainer
