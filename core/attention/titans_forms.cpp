#include "core/attention/titans_forms.h"

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"

namespace headscope {

namespace {

using Numbers = std::vector<double>;

double root_mean_square(const Numbers& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(x.size(), 1)));
}

Numbers normalised(Numbers x) {
  const double rms = root_mean_square(x);
  for (double& each : x) each = rms > 0 ? each / rms : 0;
  return x;
}

Numbers of_length_one(Numbers x) {
  const double length = root_mean_square(x) * std::sqrt(static_cast<double>(x.size()));
  for (double& each : x) each = length > 0 ? each / length : 0;
  return x;
}

void write(Tensor& to, Index row, const Numbers& values) {
  for (Index c = 0; c < to.dim(1); ++c) to.ref(row, c) = static_cast<float>(nth(values, c));
}

Tensor joined(std::initializer_list<Tensor> parts) {
  Index rows = 0, columns = 0;
  for (const Tensor& part : parts)
    if (part.defined() && part.dim(0) > 0) rows += part.dim(0), columns = part.dim(1);
  Tensor out = Tensor::uninitialized({rows, columns});
  Index at = 0;
  for (const Tensor& part : parts)
    if (part.defined())
      for (Index r = 0; r < part.dim(0); ++r, ++at) write(out, at, tensor_row(part, r));
  return out;
}

/// Attention of rows [begin, end) over all columns, under the mask; the other rows stay as they are.
void attend(TitansJoined& out, const Tensor& q, const Tensor& keys, const Tensor& values, float scale, Index begin,
            Index end) {
  Tensor scores = mechanism::times(mechanism::product_t(q.slice(0, begin, end).packed(), keys), scale);
  for (Index i = begin; i < end; ++i)
    for (Index j = 0; j < out.mask.columns(); ++j)
      if (nth(out.mask.hidden, i * out.mask.columns() + j)) scores.ref(i - begin, j) = -float_infinity;
  const Tensor weights = mechanism::softmax_rows(std::move(scores)), mixed = mechanism::product(weights, values);
  for (Index i = begin; i < end; ++i) {
    write(out.weights, i, tensor_row(weights, i - begin));
    write(out.attended, i, tensor_row(mixed, i - begin));
  }
}

double opened(double x) {
  return 1 / (1 + std::exp(-x));
}

/// oᵢ = yᵢ ⊗ mᵢ
void gate(TitansJoined& out, Index row, const Numbers& answer, TitansReading::Gating gating) {
  Numbers share = normalised(answer), product = normalised(tensor_row(out.attended, row));
  for (std::size_t c = 0; c < share.size(); ++c) {
    if (gating == TitansReading::Gating::both) product[c] = opened(product[c]);
    product[c] *= share[c] = opened(share[c]);
  }
  write(out.gate, row, share);
  write(out.output, row, product);
}

}  // namespace

PersistentTokens persistent_tokens(Index count, const Tensor& k, const Tensor& v, std::uint64_t seed) {
  const auto drawn = [&](const Tensor& like, std::uint64_t own) {
    double sum = 0;
    for (Index i = 0; i < like.dim(0); ++i)
      for (const double each : tensor_row(like, i)) sum += each * each;
    const double size = std::sqrt(sum / static_cast<double>(std::max<Index>(like.size(), 1)));
    return mechanism::times(mechanism::gaussian(count, like.dim(1), own), static_cast<float>(size));
  };
  return {drawn(k, 2 * seed), drawn(v, 2 * seed + 1)};
}

TitansJoined join_memory(TitansForm form, const Tensor& q, const Tensor& k, const Tensor& v, float scale,
                         const MemoryRates& rates, const MemoryShape& shape, const PersistentTokens& persistent,
                         Index span, const TitansReading& reading) {
  const Index n = q.dim(0), d_v = v.dim(1);
  TitansJoined out;
  out.mask = titans_mask(form, n, persistent.k.dim(0), span);
  out.recalled = Tensor::zeros({n, d_v});
  out.weights = Tensor::zeros({n, out.mask.columns()});
  out.attended = Tensor::zeros({n, d_v});
  NeuralMemory memory(k.dim(1), d_v, rates, shape);
  const auto fitted = [&](const Tensor& x, Index row) {  // to the width of a key
    Numbers out_row = tensor_row(x, row);
    out_row.resize(static_cast<std::size_t>(k.dim(1)), 0.0);
    return of_length_one(std::move(out_row));
  };
  const auto learn = [&](const Tensor& keys, const Tensor& values, Index row) {
    memory.learn(fitted(keys, row), tensor_row(values, row));
  };
  const auto ask = [&](const Tensor& queries, Index row) { return memory.answer(fitted(queries, row)); };

  if (form == TitansForm::context) {
    out.gate = Tensor::zeros({n, d_v});
    out.output = Tensor::zeros({n, d_v});
    const Tensor keys = joined({persistent.k, k, k});
    for (Index begin = 0; begin < n; begin += span) {
      const Index end = std::min(begin + span, n);
      for (Index i = begin; i < end; ++i) write(out.recalled, i, ask(q, i));
      attend(out, q, keys, joined({persistent.v, out.recalled, v}), scale, begin, end);
      const bool output = reading.context == TitansReading::Context::output;
      for (Index i = begin; i < end; ++i) learn(output ? out.attended : k, out.attended, i);
      for (Index i = begin; i < end; ++i) gate(out, i, ask(output ? out.attended : q, i), reading.gating);
    }
    return out;
  }

  Tensor said = Tensor::zeros({persistent.k.dim(0), d_v});  // of the persistent tokens, asked by their own keys
  for (Index i = 0; i < persistent.k.dim(0); ++i) {
    learn(persistent.k, persistent.v, i);
    write(said, i, ask(persistent.k, i));
  }
  for (Index t = 0; t < n; ++t) {
    learn(k, v, t);
    write(out.recalled, t, ask(q, t));
  }
  const bool gated = form == TitansForm::gate;
  const Tensor values = gated ? joined({persistent.v, v}) : joined({said, out.recalled});
  attend(out, q, joined({persistent.k, k}), values, scale, 0, n);
  if (!gated) {
    out.output = out.attended;
    return out;
  }
  out.gate = Tensor::zeros({n, d_v});
  out.output = Tensor::zeros({n, d_v});
  for (Index t = 0; t < n; ++t) gate(out, t, tensor_row(out.recalled, t), reading.gating);
  return out;
}

}  // namespace headscope
