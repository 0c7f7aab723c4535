#include "core/analysis/key_sharing_sweep.h"

#include <algorithm>

#include "core/edits/latent_keys_edit.h"
#include "core/edits/share_keys_edit.h"
#include "core/edits/singular_edit.h"
#include "core/trace/layer_kinds.h"

namespace headscope {

bool alike_in_keys(const ModelConfig& config) {
  return config.dims.widths.empty() && config.kv_layers.empty();
}

KeySharingSweep::KeySharingSweep(LoadedModel loaded, RunRequest request, int ranks)
    : loaded_(std::move(loaded)), ranks_(ranks) {
  known_.request = std::move(request);
  known_.dims = loaded_.model->config().dims;
  const ModelConfig& config = loaded_.model->config();
  if (!alike_in_keys(config))
    throw Error("key sharing", "a model whose layers all have as many keys of the same width", config.name,
                "the edit \"share keys\" of one layer works on it");
}

void KeySharingSweep::step(const Ctx& ctx) {
  const ModelDims& dims = known_.dims;
  if (!probe_) {
    EditProbe probe(loaded_, known_.request, true, ctx);
    known_.before = probe.outcome(*probe.before());
    for (int groups = dims.kv_heads; groups >= 1; --groups)
      if (dims.kv_heads % groups == 0)
        todo_.push_back({false, groups, static_cast<double>(groups * (dims.d_head + dims.value_width())), 0, {}});
    // A model with latents has its own.
    const int full = std::min(dims.d_model, 2 * dims.kv_heads * dims.d_head);
    for (int rank = dims.kv_latent > 0 ? 0 : full, taken = 0; rank >= 1 && taken < ranks_; rank /= 2, ++taken)
      todo_.push_back({true, rank, static_cast<double>(rank), 0, {}});
    known_.total = static_cast<int>(todo_.size());
    probe_ = std::move(probe);
    return;
  }
  KeySharing::Entry entry = todo_[known_.entries.size()];
  const EditAction action = entry.latent ? EditAction(LatentKeys{entry.number}) : EditAction(ShareKeys{entry.number});
  entry.outcome = probe_->after({{{}, action}}, ctx);
  if (entry.latent)
    for (int layer = 0; layer < dims.layers; ++layer)
      if (dims.attends(layer))
        entry.weight_error +=
            latent_projector(*loaded_.model, layer, entry.number, "latent keys").factors.error / attending_layers(dims);
  known_.entries.push_back(entry);
}

std::shared_ptr<const KeySharing> KeySharingSweep::result() const {
  return probe_ ? std::make_shared<const KeySharing>(known_) : nullptr;
}

}  // namespace headscope
