// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as metrics.jsonl, from which an event file is made: in one go, and
// of the first half of the log, then of all of it.
#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "trainer/results/event_file.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  const auto log = ScratchFolder() / "metrics.jsonl";
  const auto events = ScratchFolder() / trainer::kEventFileName;
  WriteScratch(log, input);
  std::string bytes;
  if (!Accepts([&] { bytes = trainer::EventFileBytes(log); })) return;
  WriteScratch(log, input.substr(0, input.size() / 2));
  std::filesystem::remove(events);
  Require(Accepts([&] { trainer::UpdateEventFile(log, events); }),
          "the first half of a log is refused");
  WriteScratch(log, input);
  Require(
      trainer::UpdateEventFile(log, events) != trainer::EventFileChange::kNew,
      "a longer log does not make a longer file");
  Require(ReadWholeFile(events) == bytes, "two updates give other bytes");
}

std::vector<std::string> Seeds() {
  const std::string numbers =
      R"("loss":1,"load_balance_loss":0,"z_loss":0,"active_experts":1,)"
      R"("zero_active_fraction":0,"temperature":5,"gradient_norm":"inf",)"
      R"("learning_rate":1e-300,"seconds":0.5,"tokens_per_second":1e300,)";
  const std::string step =
      R"({"kind":"step","step":300,)" + numbers +
      R"("layer_active_experts":[1,"nan"],"allocation":[1,2],)"
      R"("layer_relative_load_variance":[]})";
  const std::string validation =
      R"({"kind":"validation","step":2,"temperature":3,"schedule_loss":"-inf",)"
      R"("schedule_active_experts":1,"loss":2,"active_experts":1,)"
      R"("zero_active_fraction":0,"relative_load_variance":1})";
  return {
      R"({"kind":"run","version":2})"
      "\n" +
          step + "\n" + validation + "\n",
      step + "\n" + step,
      "",
      "{\"kind\":\"run\",\"version\":3}\n",
  };
}

}  // namespace softmoe::fuzz
