// SPDX-License-Identifier: Apache-2.0
//
// What is in one table is in the others, too: an author of an operation, an
// adapter or a kernel who forgets its line is told both places. (A line that
// names nothing does not link.)
#include "property_tests/verify/operations/operation_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"

namespace softmoe::verify {
namespace {

constexpr char kOperationTable[] =
    "property_tests/verify/operations/operation_table.h";
constexpr char kKernelTable[] =
    "property_tests/verify/implementations/row_kernels.h";

// Names, each with the file that has it.
using NameMap = std::map<std::string, std::string>;

// What the group in parentheses of `line` matches in lines of files below the
// folder whose names match `file_name`.
NameMap NamesIn(const std::string& folder, const char* file_name,
                const char* line) {
  const std::filesystem::path root = RunfilePath("README.md").parent_path();
  const std::regex files(file_name);
  const std::regex pattern(line,
                           std::regex::ECMAScript | std::regex::multiline);
  NameMap names;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root / folder)) {
    if (!std::regex_match(entry.path().filename().string(), files)) continue;
    const std::string text = ReadWholeFile(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end;
         it != end; ++it) {
      names[(*it)[1]] = entry.path().lexically_relative(root).string();
    }
  }
  EXPECT_GT(names.size(), 3u) << folder;
  return names;
}

void ExpectEachIn(const NameMap& names, const std::set<std::string>& table,
                  const std::string& place) {
  for (const auto& [name, file] : names) {
    EXPECT_TRUE(table.contains(name))
        << name << " is in " << file << ", but not in " << place;
  }
}

