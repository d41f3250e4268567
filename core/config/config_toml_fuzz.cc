// SPDX-License-Identifier: Apache-2.0
//
// Any text as a configuration file, preceded by `--set` options (lines that
// begin with "--set "). An accepted configuration prints as TOML that reads
// back the same.

#include "core/config/config_toml.h"
#include "core/config/toml.h"
#include "core/fuzzing/fuzz_support.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  constexpr std::string_view kSet = "--set ";
  ConfigDraft draft;
  const bool accepted = Accepts([&] {
    std::vector<std::string> overrides;
    while (input.starts_with(kSet)) {
      const size_t end = std::min(input.find('\n'), input.size());
      overrides.emplace_back(input.substr(kSet.size(), end - kSet.size()));
      input.remove_prefix(std::min(end + 1, input.size()));
    }
    draft.Apply(ParseToml(std::string(input), "fuzz.toml"));
    for (const std::string& assignment : overrides) {
      draft.ApplyOverride(assignment);
    }
    draft.Resolve();
  });
  if (!accepted) return;
  const std::string text = ConfigToToml(draft.config);
  Config again;
  Require(Accepts([&] { again = ParseConfig(text, "printed.toml"); }),
          "cannot read back:\n" + text);
  Require(ConfigToToml(again) == text, "reads back otherwise:\n" + text);
}

std::vector<std::string> Seeds() {
  const std::string defaults = ConfigToToml(Config());
  return {
      defaults,
      "[runtime]\nthreads = 2\nisa = \"v3\"\nlog_every = 1\n",
      "--set router.tau=1.8\n--set data.corpus=path:a b\n" + defaults,
      "--set router.kind=\"soft_learned\"\n[router]\ntau = 'calibrated'\n"
      "noise = \"\"\"input_jitter\"\"\"\nnoise_amplitude = 5e-2\n",
      "model = {num_layers = 0x2, d_model = 1_6, num_heads = +4}\n"
      "data.corpus = \"\\u00e9\\U0001F600\\n\"\ntraining.beta1 = .9\n",
      "[model]\nd_model = [[1, 2], {a.b.c = 1979-05-27T07:32:00Z}]\n# end",
      "[a.b.c.d]\ne.f.g = nan\n[[a.b.h]]\ni = -inf\n",
  };
}

}  // namespace softmoe::fuzz
