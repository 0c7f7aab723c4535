#include "core/train/adamw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/tensor/backend.h"
#include "core/tensor/row_gradients.h"
#include "core/tensor/update_kernel.h"
#include "core/train/adamw_row.h"

namespace headscope {
namespace {

// Tensors are cut into pieces of this many elements: one task each, and the unit of every sum.
constexpr Index piece = 16'384;

/// body(tensor, begin, end, number of the piece) for every piece of every tensor, in parallel.
template <class Body>
void over_pieces(const std::vector<Tensor>& tensors, ThreadPool& pool, Body body) {
  struct Piece {
    std::size_t tensor;
    Index begin, end;
  };
  std::vector<Piece> pieces;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    for (Index begin = 0; begin < tensors[t].size(); begin += piece)
      pieces.push_back({t, begin, std::min(begin + piece, tensors[t].size())});
  pool.parallel(static_cast<int>(pieces.size()), [&](int i, int) {
    const Piece& p = nth(pieces, i);
    body(p.tensor, p.begin, p.end, static_cast<std::size_t>(i));
  });
}

}  // namespace

double OptimizerSettings::rate_at(std::int64_t step) const {
  if (step < warmup_steps) return learning_rate * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  if (schedule_steps == 0) return learning_rate;
  if (step >= schedule_steps) return final_learning_rate;
  const double done = static_cast<double>(step - warmup_steps) /
                      static_cast<double>(std::max<std::int64_t>(schedule_steps - warmup_steps, 1));
  return final_learning_rate + (learning_rate - final_learning_rate) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

double OptimizerSettings::entropy_price_at(std::int64_t step) const {
  if (attention_entropy_from == 0 || step >= schedule_steps) return attention_entropy;
  const double risen =
      static_cast<double>(step - attention_entropy_from) / static_cast<double>(schedule_steps - attention_entropy_from);
  return attention_entropy * std::max(risen, 0.0);
}

void OptimizerSettings::check(const std::string& where) const {
  const auto require = [&](bool good, const char* name, const char* expected, double found) {
    if (!good) throw Error(fmt::format("{}: {}", where, name), expected, fmt::format("{}", found));
  };
  require(learning_rate >= 0 && learning_rate < 1e3, "learning_rate", "a number in [0, 1000)", learning_rate);
  require(final_learning_rate >= 0 && final_learning_rate < 1e3, "final_learning_rate", "a number in [0, 1000)",
          final_learning_rate);
  require(beta1 >= 0 && beta1 < 1, "beta1", "a number in [0, 1)", beta1);
  require(beta2 >= 0 && beta2 < 1, "beta2", "a number in [0, 1)", beta2);
  require(epsilon > 0 && epsilon < 1, "epsilon", "a number in (0, 1)", epsilon);
  require(weight_decay >= 0 && weight_decay < 1e3, "weight_decay", "a number in [0, 1000)", weight_decay);
  require(clip_norm >= 0 && std::isfinite(clip_norm), "clip_norm", "0 or a positive number", clip_norm);
  require(attention_entropy >= 0 && attention_entropy <= 10, "attention_entropy", "a number in 0…10",
          attention_entropy);
  require(expert_balance >= 0 && expert_balance <= 10, "expert_balance", "a number in 0…10", expert_balance);
  require(attention_entropy_from == 0 || (attention_entropy_from > 0 && attention_entropy_from < schedule_steps),
          "attention_entropy_from", "0, or a step before the last", static_cast<double>(attention_entropy_from));
  require(warmup_steps >= 0, "warmup_steps", "0 or more", static_cast<double>(warmup_steps));
  require(schedule_steps == 0 || schedule_steps >= warmup_steps, "schedule_steps", "0, or warmup_steps or more",
          static_cast<double>(schedule_steps));
}

AdamW::AdamW(const Parameters& parameters, OptimizerSettings settings) : settings_(settings) {
  settings_.check();
  for (const Parameter& each : parameters.all()) {
    names_.push_back(each.name);
    first_.push_back(Tensor::zeros(each.value.shape()));
    second_.push_back(Tensor::zeros(each.value.shape()));
  }
}

void AdamW::set_settings(OptimizerSettings settings) {
  settings.check();
  settings_ = settings;
}

void AdamW::step(Parameters& parameters, const std::vector<Tensor>& gradients, double norm, Backend& backend) {
  assert(gradients.size() == first_.size() && std::isfinite(norm));
  const double rate = next_rate();
  ++steps_;
  const auto t = static_cast<double>(steps_);
  const double clip = settings_.clip_norm > 0 && norm > settings_.clip_norm ? settings_.clip_norm / norm : 1;
  AdamWRow row;
  row.gradient_scale = static_cast<float>(clip);
  row.beta1 = static_cast<float>(settings_.beta1);
  row.beta2 = static_cast<float>(settings_.beta2);
  row.rest1 = static_cast<float>(1 - settings_.beta1);
  row.rest2 = static_cast<float>(1 - settings_.beta2);
  row.rate = static_cast<float>(rate / (1 - std::pow(settings_.beta1, t)));
  row.second_scale = static_cast<float>(1 / (1 - std::pow(settings_.beta2, t)));
  row.epsilon = static_cast<float>(settings_.epsilon);
  AdamWRow decayed = row;
  decayed.keep = static_cast<float>(1 - rate * settings_.weight_decay);
  if (UpdateKernel* const device = backend.updates()) {
    std::vector<UpdateKernel::Update> updates;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      Parameter& p = parameters.all()[i];
      for (Tensor* each : {&first_[i], &second_[i], &p.value}) *each = backend.resident(std::move(*each));
      updates.push_back({gradients[i], first_[i], second_[i], p.value, p.decays() ? decayed.keep : row.keep});
    }
    device->adamw(row, updates);
    return;
  }
  over_pieces(gradients, backend.pool(), [&](std::size_t i, Index begin, Index end, std::size_t) {
    Parameter& p = parameters.all()[i];
    adamw_row(p.decays() ? decayed : row, gradients[i].data() + begin, end - begin, first_[i].mutable_data() + begin,
              second_[i].mutable_data() + begin, p.value.mutable_data() + begin);
  });
}

std::map<std::string, Tensor> AdamW::state() const {
  std::map<std::string, Tensor> state;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    state.emplace("first_moment/" + names_[i], first_[i].copy());
    state.emplace("second_moment/" + names_[i], second_[i].copy());
  }
  state.emplace("steps", Tensor::full({1}, static_cast<float>(steps_)));
  return state;
}

