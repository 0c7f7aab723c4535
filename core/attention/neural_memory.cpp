#include "core/attention/neural_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

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
  /// ‖left ⊗ right‖², the gradient's.
  double squared_gradient(const Numbers& left, const Numbers& right) const {
    double squared = 0;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) {
        const double gradient = left[as_size(i)] * right[as_size(j)];
        squared += gradient * gradient;
      }
    return squared;
  }
  /// One step along the gradient left ⊗ right.
  void learn(const Numbers& left, const Numbers& right, const MemoryRates& rates, double forgetting) {
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) {
        const double gradient = left[as_size(i)] * right[as_size(j)];
        double& surprise = past[as_size(i * columns + j)];
        surprise = rates.momentum * surprise - rates.learning * gradient;
        double& weight = weights[as_size(i * columns + j)];
        weight = (1 - forgetting) * weight + surprise;
      }
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

double adaptive_forgetting(const MemoryRates& rates, double relative_surprise, double fill) {
  const double alpha = rates.forgetting;
  if (alpha <= 0 || alpha >= 1) return alpha;
  const AdaptiveForgetting& by = rates.adaptive;
  return 1 / (1 + std::exp(-(std::log(alpha / (1 - alpha)) + by.surprise * relative_surprise + by.fill * (fill - 1))));
}

Index memory_numbers(Index d, Index d_v, const MemoryShape& shape) {
  if (shape.hidden == 0) return d * d_v;
  return shape.hidden * (d + (shape.depth - 1) * shape.hidden + d_v);
}

struct NeuralMemory::Layers {
  MemoryRates rates;
  std::vector<Learned> matrices;  // from the key on
  Index tokens = 0;               // learned so far
  double usual_surprise = 0;      // s̄, of the tokens so far
  double squared_values = 0;      // Σ ‖v‖², of the tokens so far

  /// What each matrix reads: the key, then tanh of what the one before gives.
  std::vector<Numbers> inside(const Numbers& key) const {
    std::vector<Numbers> z{key};
    for (std::size_t l = 0; l + 1 < matrices.size(); ++l) z.push_back(tanh_of(matrices[l].of(z.back())));
    return z;
  }
  double size() const {
    double sum = 0;
    for (const Learned& each : matrices) sum += squared(each.weights);
    return std::sqrt(sum);
  }
  /// α_t of a token with this surprise, which from now on belongs to those before.
  double forgetting(double surprise, const Numbers& value) {
    if (!rates.adaptive.on) return rates.forgetting;
    const double both = surprise + usual_surprise,
                 relative = tokens > 0 && both > 0 ? (surprise - usual_surprise) / both : 0;
    const auto read = static_cast<double>(tokens + 1);
    usual_surprise += (surprise - usual_surprise) / std::min(read, static_cast<double>(rates.adaptive.span));
    squared_values += squared(value);
    const double full = std::sqrt(rates.adaptive.capacity * squared_values / read);
    return adaptive_forgetting(rates, relative, full > 0 ? size() / full : 0);
  }
};

NeuralMemory::NeuralMemory(Index d, Index d_v, const MemoryRates& rates, const MemoryShape& shape)
    : layers_(std::make_unique<Layers>(Layers{rates, {}})) {
  std::vector<Learned>& matrices = layers_->matrices;
  Index width = d;
  for (Index l = 0; shape.hidden > 0 && l < shape.depth; ++l)
    matrices.emplace_back(shape.hidden, std::exchange(width, shape.hidden));
  matrices.emplace_back(d_v, width);
  if (shape.hidden == 0) return;
  Random random(shape.seed);
  for (Learned& each : matrices)
    for (double& w : each.weights)
      w = static_cast<double>(random.normal()) / std::sqrt(static_cast<double>(each.columns));
}

NeuralMemory::~NeuralMemory() = default;

NeuralMemory::Lesson NeuralMemory::learn(const Numbers& key, const Numbers& value, std::optional<double> forgetting) {
  Layers& m = *layers_;
  const std::vector<Numbers> z = m.inside(key);
  const std::size_t count = m.matrices.size();
  std::vector<Numbers> by(count);  // the gradient of the loss by what each matrix gives
  Numbers& error = by.back();
  error = m.matrices.back().of(z.back());  // M(k) − v, then the gradient of its square
  for (std::size_t i = 0; i < error.size(); ++i) error[i] -= value[i];
  Lesson lesson{squared(error), 0, 0};
  for (double& e : error) e *= 2;
  for (std::size_t l = count - 1; l > 0; --l) {
    by[l - 1] = m.matrices[l].transposed(by[l]);
    for (std::size_t i = 0; i < by[l - 1].size(); ++i) by[l - 1][i] *= 1 - z[l][i] * z[l][i];
  }
  for (std::size_t l = count; l-- > 0;) lesson.surprise += m.matrices[l].squared_gradient(by[l], z[l]);
  lesson.surprise = std::sqrt(lesson.surprise);
  const double own = m.forgetting(lesson.surprise, value);
  lesson.forgetting = forgetting.value_or(own);
  for (std::size_t l = 0; l < count; ++l) m.matrices[l].learn(by[l], z[l], m.rates, lesson.forgetting);
  ++m.tokens;
  return lesson;
}

