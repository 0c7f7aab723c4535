#pragma once
// How well a finished model does on held-out data, through the forward pass that everything else uses.

#include <cstdint>
#include <vector>

#include "core/model/model.h"
#include "core/train/tasks.h"

namespace headscope {

/// −ln p of every counted target, row by row, in nats. `cross`: as run_batch's. Throws Error when the model does not
/// fit the data.
std::vector<std::vector<double>> held_out_losses(const Model& model, const Ctx& ctx, const HeldOut& data,
                                                 Tap* cross = nullptr);
/// Their mean over all targets.
double held_out_loss(const Model& model, const Ctx& ctx, const HeldOut& data, Tap* cross = nullptr);
/// The first `length` tokens of one sequence, with its source.
Batch row_of(const Batch& batch, int row, int length);

}  // namespace headscope