void AdamW::restore(const std::map<std::string, Tensor>& state) {
  const auto find = [&](const std::string& name, const Shape& shape) {
    const auto found = state.find(name);
    if (found == state.end()) throw Error("optimizer state " + name, "a tensor of shape " + shape.str(), "none");
    if (found->second.shape() != shape)
      throw Error("optimizer state " + name, "shape " + shape.str(), found->second.shape().str());
    return found->second.copy();
  };
  const float steps = find("steps", {1}).at(0);
  if (!(steps >= 0 && steps <= 16'777'216.0f && std::floor(steps) == steps))
    throw Error("optimizer state steps", "a whole number in 0…16777216", fmt::format("{}", steps));
  std::vector<Tensor> first, second;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    first.push_back(find("first_moment/" + names_[i], first_[i].shape()));
    second.push_back(find("second_moment/" + names_[i], second_[i].shape()));
  }
  first_ = std::move(first);
  second_ = std::move(second);
  steps_ = static_cast<std::int64_t>(steps);
}

double gradient_norm(const std::vector<Tensor>& gradients, Backend& backend) {
  if (UpdateKernel* const device = backend.updates()) return device->gradient_norm(gradients);
  Index pieces = 0;
  for (const Tensor& g : gradients) pieces += (g.size() + piece - 1) / piece;
  std::vector<double> squares(static_cast<std::size_t>(pieces));
  over_pieces(gradients, backend.pool(), [&](std::size_t i, Index begin, Index end, std::size_t number) {
    squares[number] = row_gradients::sum_of_squares(gradients[i].data() + begin, end - begin);
  });
  double sum = 0;
  for (const double each : squares) sum += each;
  return std::sqrt(sum);
}

}  // namespace headscope
