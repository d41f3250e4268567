// SPDX-License-Identifier: Apache-2.0
//
// //:verify on invalid cases: texts and replay bundles that are malformed, of
// another version or about unknown things. Each run exits with 2, says where
// and why, and writes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>

#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_file.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"
#include "property_tests/verify/engine/draw.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

const char kReports[] =
    " --json out/a.json --junit out/a.xml --log out/a.jsonl --bundles out/b";
const char kCase[] =
    "op=embedding impl=cpu:v3 dtype=f32 fill=generic rows=2 d_model=3 "
    "vocab_size=4 seed=0x7 case=0";

class Hostile : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "out");
  }

  // Requires that nothing was written and that the message names `part`.
  void ExpectRefused(const std::string& arguments, const std::string& part) {
    const ProgramResult result = RunTestProgram("property_tests/verify/verify",
                                                arguments + " 2>&1", folder_);
    EXPECT_TRUE(EndedWith(result, 2, part)) << arguments;
    EXPECT_TRUE(fs::is_empty(folder_ / "out")) << arguments;
  }

  // A bundle of the embedding, to be changed.
  struct Contents {
    Hdf5Kind kind = {"verify-vectors", 2};
    std::string text = kCase;
    TensorMap inputs = FindOperation("embedding").Inputs(ParseCase(kCase));
    std::string ids_dtype;  // in place of the dtype of the ids
    bool says_case = true;
  };
  void ExpectBundleRefused(const std::string& part,
                           const std::function<void(Contents&)>& change) {
    Contents contents;
    change(contents);
    {
      Hdf5Writer writer(folder_ / "bundle.h5", contents.kind);
      const std::string group = "/cases/000000";
      for (const char* tensors : {"/inputs", "/expected", "/bounds", "/got"}) {
        writer.CreateGroup(group + tensors);
      }
      for (const auto& [name, tensor] : contents.inputs) {
        const std::string path = group + "/inputs/" + name;
        if (tensor.dtype == Dtype::kI32) {
          writer.WriteDataset<int32_t>(path, ToInts(tensor), tensor.shape);
        } else {
          writer.WriteDataset<float>(path, ToFloats(tensor), tensor.shape);
        }
        const bool other = name == "ids" && !contents.ids_dtype.empty();
        writer.WriteAttribute(
            path, "dtype",
            other ? contents.ids_dtype : std::string(DtypeName(tensor.dtype)));
      }
      if (contents.says_case) {
        writer.WriteAttribute(group, "case", contents.text);
      }
      writer.WriteAttribute(group, "result", "REPRO");
      writer.Commit();
    }
    ExpectRefused("replay bundle.h5 --json out/a.json --junit out/a.xml", part);
  }

  fs::path folder_ = fs::path(::testing::TempDir()) / "hostile";
};

// (Case.RefusesWhatItDoesNotKnow tests other texts.)
TEST_F(Hostile, CaseTexts) {
  for (const auto& [words, part] : {
           std::pair<const char*, const char*>{"op=lapsun", "lapsum"},
           {"op=lapsum impl=cuda:9", "there are 'cuda' and 'cuda:bf16'"},
           {"op=lapsum impl=tpu", "unknown implementation"},
           {"op=lapsum impl=cpu:v5", "did you mean"},
           {"op=lapsum impl=faulty:sing:weights:cpu:v3", "unknown fault"},
           {"op=lapsum case=4294967296", "32 bits"},
           {"op=lapsum seed=0x", "hexadecimal"},
           {"op=lapsum rows", "KEY=VALUE"},
           {"op=lapsum simplify=nothing:zero", "no input 'nothing'"},
           {"op=lm_head fill=exact simplify=hidden:one", "fill=exact"},
           {"REPRO v1 verify run op=lapsum", "v1"},
           {"REPRO vX verify run op=lapsum", "vX"},
       }) {
    ExpectRefused("run '" + std::string(words) + "'" + kReports, part);
  }
  ExpectRefused(std::string("fuzz --seconds 1 op=lapsun") + kReports, "lapsum");
  ExpectRefused(std::string("fuzz --seconds 1 'op=lapsum rows=-1'") + kReports,
                "between 0 and 1089");
}

TEST_F(Hostile, BundlesOfAnotherKindOrVersion) {
  ExpectBundleRefused("version", [](Contents& c) { c.kind.version = 3; });
  ExpectBundleRefused("verify-vectors",
                      [](Contents& c) { c.kind.name = "checkpoint"; });
  ExpectBundleRefused("case", [](Contents& c) { c.says_case = false; });
  WriteFileAtomically(folder_ / "torn.h5", "not HDF5");
  ExpectRefused("replay torn.h5 --json out/a.json", "torn.h5");
}

TEST_F(Hostile, BundlesOfUnknownThings) {
  const auto replace = [](const char* from, const char* to) {
    return [=](Contents& c) {
      c.text.replace(c.text.find(from), std::string(from).size(), to);
    };
  };
  ExpectBundleRefused("unknown operation", replace("embedding", "embeding"));
  ExpectBundleRefused("unknown implementation", replace("cpu:v3", "gpu"));
  ExpectBundleRefused("unknown dtype", replace("dtype=f32", "dtype=f23"));
  ExpectBundleRefused("not a fill of operation", replace("generic", "ties"));
  ExpectBundleRefused("unknown key", replace("rows", "columns"));
  ExpectBundleRefused("KEY=VALUE", replace("rows=2", "rows 2"));
  ExpectBundleRefused("between 0 and 600",
                      replace("rows=2", "rows=4000000000"));
}

TEST_F(Hostile, BundlesWithImpossibleData) {
  const char* kIds = "input 'ids'";
  ExpectBundleRefused(kIds, [](Contents& c) { c.inputs.erase("ids"); });
  ExpectBundleRefused("input 'table'",
                      [](Contents& c) { c.inputs["table"].values[1] = NAN; });
  ExpectBundleRefused("which is not a finite bf16", [](Contents& c) {
    c.text.replace(c.text.find("f32"), 3, "bf16");
    c.inputs = FindOperation("embedding").Inputs(ParseCase(c.text));
    for (auto& [name, tensor] : c.inputs) {  // a float
      if (tensor.dtype == Dtype::kBf16) tensor.values[1] = 1 + 0x1p-20;
    }
  });
  ExpectBundleRefused("ids[1] is 4; it must be between 0 and 3",
                      [](Contents& c) { c.inputs["ids"].values[1] = 4; });
  ExpectBundleRefused("ids[0] is -1",
                      [](Contents& c) { c.inputs["ids"].values[0] = -1; });
  ExpectBundleRefused("unknown dtype",
                      [](Contents& c) { c.ids_dtype = "int"; });
  ExpectBundleRefused("/inputs/ids", [](Contents& c) { c.ids_dtype = "f32"; });
  ExpectBundleRefused(kIds,
                      [](Contents& c) { c.inputs["ids"].dtype = Dtype::kF32; });
  ExpectBundleRefused(
      kIds, [](Contents& c) { c.inputs["ids"] = Tensor(Dtype::kI32, {3}); });
  ExpectBundleRefused(kIds, [](Contents& c) {
    c.inputs["ids"] = Tensor(Dtype::kI32, {2, 1});
  });
}

}  // namespace
}  // namespace softmoe::verify
