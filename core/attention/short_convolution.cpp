#include "core/attention/short_convolution.h"

#include <algorithm>
#include <cassert>

#include "core/attention/state_mixing.h"

namespace headscope {

Tensor convolve_gated(Backend& backend, const ShortConvolution& in, const Tensor& before) {
  return backend.multiply(
      in.c, causal_convolution(backend, backend.multiply(in.b, in.x), in.weight, in.bias, before, in.lengths));
}

Tensor convolution_offset(Backend& backend, const ShortConvolution& in) {
  if (!in.bias.defined()) return {};
  // The convolution of nothing is its bias.
  return backend.multiply(in.c, causal_convolution(backend, Tensor::zeros(in.x.shape()), in.weight, in.bias));
}

namespace {
/// The tokens that a row sees: [first, row].
Index first_seen(const ShortConvolution& in, Index row) {
  return std::max<Index>(0, row - in.weight.dim(1) + 1);
}
/// w of a token so many rows back.
float tap_of(const ShortConvolution& in, Index channel, Index back) {
  return in.weight.at(channel, in.weight.dim(1) - 1 - back);
}
}  // namespace

Tensor implied_attention(const ShortConvolution& in, Index channel, Index first) {
  return mean_implied(in, channel, channel + 1, first);
}

Tensor mean_implied(const ShortConvolution& in, Index begin, Index end, Index first) {
  const Index n = in.b.dim(0);
  assert(in.lengths.size() < 2 && first >= 0 && first <= n && begin < end);
  Tensor out = Tensor::zeros({n - first, n});
  for (Index t = first; t < n; ++t)
    for (Index s = first_seen(in, t); s <= t; ++s) {
      float sum = 0;
      for (Index channel = begin; channel < end; ++channel)
        sum += in.c.at(t, channel) * tap_of(in, channel, t - s) * in.b.at(s, channel);
      out.ref(t - first, s) = sum / static_cast<float>(end - begin);
    }
  return out;
}

Tensor implied_of_all(Backend& backend, const ShortConvolution& in) {
  const Index n = in.b.dim(0), channels = in.b.dim(1), taps = in.weight.dim(1);
  assert(in.lengths.size() < 2);
  Tensor out = Tensor::zeros({n, channels, n});
  for (Index t = 0; t < n; ++t)
    for (Index c = 0; c < channels; ++c)
      for (Index s = first_seen(in, t); s <= t; ++s)
        out.ref(t, c, s) = in.c.at(t, c) * tap_of(in, c, t - s) * in.b.at(s, c);
  Tape* const tape = backend.tape();
  if (!tape || !(tape->active(in.b) || tape->active(in.c) || tape->active(in.weight))) return out;
  ShortConvolution of = in;
  of.lengths = {};
  tape->record(out, [of, n, channels, taps, &tape = *tape](const Tensor& d_out) {
    for (const Tensor* x : {&of.c, &of.b, &of.weight}) {
      if (!tape.active(*x)) continue;
      Tape::Slot to = tape.into(*x);
      if (!to.add)
        for (Index i = 0; i < x->dim(0); ++i)
          for (Index j = 0; j < x->dim(1); ++j) to.values.ref(i, j) = 0;
      for (Index t = 0; t < n; ++t)
        for (Index c = 0; c < channels; ++c)
          for (Index s = first_seen(of, t); s <= t; ++s) {
            const float d = d_out.at(t, c, s), w = tap_of(of, c, t - s);
            if (x == &of.c)
              to.values.ref(t, c) += d * w * of.b.at(s, c);
            else if (x == &of.b)
              to.values.ref(s, c) += d * w * of.c.at(t, c);
            else
              to.values.ref(c, taps - 1 - (t - s)) += d * of.c.at(t, c) * of.b.at(s, c);
          }
    }
  });
  return out;
}

}  // namespace headscope
