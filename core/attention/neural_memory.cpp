#include "core/attention/neural_memory.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/random.h"

namespace headscope {

namespace {

using Numbers = std::vector<double>;

/// A matrix of the memory with its momentum.
struct Learned {
  Index rows, columns;
  Numbers weights, past;
  Learned(Index r, Index c) : rows(r), columns(c), weights(as_size(r * c), 0.0), past(weights) {}

  Numbers of(const Numbers& x) const {
    Numbers out(as_size(rows), 0.0);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) out[as_size(i)] += weights[as_size(i * columns + j)] * x[as_size(j)];
    return out;
  }
  Numbers transposed(const Numbers& y) const {
    Numbers out(as_size(columns), 0.0);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) out[as_size(j)] += weights[as_size(i * columns + j)] * y[as_size(i)];
    return out;
  }
  /// The gradient is left ⊗ right; returns its squared norm.
  double learn(const Numbers& left, const Numbers& right, const MemoryRates& rates) {
    double squared = 0;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) {
        const double gradient = left[as_size(i)] * right[as_size(j)];
        squared += gradient * gradient;
        double& surprise = past[as_size(i * columns + j)];
        surprise = rates.momentum * surprise - rates.learning * gradient;
        double& weight = weights[as_size(i * columns + j)];
        weight = (1 - rates.forgetting) * weight + surprise;
      }
    return squared;
  }
};

double squared(const Numbers& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return sum;
}

Numbers tanh_of(Numbers x) {
  for (double& v : x) v = std::tanh(v);
  return x;
}

}  // namespace

std::vector<double> tensor_row(const Tensor& x, Index row) {
  Numbers out;
  for (Index c = 0; c < x.dim(1); ++c) out.push_back(static_cast<double>(x.at(row, c)));
  return out;
}

struct NeuralMemory::Layers {
  MemoryRates rates;
  bool deep;
  Learned last, first;
  Index tokens = 0;  // learned so far
  Numbers inside(const Numbers& key) const { return deep ? tanh_of(first.of(key)) : key; }
};

NeuralMemory::NeuralMemory(Index d, Index d_v, const MemoryRates& rates, const MemoryShape& shape)
    : layers_(std::make_unique<Layers>(Layers{
          rates, shape.hidden > 0, Learned(d_v, shape.hidden > 0 ? shape.hidden : d), Learned(shape.hidden, d)})) {
  if (!layers_->deep) return;
  Random random(shape.seed);
  for (Learned* each : {&layers_->first, &layers_->last})
    for (double& w : each->weights)
      w = static_cast<double>(random.normal()) / std::sqrt(static_cast<double>(each->columns));
}

NeuralMemory::~NeuralMemory() = default;

NeuralMemory::Lesson NeuralMemory::learn(const Numbers& key, const Numbers& value) {
  Layers& m = *layers_;
  const Numbers z = m.inside(key);
  Numbers error = m.last.of(z);  // M(k) − v, then the gradient of its square
  for (std::size_t i = 0; i < error.size(); ++i) error[i] -= value[i];
  Lesson lesson{squared(error), 0};
  for (double& e : error) e *= 2;
  Numbers through;
  if (m.deep) {
    through = m.last.transposed(error);
    for (std::size_t i = 0; i < through.size(); ++i) through[i] *= 1 - z[i] * z[i];
  }
  double surprise = m.last.learn(error, z, m.rates);
  if (m.deep) surprise += m.first.learn(through, key, m.rates);
  lesson.surprise = std::sqrt(surprise);
  ++m.tokens;
  return lesson;
}

Numbers NeuralMemory::answer(const Numbers& query) const {
  const Numbers answer = layers_->last.of(layers_->inside(query));
  if (!std::isfinite(squared(answer)) || squared(layers_->last.weights) > 1e24)
    throw Error("neural memory", "a learning rate at which the memory stays finite",
                "one at which it grows without bound by token " + std::to_string(layers_->tokens - 1),
                "make θ smaller");
  return answer;
}

Tensor NeuralMemory::state() const {
  const Learned& w = layers_->last;
  Tensor state = Tensor::uninitialized({w.columns, w.rows});
  for (Index i = 0; i < w.rows; ++i)
    for (Index j = 0; j < w.columns; ++j) state.ref(j, i) = static_cast<float>(w.weights[as_size(i * w.columns + j)]);
  return state;
}

MemoryRun run_memory(const Tensor& q, const Tensor& k, const Tensor& v, const MemoryRates& rates,
                     const MemoryShape& shape, bool states) {
  const Index n = q.dim(0), d_v = v.dim(1);
  NeuralMemory memory(k.dim(1), d_v, rates, shape);
  MemoryRun run;
  run.output = Tensor::uninitialized({n, d_v});
  for (Index t = 0; t < n; ++t) {
    const NeuralMemory::Lesson lesson = memory.learn(tensor_row(k, t), tensor_row(v, t));
    run.loss.push_back(lesson.loss);
    run.surprise.push_back(lesson.surprise);
    const Numbers answer = memory.answer(tensor_row(q, t));
    for (Index i = 0; i < d_v; ++i) run.output.ref(t, i) = static_cast<float>(answer[as_size(i)]);
    if (states && shape.hidden == 0) run.states.push_back(memory.state());
  }
  return run;
}

// The memory is linear in the values: the weight of value s is what is answered where value s is 1 and all others 0.
Tensor memory_weights(const Tensor& q, const Tensor& k, const MemoryRates& rates) {
  const Index n = k.dim(0);
  Tensor one_each = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i) one_each.ref(i, i) = 1;
  return run_memory(q, k, one_each, rates).output;
}

bool titans_sees(TitansForm form, Index query, Index column, Index n, Index persistent, Index span) {
  if (column < persistent) return true;
  Index key = column - persistent;
  if (form != TitansForm::context) return key <= query && key > query - span;
  if (key < n) return key / span == query / span;  // recalled with the queries of this segment
  key -= n;
  return key <= query && key / span == query / span;
}

TitansMask titans_mask(TitansForm form, Index n, Index persistent, Index span) {
  TitansMask mask{persistent, form == TitansForm::context ? n : 0, n, {}};
  for (Index query = 0; query < n; ++query)
    for (Index column = 0; column < mask.columns(); ++column)
      mask.hidden.push_back(titans_sees(form, query, column, n, persistent, span) ? 0 : 1);
  return mask;
}

}  // namespace headscope
