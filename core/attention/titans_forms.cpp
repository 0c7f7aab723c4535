#include "core/attention/titans_forms.h"

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/base/error.h"
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

/// One run: the memory, and beside it what its answers are mixtures of.
class Joining {
 public:
  Joining(TitansForm form, const Tensor& q, const Tensor& k, const Tensor& v, float scale, const MemoryRates& rates,
          const MemoryShape& shape, const PersistentTokens& persistent, Index span, const TitansReading& reading,
          const TitansKeeps& keeps)
      : form_(form),
        q_(q),
        k_(k),
        v_(v),
        scale_(scale),
        rates_(rates),
        persistent_(persistent),
        span_(span),
        reading_(reading),
        keeps_(keeps),
        n_(q.dim(0)),
        linear_(shape.hidden == 0),
        memory_(k.dim(1), v.dim(1), rates, shape),
        shadow_(k.dim(1), keeps.mixed ? q.dim(0) : 1, {rates.momentum, rates.learning, rates.forgetting}, {}) {}

  TitansJoined run() {
    const bool context = form_ == TitansForm::context;
    const bool ahead = reading_.segments == TitansReading::Segments::whole;
    out_.mask = titans_mask(form_, n_, persistent_.k.dim(0), span_, ahead);
    out_.recalled = Tensor::zeros(v_.shape());
    out_.weights = Tensor::zeros({n_, out_.mask.columns()});
    out_.attended = Tensor::zeros(v_.shape());
    if (form_ != TitansForm::layer) {
      out_.gate = Tensor::zeros(v_.shape());
      out_.output = Tensor::zeros(v_.shape());
    }
    if (keeps_.mixed) out_.mixed = Tensor::zeros({n_, n_}), recalls_ = Tensor::zeros({n_, n_});
    if (context)
      by_segments(ahead);
    else
      beside();
    return std::move(out_);
  }

 private:
  Numbers fitted(const Tensor& x, Index row) const {  // to the width of a key
    Numbers out_row = tensor_row(x, row);
    out_row.resize(static_cast<std::size_t>(k_.dim(1)), 0.0);
    return of_length_one(std::move(out_row));
  }
  Numbers ask(const Tensor& queries, Index row) const { return memory_.answer(fitted(queries, row)); }
  /// What memory says for token `t`, and of which values it is made up.
  void recall(Index t) {
    write(out_.recalled, t, ask(q_, t));
    if (keeps_.mixed) write(recalls_, t, shadow_.answer(fitted(q_, t)));
  }
  /// A token of the text: `mixture`, of which of its values the one that is taught is made up.
  void learn(const Tensor& keys, const Tensor& values, Index row, const Numbers& mixture) {
    if (keeps_.stop.stop_requested()) throw Cancelled();
    out_.lessons.teach(memory_, fitted(keys, row), tensor_row(values, row), rates_);
    if (keeps_.mixed) shadow_.learn(fitted(keys, row), mixture, out_.lessons.forgetting.back());
    if (keeps_.states && linear_) out_.states.push_back(memory_.state());
  }
  /// Of the values of the text itself.
  Numbers alone(Index t) const {
    Numbers out(keeps_.mixed ? static_cast<std::size_t>(n_) : 1, 0.0);
    if (keeps_.mixed) nth(out, t) = 1;
    return out;
  }
  /// What attention of row `t` gives the values of the text: those it sees, and those of which memory's answers are.
  void mix(Index t) {
    if (!keeps_.mixed) return;
    const TitansMask& mask = out_.mask;
    const Index text = mask.persistent + mask.recalled;
    for (Index s = 0; s < n_; ++s) {
      const float own = out_.weights.at(t, text + s);
      if (form_ != TitansForm::layer) out_.mixed.ref(t, s) += own;
      const float of_memory = form_ == TitansForm::layer     ? own
                              : form_ == TitansForm::context ? out_.weights.at(t, mask.persistent + s)
                                                             : 0.0f;
      if (of_memory == 0) continue;
      for (Index u = 0; u < n_; ++u) out_.mixed.ref(t, u) += of_memory * recalls_.at(s, u);
    }
  }

  void by_segments(bool ahead) {
    const Tensor keys = joined({persistent_.k, k_, k_});
    const bool output = reading_.context == TitansReading::Context::output;
    for (Index begin = 0; begin < n_; begin += span_) {
      const Index end = std::min(begin + span_, n_);
      for (Index i = begin; i < end; ++i) recall(i);
      attend(out_, q_, keys, joined({persistent_.v, out_.recalled, v_}), scale_, begin, end);
      for (Index i = begin; i < end; ++i) mix(i);
      const auto taught = [&](Index i) {
        learn(output ? out_.attended : k_, out_.attended, i, keeps_.mixed ? tensor_row(out_.mixed, i) : Numbers{0});
      };
      const auto gated = [&](Index i) { gate(out_, i, ask(output ? out_.attended : q_, i), reading_.gating); };
      for (Index i = begin; i < end; ++i) {
        taught(i);
        if (!ahead) gated(i);
      }
      for (Index i = begin; i < end && ahead; ++i) gated(i);
    }
  }

  void beside() {
    const Index persistent = persistent_.k.dim(0);
    Tensor said = Tensor::zeros({persistent, v_.dim(1)});  // of the persistent tokens, asked by their own keys
    const Numbers nothing(keeps_.mixed ? static_cast<std::size_t>(n_) : 1, 0.0);
    for (Index i = 0; i < persistent; ++i) {
      const NeuralMemory::Lesson lesson = memory_.learn(fitted(persistent_.k, i), tensor_row(persistent_.v, i));
      if (keeps_.mixed) shadow_.learn(fitted(persistent_.k, i), nothing, lesson.forgetting);
      write(said, i, ask(persistent_.k, i));
    }
    for (Index t = 0; t < n_; ++t) {
      learn(k_, v_, t, alone(t));
      recall(t);
    }
    const bool gated = form_ == TitansForm::gate;
    const Tensor values = gated ? joined({persistent_.v, v_}) : joined({said, out_.recalled});
    attend(out_, q_, joined({persistent_.k, k_}), values, scale_, 0, n_);
    for (Index t = 0; t < n_; ++t) mix(t);
    if (!gated) {
      out_.output = out_.attended;
      return;
    }
    for (Index t = 0; t < n_; ++t) gate(out_, t, tensor_row(out_.recalled, t), reading_.gating);
  }

  TitansForm form_;
  const Tensor &q_, &k_, &v_;
  float scale_;
  const MemoryRates& rates_;
  const PersistentTokens& persistent_;
  Index span_;
  const TitansReading& reading_;
  TitansKeeps keeps_;
  Index n_;
  bool linear_;
  NeuralMemory memory_, shadow_;  // the second of one matrix, for values that are one-hot
  Tensor recalls_;                // (n, n): of which values what memory recalls is made up
  TitansJoined out_;
};

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
                         Index span, const TitansReading& reading, const TitansKeeps& keeps) {
  return Joining(form, q, k, v, scale, rates, shape, persistent, span, reading, keeps).run();
}

}  // namespace headscope
