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
  // Whether each of them is the token that the model finds most likely, the
  // first of equals.
  bool is_greedy = false;
  bool operator==(const RequestScore&) const = default;
};

// Returns the score of each request.
//
// Requests of about the same length go through the model together, padded at
// the end with tokens that nothing looks at. On the CPU, a token's loss depends
// only on those before it, so the bits are the same however many requests are
// in a batch, and for any number of threads and ranks. A device may choose
// other kernels for batches of other sizes.
//
//   requests      each of at most the model's sequence_length + 1 ids
//   batch_tokens  per batch: at least sequence_length, and at most what the
//                 model was made for
//   communicator  of the ranks: all call this, share batches, return all scores
//   poll          called before every batch, by all ranks equally often; may
//                 throw
// Errors   as Model::Forward
std::vector<RequestScore> ScoreRequests(std::span<const RequestTokens> requests,
                                        optimized::Model& model,
                                        const optimized::RoutingState& routing,
                                        int64_t batch_tokens,
                                        optimized::Communicator& communicator,
                                        const std::function<void()>& poll);

// Returns the answers of a model to all items of a task, in batches of as many
// tokens as its balance groups have.
//
//   encode           of the tokenizer that the model was trained with
//   end_of_document  its id
// Errors   as ScoreRequests and ScoreItem; as TokenizeRequest, with the item's
//          place
ScoredTask ScoreTask(TaskItems task, optimized::Model& model,
                     const optimized::RoutingState& routing,
                     const EncodeText& encode, int32_t end_of_document,
                     optimized::Communicator& communicator,
                     const std::function<void()>& poll);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TASKS_SCORE_REQUESTS_H_
