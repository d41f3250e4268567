// SPDX-License-Identifier: Apache-2.0
//
// requests.h - a choice of an item as a model sees it: the text, and its tokens
// as lm-evaluation-harness 0.4.13 cuts them (SPEC.md 5.1).
#ifndef SOFTMOE_TRAINER_TASKS_REQUESTS_H_
#define SOFTMOE_TRAINER_TASKS_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tasks/task_items.h"

namespace softmoe::trainer {

// Token ids of a text, as Tokenizer::Encode.
using EncodeText = std::function<std::vector<int32_t>(std::string_view)>;

struct RequestTokens {
  // What is left of context and continuation; all but the last are the model's
  // input, so there are at most window + 1.
  std::vector<int32_t> ids;
  int64_t scored = 0;        // the last ones, of the continuation; at least one
  bool context_cut = false;  // tokens of the context did not fit
  bool continuation_cut = false;  // nor did some of the continuation
};

// Encodes the context alone, and context and continuation as one text. The
// continuation has what follows in that text after as many tokens as the
// context alone has. A token across the border is thus replaced by the
// context's last one, and its part of the continuation is not asked for. White
// space at the context's end is first moved to the continuation; nothing is put
// in front of the context. If the context is then empty, the end of a document
// stands for it. What is too long for `window` tokens of input loses its first
// tokens; the harness aborts if these are the continuation's.
//
//   context       "" or any text
//   continuation  not empty
// Errors   DataError if the continuation has no token of its own: the encoding
//          of both is no longer than the context's, or is nothing but an end
//          of a document.
RequestTokens TokenizeRequest(std::string_view context,
                              std::string_view continuation,
                              const EncodeText& encode, int32_t end_of_document,
                              int64_t window);

// All requests of a task, item by item, choice by choice, as JSON lines:
//
//   {"task": "piqa", "doc_id": 0, "idx": 1, "context": "Question: ...",
//    "continuation": " ...", "gold": 0}
std::string RequestLines(const TaskItems& task);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TASKS_REQUESTS_H_
