// What stands in the place of tokens' rows, by its definition: patches of a picture, and a spectrogram.

#include "core/base/nth.h"
#include "core/model/plain_parts.h"

namespace headscope::plain {

void embed_picture(const VisionConfig& v, const RawWeights& w, const Tensor& patches, Table& x,
                   const std::stop_token& stop) {
  Table pixels(v.patches(), v.patch_numbers());
  for (Index patch = 0; patch < pixels.rows; ++patch)
    for (Index i = 0; i < pixels.columns; ++i) pixels.at(patch, i) = static_cast<double>(patches.at(patch, i));
  const Table embedded =
      product(pixels, w.patch_embedding, w.patch_bias.defined() ? w.patch_bias.select(0, 0) : Tensor(), stop);
  for (Index row = 0; row < x.rows; ++row)
    for (Index i = 0; i < x.columns; ++i)
      x.at(row, i) =
          row < v.leading ? static_cast<double>(nth(w.leading_tokens, row).at(0, i)) : embedded.at(row - v.leading, i);
}

namespace {
/// gelu of a convolution over three frames, every `stride`-th, zeros beyond both ends.
Table frames_convolved(const Table& x, int stride, const Tensor& weight, const Tensor& bias,
                       const std::stop_token& stop) {
  Table near((x.rows + stride - 1) / stride, 3 * x.columns);
  for (Index row = 0; row < near.rows; ++row)
    for (Index channel = 0; channel < x.columns; ++channel)
      for (Index tap = 0; tap < 3; ++tap)
        if (const Index frame = row * stride + tap - 1; frame >= 0 && frame < x.rows)
          near.at(row, channel * 3 + tap) = x.at(frame, channel);
  Table out = product(near, weight, bias, stop);
  activate(Activation::gelu, out, {});
  return out;
}
}  // namespace

Table embed_sound(const RawWeights& w, const Tensor& frames, const std::stop_token& stop) {
  Table x(frames.dim(0), frames.dim(1));
  for (Index row = 0; row < x.rows; ++row)
    for (Index i = 0; i < x.columns; ++i) x.at(row, i) = static_cast<double>(frames.at(row, i));
  for (int i = 0; i < 2; ++i)
    x = frames_convolved(x, i + 1, nth(w.convolutions, i), nth(w.convolution_biases, i), stop);
  return x;
}

}  // namespace headscope::plain
