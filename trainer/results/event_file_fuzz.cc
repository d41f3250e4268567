// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as metrics.jsonl, from which an event file is made: in one go, and
// from the first half of the log, then from all of it.
#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "trainer/results/event_file.h"

namespace softmoe::fuzz {
namespace {

constexpr char kConfigHash[] = "0123456789abcdef";

}  // namespace

void FuzzOne(std::string_view input) {
  const auto log = ScratchFolder() / "metrics.jsonl";
  const auto events = ScratchFolder() / trainer::kEventFileName;
  WriteScratch(log, input);
  std::string bytes;
  const auto update = [&] {
    return trainer::UpdateEventFile(log, kConfigHash, events);
  };
  if (!Accepts([&] { bytes = trainer::EventFileBytes(log); })) {
    Require(!Accepts([&] { update(); }), "the log of a run is no log");
    return;
  }
  std::filesystem::remove(events);
  if (!Accepts([&] { update(); })) return;  // of another run, or with gaps
  WriteScratch(log, input.substr(0, input.size() / 2));
  std::filesystem::remove(events);
  Require(Accepts([&] { update(); }), "the first half of a log is refused");
  WriteScratch(log, input);
  Require(update() != trainer::EventFileChange::kNew,
          "a longer log does not make a longer file");
  Require(ReadWholeFile(events) == bytes, "two updates give other bytes");
}

std::vector<std::string> Seeds() {
  const std::string numbers =
      R"("loss":1,"load_balance_loss":0,"z_loss":0,"active_experts":1,)"
      R"("zero_active_fraction":0,"temperature":5,"gradient_norm":"inf",)"
      R"("learning_rate":1e-300,"seconds":0.5,"tokens_per_second":1e300,)";
  const auto step = [&](const std::string& number) {
    return R"({"kind":"step","step":)" + number + "," + numbers +
           R"("layer_active_experts":[1,"nan"],"allocation":[1,2],)"
           R"("layer_relative_load_variance":[]})";
  };
  const std::string run = R"({"kind":"run","version":2,"config_hash":")" +
                          std::string(kConfigHash) + "\"}\n";
  const std::string validation =
      R"({"kind":"validation","step":2,"temperature":3,"schedule_loss":"-inf",)"
      R"("schedule_active_experts":1,"loss":2,"active_experts":1,)"
      R"("zero_active_fraction":0,"relative_load_variance":1})";
  return {
      run + step("1") + "\n" + step("2") + "\n" + validation + "\n",
      run + step("300") + "\n" + validation + "\n",
      step("300") + "\n" + step("300"),
      "",
      "{\"kind\":\"run\",\"version\":3}\n",
  };
}

}  // namespace softmoe::fuzz