// The names of the functions of each operation. (Some of the names do not
// exist: RunAddNone.)
std::set<std::string> Functions() {
  std::set<std::string> functions;
#define SOFTMOE_FUNCTIONS(name, Name, activations, cpu, body, sums) \
  functions.insert("Run" #Name);                                    \
  functions.insert("Run" #Name #cpu);                               \
  functions.insert("Run" #Name #body);                              \
  functions.insert(#Name "Operation");
  SOFTMOE_OPERATIONS(SOFTMOE_FUNCTIONS)
  return functions;
}

TEST(OperationTable, HasEveryOperation) {
  ExpectEachIn(
      NamesIn("property_tests/verify/operations", R"(\w+_operation\.cc)",
              R"(^const Operation& (\w+)\(\))"),
      Functions(), kOperationTable);
}

TEST(OperationTable, HasEveryAdapter) {
  ExpectEachIn(NamesIn("property_tests/verify/operations",
                       R"(\w+_adapters\.cc)", R"(^TensorMap (Run\w+)\()"),
               Functions(), kOperationTable);
}

TEST(OperationTable, HasTheNamesOfTheOperations) {
#define SOFTMOE_EXPECT_NAME(op, Name, ...) \
  EXPECT_EQ(Name##Operation().name(), #op) \
      << "expected: the name in " << kOperationTable;
  SOFTMOE_OPERATIONS(SOFTMOE_EXPECT_NAME)
}

// What an operation's constructor must set, although the compiler does not
// require it.
TEST(OperationTable, HasOperationsThatDescribeThemselves) {
  for (const Operation* op : Operations()) {
    EXPECT_FALSE(op->text().empty()) << op->name();
    EXPECT_FALSE(op->parameters().empty()) << op->name();
    EXPECT_FALSE(op->edges().empty()) << op->name();
    EXPECT_FALSE(op->fills().empty()) << op->name();
    EXPECT_FALSE(op->outputs().empty()) << op->name();
    EXPECT_FALSE(op->derivations().empty()) << op->name();
  }
}

// People who write their own programs must know these outputs.
TEST(OperationTable, HasItsOutputsInDoubleInTheFormat) {
  const std::string page =
      ReadWholeFile(RunfilePath("property_tests/verify/foreign/FORMAT.md"));
  for (const Operation* op : Operations()) {
    const std::string name = "\n| `" + op->name() + "` | ";
    const size_t at = page.find(name);
    const std::string row =
        at == std::string::npos
            ? ""
            : page.substr(at + name.size(),
                          page.find('\n', at + 1) - at - name.size());
    for (const OutputSpec& output : op->outputs()) {
      if (!output.in_double) continue;
      EXPECT_TRUE(Says(row, "`" + output.name + "`")) << op->name();
    }
  }
}

// These sources hold the hashes of what a device was checked with.
TEST(OperationTable, HasTheOperationsThatHaveCudaSources) {
  constexpr char kSources[] = "kernels/cuda/operation_sources.txt";
  const NameMap sources =
      NamesIn("kernels/cuda", R"(operation_sources\.txt)", R"(^(\w+) )");
  std::set<std::string> on_a_device;
  for (const auto& [name, adapter] : AdapterTable().rows) {
    on_a_device.insert(name);
  }
  for (const auto& [name, adapter] : AdapterTable().bf16) {
    on_a_device.insert(name);
  }
  ExpectEachIn(sources, on_a_device, kOperationTable);
  for (const std::string& name : on_a_device) {
    EXPECT_TRUE(sources.contains(name))
        << name << " is in " << kOperationTable << ", but not in " << kSources;
  }
  // The code that calls cuBLASLt is queue.cu.
  const NameMap of_a_library = NamesIn(
      "kernels/cuda", R"(operation_sources\.txt)", R"(^(\w+) .*\bqueue\.cu\b)");
  for (const std::string& name : on_a_device) {
    EXPECT_EQ(HasSumsOfALibrary(name), of_a_library.contains(name))
        << name << ": " << kOperationTable << " and " << kSources;
  }
}

// Kernels that others of the table are made of, or that compute nothing of the
// model.
const std::set<std::string> kOfNoOperation = {
    "FmaPeak",  // measures the processor
    "Probe",    // belongs to a test
    // Parts of the experts on a device:
    "Permute", "SwigluBackward", "SwigluForward", "Unpermute",
    "FlashAttentionBackward", "FlashAttentionForward",  // parts of attention
    "SumOfBlocks",        // the second half of SumOfSquares
    "TokenCrossEntropy",  // part of HeadCrossEntropy on a device
};

TEST(KernelTable, HasEveryKernel) {
  std::set<std::string> kernels = kOfNoOperation;
#define SOFTMOE_INSERT(_, name, Name, ...) kernels.insert(#Name);
  SOFTMOE_KERNELS(SOFTMOE_INSERT, )
  ExpectEachIn(
      NamesIn("kernels", R"(\w+\.h)",
              R"(^(?:SOFTMOE_DECLARE_KERNEL\(|)"
              R"(SOFTMOE_DECLARE_CUDA_(?:KERNEL|OPERATION)(?:_OF)?\(|void )"
              R"((?=\w+\(const \w+Args& args, ThreadPool& pool\)))(\w+))"),
      kernels, kKernelTable);
}

// From `begin` to its closing brace at the start of a line; "" if absent.
std::string Block(const std::string& text, const std::string& begin) {
  const size_t at = text.find(begin);
  if (at == text.npos) return "";
  return text.substr(at, text.find("\n}", at) - at);
}

// Without its line an array would not be copied to a device.
TEST(KernelTable, ForEachArrayHasEveryArray) {
  const std::filesystem::path root = RunfilePath("README.md").parent_path();
  const std::regex structs(R"(\nstruct (\w+) \{)");
  const std::regex pointers(R"(\w\*\s+(\w+)(?: = nullptr)?;)");
  int arrays = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root / "kernels")) {
    if (entry.path().extension() != ".h") continue;
    const std::string text = ReadWholeFile(entry.path());
    if (text.find("\nvoid ForEachArray(") == std::string::npos) continue;
    // The lines that several structs of a file share.
    const std::string common = Block(text, "Array(Args& a");
    for (std::sregex_iterator it(text.begin(), text.end(), structs), end;
         it != end; ++it) {
      const std::string name = (*it)[1];
      if (name == "SumOfBlocksArgs") continue;  // its arrays are on the device
      const std::string body = Block(text, (*it)[0]);
      std::string own = Block(text, "\nvoid ForEachArray(" + name + "&");
      own += Block(text, "\nvoid ForEachArray(" + name + "<");
      if (own.find("Array(a, f)") != own.npos) own += common;
      for (std::sregex_iterator at(body.begin(), body.end(), pointers);
           at != end; ++at) {
        const std::string array = (*at)[1];
        if (array == "host_offsets") continue;  // stays on the host
        ++arrays;
        EXPECT_TRUE(Says(own, "f(\"" + array + "\", "))
            << entry.path().lexically_relative(root).string() << ": " << name
            << " has a pointer " << array << ", its ForEachArray does not";
      }
    }
  }
  EXPECT_GT(arrays, 100);
}

}  // namespace
}  // namespace softmoe::verify
