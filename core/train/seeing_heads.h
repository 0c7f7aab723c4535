#pragma once
// How well a model of pictures tells what it was taught, and which of its heads look at what counts. Private to
// core/train.

#include <vector>

#include "core/train/model_card.h"

namespace headscope {

/// The share of the pictures whose most probable class is theirs.
double share_told_right(const Model& model, const HeldOut& data, const Ctx& ctx);
/// Of each head the score "object": what CLS gives to the patches that the shape which counts covers, mean over so many
/// held-out pictures; chance is their share of all tokens. REQUIRES a task that draws.
std::vector<HeadCard> measure_seeing_heads(const Model& model, const Task& task, int pictures, const Ctx& ctx);

}  // namespace headscope
