// SPDX-License-Identifier: Apache-2.0
//
// score_requests.h - how likely a model finds the continuations of requests.
#ifndef SOFTMOE_TRAINER_TASKS_SCORE_REQUESTS_H_
#define SOFTMOE_TRAINER_TASKS_SCORE_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "optimized/communicator/communicator.h"
#include "optimized/model.h"
#include "trainer/tasks/requests.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tasks/task_scores.h"

namespace softmoe::trainer {

struct RequestScore {
  // Log-likelihood of the scored tokens given those before, in nats, added in
  // double in their order.
  double log_likelihood = 0;
  // Whether each of them is what the model finds most likely, of equals the
  // first.
  bool is_greedy = false;
  bool operator==(const RequestScore&) const = default;
};

// The score of each request.
//
// Requests of about a length go through the model together, filled up behind
// with tokens that nothing looks at. On the CPU a token's loss depends on those
// before it alone: the bits are the same however many requests are in a batch,
// and for any number of threads and ranks. A device may choose other kernels
// for batches of other sizes.
//
//   requests      of at most the model's sequence_length + 1 ids
//   batch_tokens  at once: at most what the model was made for
//   communicator  of ranks that all call it, share the batches, and return all
//   poll          called before every batch, by all ranks equally often; may
//                 throw
// Errors   as Model::Forward
std::vector<RequestScore> ScoreRequests(std::span<const RequestTokens> requests,
                                        optimized::Model& model,
                                        const optimized::RoutingState& routing,
                                        int64_t batch_tokens,
                                        optimized::Communicator& communicator,
                                        const std::function<void()>& poll);

// The answers of a model to all items of a task, in batches of as many tokens
// as its balance groups have.
//
//   encode           of the tokenizer that the model was trained with
//   end_of_document  its id
// Errors   as ScoreRequests, TokenizeRequest and ScoreItem, with the item's
//          place
ScoredTask ScoreTask(TaskItems task, optimized::Model& model,
                     const optimized::RoutingState& routing,
                     const EncodeText& encode, int32_t end_of_document,
                     optimized::Communicator& communicator,
                     const std::function<void()>& poll);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TASKS_SCORE_REQUESTS_H_
