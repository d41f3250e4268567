// SPDX-License-Identifier: Apache-2.0
//
// loaded_model.h - the model of a checkpoint, ready to be asked.
#ifndef SOFTMOE_TRAINER_EVALUATION_LOADED_MODEL_H_
#define SOFTMOE_TRAINER_EVALUATION_LOADED_MODEL_H_

#include <cstdint>
#include <memory>

#include "core/config/config.h"
#include "core/parallel_for.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "trainer/results/checkpoint.h"

namespace softmoe::trainer {

struct LoadedModel {
  // `config` may differ from the checkpoint's only in what changes no
  // parameter; `threads` as in RuntimeConfig. Keeps a reference to `device`.
  // Throws as MakeModel and Checkpoint::ReadParameters. A forward pass
  // recomputes nothing, so kLayer, which takes the least memory, costs nothing.
  LoadedModel(const Checkpoint& checkpoint, const Config& config,
              int64_t threads, optimized::Device& device)
      : pool(static_cast<int>(threads)),
        model(optimized::MakeModel(config,
                                   config.training.balance_group_sequences,
                                   pool, device, Recompute::kLayer)) {
    model->WriteParameters(checkpoint.ReadParameters(model->layout().total), 0);
  }

  ThreadPool pool;
  std::unique_ptr<optimized::Model> model;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_LOADED_MODEL_H_