Numbers NeuralMemory::answer(const Numbers& query) const {
  const Learned& last = layers_->matrices.back();
  const Numbers answer = last.of(layers_->inside(query).back());
  if (!std::isfinite(squared(answer)) || squared(last.weights) > 1e24)
    throw Error("neural memory", "a learning rate at which the memory stays finite",
                "one at which it grows without bound by token " + std::to_string(layers_->tokens - 1),
                "make θ (learning) smaller");
  return answer;
}

double NeuralMemory::size() const {
  return layers_->size();
}

Numbers NeuralMemory::numbers() const {
  Numbers all;
  for (const Learned& each : layers_->matrices) all.insert(all.end(), each.weights.begin(), each.weights.end());
  return all;
}

void NeuralMemory::move(std::size_t number, double by) {
  for (Learned& each : layers_->matrices) {
    if (number < each.weights.size()) {
      each.weights[number] += by;
      return;
    }
    number -= each.weights.size();
  }
}

Tensor NeuralMemory::state() const {
  const Learned& w = layers_->matrices.back();
  Tensor state = Tensor::uninitialized({w.columns, w.rows});
  for (Index i = 0; i < w.rows; ++i)
    for (Index j = 0; j < w.columns; ++j) state.ref(j, i) = static_cast<float>(w.weights[as_size(i * w.columns + j)]);
  return state;
}

void MemoryLessons::teach(NeuralMemory& memory, const Numbers& key, const Numbers& value, const MemoryRates& rates) {
  const NeuralMemory::Lesson lesson = memory.learn(key, value);
  loss.push_back(lesson.loss);
  surprise.push_back(lesson.surprise);
  forgetting.push_back(lesson.forgetting);
  if (rates.adaptive.on) size.push_back(memory.size());
}

MemoryRun run_memory(const Tensor& q, const Tensor& k, const Tensor& v, const MemoryRates& rates,
                     const MemoryShape& shape, bool states) {
  const Index n = q.dim(0), d_v = v.dim(1);
  NeuralMemory memory(k.dim(1), d_v, rates, shape);
  MemoryRun run;
  run.output = Tensor::uninitialized({n, d_v});
  for (Index t = 0; t < n; ++t) {
    run.teach(memory, tensor_row(k, t), tensor_row(v, t), rates);
    const Numbers answer = memory.answer(tensor_row(q, t));
    for (Index i = 0; i < d_v; ++i) run.output.ref(t, i) = static_cast<float>(answer[as_size(i)]);
    if (states && shape.hidden == 0) run.states.push_back(memory.state());
  }
  return run;
}

// The memory is linear in the values: the weight of value s is what is answered where value s is 1 and all others 0.
Tensor memory_weights(const Tensor& q, const Tensor& k, const MemoryRates& rates, const Numbers& forgetting) {
  const Index n = k.dim(0);
  NeuralMemory memory(k.dim(1), n, {rates.momentum, rates.learning, rates.forgetting}, {});
  Tensor out = Tensor::uninitialized({n, n});
  Numbers value(as_size(n), 0.0);
  for (Index t = 0; t < n; ++t) {
    value[as_size(t)] = 1;
    memory.learn(tensor_row(k, t), value, forgetting.empty() ? std::nullopt : std::optional(nth(forgetting, t)));
    value[as_size(t)] = 0;
    const Numbers answer = memory.answer(tensor_row(q, t));
    for (Index s = 0; s < n; ++s) out.ref(t, s) = static_cast<float>(answer[as_size(s)]);
  }
  return out;
}

bool titans_sees(TitansForm form, Index query, Index column, Index n, Index persistent, Index span, bool ahead) {
  if (column < persistent) return true;
  Index key = column - persistent;
  if (form != TitansForm::context) return key <= query && key > query - span;
  if (key < n) return key / span == query / span && (ahead || key <= query);  // recalled with the segment's queries
  key -= n;
  return key <= query && key / span == query / span;
}

TitansMask titans_mask(TitansForm form, Index n, Index persistent, Index span, bool ahead) {
  TitansMask mask{persistent, form == TitansForm::context ? n : 0, n, {}};
  for (Index query = 0; query < n; ++query)
    for (Index column = 0; column < mask.columns(); ++column)
      mask.hidden.push_back(titans_sees(form, query, column, n, persistent, span, ahead) ? 0 : 1);
  return mask;
}

}  // namespace headscope
