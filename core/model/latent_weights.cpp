#include "core/model/latent_weights.h"

#include <algorithm>

namespace headscope {

namespace {
/// Rows of a stored matrix (out, in), of every head after another.
class HeadRows {
 public:
  HeadRows(const Tensor& stored, Index heads)
      : rows_(stored.packed()), per_head_(stored.dim(0) / heads), heads_(heads) {}

  /// (in, heads · width): of every head `zeros` columns of 0, then its rows [first, end), then its rows [0, last).
  Tensor columns(Index zeros, Index first, Index end, Index last = 0) const {
    const Index in = rows_.dim(1), width = zeros + end - first + last;
    Tensor out = Tensor::zeros({heads_ * width, in});
    for (Index head = 0; head < heads_; ++head) {
      float* const to = out.mutable_data() + (head * width + zeros) * in;
      const float* const from = rows_.data() + head * per_head_ * in;
      std::copy(from + first * in, from + end * in, to);
      std::copy(from, from + last * in, to + (end - first) * in);
    }
    return out.transpose(0, 1);
  }

 private:
  Tensor rows_;
  Index per_head_, heads_;
};
}  // namespace

void read_latents(WeightReader& reader, const std::string& at, const LatentNames& names, const ModelConfig& c,
                  RawLayer& into) {
  const ModelDims& dims = c.dims;
  const Index d = dims.d_model, heads = dims.heads, turning = c.rotary.width, still = dims.d_head - turning,
              value = dims.value_width();
  RawLatents& latents = into.latents;
  const bool q_latent = dims.q_latent > 0;
  if (q_latent) {
    reader.take_transposed(at + names.q_down + ".weight", d, dims.q_latent, latents.q_weight);
    if (c.bias.q) reader.take(at + names.q_down + ".bias", {dims.q_latent}, latents.q_bias);
    reader.take(at + names.q_norm + ".weight", {dims.q_latent}, latents.q_gain);
  }
  reader.take(at + (q_latent ? names.q_up : names.q) + ".weight", {heads * dims.d_head, q_latent ? dims.q_latent : d},
              [&](const Tensor& up) { into.q_weight = HeadRows(up, heads).columns(0, still, dims.d_head, still); });
  reader.take_transposed(at + names.kv_down + ".weight", d, dims.kv_latent + turning, latents.kv_weight);
  if (c.bias.k) reader.take(at + names.kv_down + ".bias", {dims.kv_latent + turning}, latents.kv_bias);
  reader.take(at + names.kv_norm + ".weight", {dims.kv_latent}, latents.kv_gain);
  reader.take(at + names.kv_up + ".weight", {heads * (still + value), dims.kv_latent}, [&](const Tensor& up) {
    const HeadRows rows(up, heads);
    into.k_weight = rows.columns(turning, 0, still);
    into.v_weight = rows.columns(0, still, still + value);
  });
}

}  // namespace headscope
