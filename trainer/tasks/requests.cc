// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/requests.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/errors.h"
#include "core/files/json_lines.h"
#include "trainer/corpora/python_text.h"

namespace softmoe::trainer {

RequestTokens TokenizeRequest(std::string_view context,
                              std::string_view continuation,
                              const EncodeText& encode, int32_t end_of_document,
                              int64_t window) {
  SOFTMOE_CHECK(window >= 1 && !continuation.empty()) << "window=" << window;
  const std::string whole = std::string(context) + std::string(continuation);
  context = StripEnd(context);

  RequestTokens request;
  const std::vector<int32_t> encoded = encode(whole);
  int64_t cut = 0;  // where the continuation's tokens begin in `encoded`
  if (!context.empty()) {
    request.ids = encode(context);
    cut = static_cast<int64_t>(request.ids.size());
  } else {
    request.ids = {end_of_document};
    cut = !encoded.empty() && encoded[0] == end_of_document ? 1 : 0;
  }
  request.scored = static_cast<int64_t>(encoded.size()) - cut;
  if (request.scored < 1) {
    throw DataError(fmt::format(
        "the continuation \"{}\" has no token of its own after \"{}\"; use a "
        "tokenizer whose tokens end where a word ends",
        continuation, context));
  }
  request.ids.insert(request.ids.end(), encoded.begin() + cut, encoded.end());

  const int64_t excess =
      static_cast<int64_t>(request.ids.size()) - (window + 1);
  if (excess > 0) {
    request.ids.erase(request.ids.begin(), request.ids.begin() + excess);
    request.context_cut = true;
    request.continuation_cut = request.scored > window;
    request.scored = std::min(request.scored, window);
  }
  return request;
}

std::string RequestLines(const TaskItems& task) {
  std::string lines;
  for (size_t i = 0; i < task.items.size(); ++i) {
    const TaskItem& item = task.items[i];
    for (size_t c = 0; c < item.choices.size(); ++c) {
      lines += JsonLine({{"task", task.name},
                         {"doc_id", i},
                         {"idx", c},
                         {"context", item.context},
                         {"continuation", Continuation(item.choices[c])},
                         {"gold", item.gold}});
      lines += '\n';
    }
  }
  return lines;
}

}  // namespace softmoe::trainer
