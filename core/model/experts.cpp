#include "core/model/experts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/nth.h"
#include "core/model/weights.h"
#include "core/tensor/row_queue.h"

namespace headscope {

namespace {

/// body(first, end) of rows [0, n), in parallel.
template <class Body>
void each_rows(ThreadPool& pool, Index n, Body body) {
  constexpr Index tile = 16;
  pool.parallel(static_cast<int>((n + tile - 1) / tile),
                [&](int task, int) { body(task * tile, std::min(n, (task + 1) * tile)); });
}

/// The `count` largest of `values`, the first of equals, in ascending order of their places.
std::vector<std::int32_t> largest(const std::vector<double>& values, int count) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = static_cast<std::ptrdiff_t>(std::min(values.size(), static_cast<std::size_t>(count)));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](std::int32_t a, std::int32_t b) {
    return nth(values, a) != nth(values, b) ? nth(values, a) > nth(values, b) : a < b;
  });
  order.resize(static_cast<std::size_t>(kept));
  std::ranges::sort(order);
  return order;
}

/// Experts outside the groups that are kept cannot be chosen.
void keep_groups(const ExpertConfig& c, std::vector<double>& values) {
  if (c.groups_kept >= c.groups) return;
  const std::size_t width = values.size() / static_cast<std::size_t>(c.groups);
  std::vector<double> best;
  for (std::size_t group = 0; group < static_cast<std::size_t>(c.groups); ++group) {
    const std::vector<double> own(values.begin() + static_cast<std::ptrdiff_t>(group * width),
                                  values.begin() + static_cast<std::ptrdiff_t>((group + 1) * width));
    double sum = 0;
    for (const std::int32_t each : largest(own, c.group_best)) sum += nth(own, each);
    best.push_back(sum);
  }
  const std::vector<std::int32_t> kept = largest(best, c.groups_kept);
  for (std::size_t expert = 0; expert < values.size(); ++expert)
    if (!std::ranges::binary_search(kept, static_cast<std::int32_t>(expert / width)))
      values[expert] = -std::numeric_limits<double>::infinity();
}

void softmax(std::vector<double>& values, std::span<const std::int32_t> over) {
  double most = nth(values, over.front()), total = 0;
  for (const std::int32_t e : over) most = std::max(most, nth(values, e));
  for (const std::int32_t e : over) total += nth(values, e) = std::exp(nth(values, e) - most);
  for (const std::int32_t e : over) nth(values, e) /= total;
}

/// One token's way through a router.
struct Routed {
  std::vector<double> score;         // (expert), as RouterScore says; only of those chosen for softmax_of_chosen
  std::vector<std::int32_t> chosen;  // ascending
  double factor = 1;                 // weight = factor · score
  std::map<std::int32_t, std::vector<double>> near;  // RouterScore::near_best: by who was chosen, the softmax then
};

/// z as score: whoever is best of those left, weighed by a softmax over those left that are nearly as good.
void choose_near_best(const ExpertConfig& c, const std::vector<double>& z, Routed& out) {
  out.score.assign(z.size(), 0.0);
  std::vector<std::int32_t> left(z.size());
  std::iota(left.begin(), left.end(), 0);
  for (int i = 0; i < c.per_token; ++i) {
    const std::int32_t best = *std::ranges::max_element(left, {}, [&](std::int32_t e) { return nth(z, e); });
    std::vector<std::int32_t> near = left;
    std::erase_if(near, [&](std::int32_t e) {
      return (nth(z, best) - nth(z, e)) / std::max(std::abs(nth(z, e)), nth(z, best)) > 2 * c.nearness;
    });
    std::vector<double> shares = z;
    softmax(shares, near);
    for (const std::int32_t e : left)
      if (std::ranges::find(near, e) == near.end()) nth(shares, e) = 0;
    for (const std::int32_t e : out.chosen) nth(shares, e) = 0;
    nth(out.score, best) = nth(shares, best);
    out.near[best] = std::move(shares);
    out.chosen.push_back(best);
    std::erase(left, best);
  }
  std::ranges::sort(out.chosen);
  out.factor = c.scale;
}

Routed route(const ExpertConfig& c, const Tensor& correction, const Tensor& logits, Index token) {
  Routed out;
  std::vector<std::int32_t> all;
  for (Index e = 0; e < logits.dim(1); ++e) {
    out.score.push_back(static_cast<double>(logits.at(token, e)));
    all.push_back(static_cast<std::int32_t>(e));
  }
  if (c.score == RouterScore::near_best) {
    choose_near_best(c, std::vector<double>(out.score), out);
    return out;
  }
  if (c.score == RouterScore::softmax) softmax(out.score, all);
  if (c.score == RouterScore::sigmoid)
    for (double& each : out.score) each = 1 / (1 + std::exp(-each));
  std::vector<double> by = out.score;
  if (correction.defined())
    for (const std::int32_t e : all) nth(by, e) += static_cast<double>(correction.at(e));
  keep_groups(c, by);
  out.chosen = largest(by, c.per_token);
  if (c.score == RouterScore::softmax_of_chosen) softmax(out.score, out.chosen);
  out.factor = c.scale;
  if (c.renormalized) {
    double sum = 0;
    for (const std::int32_t e : out.chosen) sum += nth(out.score, e);
    out.factor /= sum + c.sum_floor;
  }
  return out;
}

/// Adds what a token's weights pass on to its logits.
void route_back(const ExpertConfig& c, const Routed& of, const Tensor& d_weights, const Tensor& output_weight,
                Index token, Tensor& d_logits) {
  const auto own = [&](std::int32_t e) {
    return static_cast<double>(d_weights.at(token, e)) *
           (output_weight.defined() ? static_cast<double>(output_weight.at(e)) : 1.0);
  };
  for (const auto& [e, shares] : of.near)  // dz_j = dw_e · s_e (δ_ej − s_j), s of the softmax in which e was chosen
    for (std::size_t j = 0; j < shares.size(); ++j)
      d_logits.ref(token, static_cast<Index>(j)) +=
          static_cast<float>(of.factor * own(e) * nth(shares, e) * ((std::cmp_equal(j, e) ? 1 : 0) - shares[j]));
  if (!of.near.empty()) return;
  // weight_e = scale · s_e, or scale · s_e ÷ Σ s:  ds_e = factor · (dw_e − Σ_j dw_j s_j ÷ Σ s)
  double mean = 0, sum = 0;
  for (const std::int32_t e : of.chosen) mean += own(e) * nth(of.score, e), sum += nth(of.score, e);
  mean = c.renormalized ? mean / (sum + c.sum_floor) : 0;
  std::vector<double> d_score(of.score.size(), 0.0);
  for (const std::int32_t e : of.chosen) nth(d_score, e) = of.factor * (own(e) - mean);
  double inner = 0;  // Σ ds s, of a softmax
  for (const std::int32_t e : of.chosen) inner += nth(d_score, e) * nth(of.score, e);
  const auto give = [&](std::int32_t e) {
    const double s = nth(of.score, e);
    const double d = c.score == RouterScore::sigmoid ? nth(d_score, e) * s * (1 - s) : s * (nth(d_score, e) - inner);
    d_logits.ref(token, e) += static_cast<float>(d);
  };
  if (c.score == RouterScore::softmax)
    for (std::size_t e = 0; e < of.score.size(); ++e) give(static_cast<std::int32_t>(e));
  else
    for (const std::int32_t e : of.chosen) give(e);
}

/// Adds price · d(E Σ_e load_e · mean softmax_e) / d(logits); loads do not move with the logits.
void balance_back(double price, const std::vector<double>& load, const Tensor& logits, Tensor& d_logits) {
  const auto experts = static_cast<double>(logits.dim(1)), n = static_cast<double>(logits.dim(0));
  for (Index token = 0; token < logits.dim(0); ++token) {
    const std::vector<double> p = router_probabilities(logits, token);
    const double mean = std::inner_product(p.begin(), p.end(), load.begin(), 0.0);
    for (Index e = 0; e < logits.dim(1); ++e)
      d_logits.ref(token, e) += static_cast<float>(price * experts / n * nth(p, e) * (nth(load, e) - mean));
  }
}

/// What one expert makes of the tokens that it takes.
struct Taken {
  Index expert = 0;
  std::vector<std::int32_t> tokens;
  Tensor output;  // (its tokens, d_model)
};

/// Σ over the experts of weight · output, token by token.
Tensor mixed(Backend& backend, const Tensor& weights, std::vector<Taken> parts, Index width) {
  const Index n = weights.dim(0);
  std::vector<std::vector<std::pair<const Taken*, Index>>> of(static_cast<std::size_t>(n));  // by token
  for (const Taken& part : parts)
    for (std::size_t row = 0; row < part.tokens.size(); ++row)
      nth(of, part.tokens[row]).emplace_back(&part, static_cast<Index>(row));
  Tensor out = backend.empty({n, width});
  each_rows(backend.pool(), n, [&](Index begin, Index end) {
    for (Index token = begin; token < end; ++token) {
      float* const to = &out.ref(token, 0);
      std::fill_n(to, width, 0.0f);
      for (const auto& [part, row] : nth(of, token)) {
        const float weight = weights.at(token, part->expert);
        const float* const from = part->output.data() + row * part->output.stride(0);
        for (Index i = 0; i < width; ++i) to[i] += weight * from[i];
      }
    }
  });
  Tape* const tape = backend.tape();
  if (!tape) return out;
  bool active = tape->active(weights);
  for (const Taken& part : parts) active = active || tape->active(part.output);
  if (active)
    tape->record(out, [tape, weights, width, parts = std::move(parts)](const Tensor& d_out) {
      Tape::Slot to_weights{};
      if (tape->active(weights)) {
        to_weights = tape->into(weights);
        if (!to_weights.add)
          for (Index i = 0; i < weights.dim(0); ++i)
            for (Index e = 0; e < weights.dim(1); ++e) to_weights.values.ref(i, e) = 0;
      }
      for (const Taken& part : parts) {
        Tape::Slot to_output{};
        if (tape->active(part.output)) to_output = tape->into(part.output);
        for (std::size_t r = 0; r < part.tokens.size(); ++r) {
          const Index token = part.tokens[r], row = static_cast<Index>(r);
          const float weight = weights.at(token, part.expert);
          const float* const d = d_out.data() + token * d_out.stride(0);
          if (to_weights.values.defined()) {
            double dot = 0;
            for (Index i = 0; i < width; ++i)
              dot += static_cast<double>(d[i]) * static_cast<double>(part.output.at(row, i));
            to_weights.values.ref(token, part.expert) += static_cast<float>(dot);
          }
          if (to_output.values.defined())
            for (Index i = 0; i < width; ++i) {
              float& into = to_output.values.ref(row, i);
              into = weight * d[i] + (to_output.add ? into : 0.0f);
            }
        }
      }
    });
  return out;
}

Tensor sigmoid(Backend& backend, const Tensor& x) {
  Tensor out = backend.empty(x.shape());
  for (Index r = 0; r < x.dim(0); ++r)
    for (Index c = 0; c < x.dim(1); ++c) out.ref(r, c) = 1 / (1 + std::exp(-x.at(r, c)));
  Tape* const tape = backend.tape();
  if (tape && tape->active(x))
    tape->record(out, [tape, x, out](const Tensor& d_out) {
      const Tape::Slot slot = tape->into(x);
      Tensor into = slot.values;
      for (Index r = 0; r < x.dim(0); ++r)
        for (Index c = 0; c < x.dim(1); ++c)
          into.ref(r, c) = d_out.at(r, c) * out.at(r, c) * (1 - out.at(r, c)) + (slot.add ? into.at(r, c) : 0.0f);
    });
  return out;
}

/// g = min(gate, limit), u = clip(up, ± limit):  (u + 1) · g · σ(α g)
Tensor clamped_gate(Backend& backend, double alpha, double limit, const Tensor& gate, const Tensor& up) {
  const auto a = static_cast<float>(alpha), most = static_cast<float>(limit);
  Tensor out = backend.empty(gate.shape());
  const auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  each_rows(backend.pool(), out.dim(0), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      for (Index c = 0; c < out.dim(1); ++c) {
        const float cut = std::min(gate.at(r, c), most);
        out.ref(r, c) = (std::clamp(up.at(r, c), -most, most) + 1) * cut * sigmoid(a * cut);
      }
  });
  Tape* const tape = backend.tape();
  if (tape && (tape->active(gate) || tape->active(up)))
    tape->record(out, [=](const Tensor& d_out) {
      const auto give = [&](const Tensor& to, auto slope) {
        if (!tape->active(to)) return;
        const Tape::Slot slot = tape->into(to);
        Tensor into = slot.values;
        for (Index r = 0; r < into.dim(0); ++r)
          for (Index c = 0; c < into.dim(1); ++c) {
            const float d = d_out.at(r, c) * slope(gate.at(r, c), up.at(r, c));
            into.ref(r, c) = d + (slot.add ? into.at(r, c) : 0.0f);
          }
      };
      give(gate, [=](float gate_at, float up_at) {
        if (gate_at > most) return 0.0f;
        const float s = sigmoid(a * gate_at);
        return (std::clamp(up_at, -most, most) + 1) * (s + a * gate_at * s * (1 - s));
      });
      give(up, [=](float gate_at, float up_at) {
        const float cut = std::min(gate_at, most);
        return std::abs(up_at) > most ? 0.0f : cut * sigmoid(a * cut);
      });
    });
  return out;
}

Tensor through(const ModelConfig& config, const Expert& expert, Backend& backend, const Tensor& x) {
  Tensor hidden;
  if (expert.gate.defined())
    hidden = gated(config, {}, backend, backend.linear(x, expert.gate), backend.linear(x, expert.up));
  else
    hidden = activated(config.activation, {}, backend, backend.linear(x, expert.up));
  return backend.linear(hidden, expert.down);
}

}  // namespace

ExpertLayer expert_layer(const RawExperts& raw,
                         const std::function<Linear(const Tensor&, const Tensor&, const char* role)>& linear) {
  const auto expert = [&](const RawExpert& from) {
    Expert out;
    if (from.gate_weight.defined()) out.gate = linear(from.gate_weight, from.gate_bias, "gate of an expert");
    out.up = linear(from.up_weight, from.up_bias, "input matrix of an expert");
    out.down = linear(from.down_weight, from.down_bias, "output matrix of an expert");
    return out;
  };
  ExpertLayer out{linear(raw.router_weight, raw.router_bias, "router"), raw.correction, {}, {}, {}, {}, {}, {}, {}, {}};
  for (const RawExpert& each : raw.each) out.each.push_back(expert(each));
  if (raw.shared.up_weight.defined()) out.shared = expert(raw.shared);
  if (raw.shared_gate.defined()) out.shared_gate = linear(raw.shared_gate, {}, "gate of the shared expert");
  return out;
}

std::vector<double> router_probabilities(const Tensor& logits, Index token) {
  std::vector<double> out;
  std::vector<std::int32_t> all(static_cast<std::size_t>(logits.dim(1)));
  std::iota(all.begin(), all.end(), 0);
  for (Index e = 0; e < logits.dim(1); ++e) out.push_back(static_cast<double>(logits.at(token, e)));
  softmax(out, all);
  return out;
}

RouterBalance router_balance(const Tensor& logits, const Tensor& weights) {
  const auto experts = static_cast<std::size_t>(weights.dim(1));
  RouterBalance out{std::vector<Index>(experts, 0), std::vector<double>(experts, 0.0),
                    std::vector<double>(experts, 0.0), 0};
  double all = 0;
  for (Index token = 0; token < weights.dim(0); ++token) {
    const std::vector<double> p = router_probabilities(logits, token);
    for (std::size_t e = 0; e < experts; ++e) {
      const bool taken = weights.at(token, static_cast<Index>(e)) != 0;
      out.tokens[e] += taken;
      all += taken;
      out.probability[e] += p[e] / static_cast<double>(weights.dim(0));
    }
  }
  for (std::size_t e = 0; e < experts; ++e) {
    out.load[e] = all > 0 ? static_cast<double>(out.tokens[e]) / all : 0;
    out.value += static_cast<double>(experts) * out.load[e] * out.probability[e];
  }
  return out;
}

namespace {
/// Who comes to an expert that is full is taken by nobody. Those who were turned away count as well.
void turn_away(const ExpertConfig& config, std::span<const Index> lengths, std::vector<Routed>& routes,
               Tensor& weights) {
  Index token = 0;
  for (const Index length : lengths) {
    std::vector<int> came(static_cast<std::size_t>(config.count), 0);
    for (const Index end = token + length; token < end; ++token)
      std::erase_if(nth(routes, token).chosen, [&](std::int32_t e) {
        const bool full = ++nth(came, e) > config.capacity;
        if (full) weights.ref(token, e) = 0;
        return full;
      });
  }
}
}  // namespace

Tensor router_weights(const ExpertConfig& config, const Tensor& correction, Backend& backend, const Tensor& logits,
                      double balance_price, const Tensor& output_weight, std::span<const Index> lengths) {
  auto routes = std::make_shared<std::vector<Routed>>(static_cast<std::size_t>(logits.dim(0)));
  Tensor out = backend.empty(logits.shape());
  std::ranges::fill(out.mutable_values(), 0.0f);
  each_rows(backend.pool(), logits.dim(0), [&](Index begin, Index end) {
    for (Index token = begin; token < end; ++token) {
      Routed& routed = nth(*routes, token) = route(config, correction, logits, token);
      for (const std::int32_t e : routed.chosen)
        out.ref(token, e) = static_cast<float>(routed.factor * nth(routed.score, e)) *
                            (output_weight.defined() ? output_weight.at(e) : 1.0f);
    }
  });
  const Index whole = logits.dim(0);
  if (config.capacity > 0) turn_away(config, lengths.empty() ? std::span(&whole, 1) : lengths, *routes, out);
  Tape* const tape = backend.tape();
  if (tape && tape->active(logits))
    tape->record(out, [tape, logits, config, routes, balance_price, output_weight,
                       load = balance_price != 0 ? router_balance(logits, out).load
                                                 : std::vector<double>()](const Tensor& d_weights) {
      const Tape::Slot slot = tape->into(logits);
      Tensor into = slot.values;
      for (Index token = 0; token < logits.dim(0); ++token) {
        for (Index e = 0; !slot.add && e < logits.dim(1); ++e) into.ref(token, e) = 0;
        route_back(config, nth(*routes, token), d_weights, output_weight, token, into);
      }
      if (balance_price != 0) balance_back(balance_price, load, logits, into);
    });
  return out;
}

namespace {
/// 1 where an expert takes a token.
Tensor taken(const Tensor& weights) {
  Tensor out = Tensor::zeros(weights.shape());
  for (Index i = 0; i < out.dim(0); ++i)
    for (Index e = 0; e < out.dim(1); ++e) out.ref(i, e) = weights.at(i, e) != 0 ? 1.0f : 0.0f;
  return out;
}
}  // namespace

Tensor through_experts(const ModelConfig& config, const ExpertLayer& experts, Backend& backend, const Tensor& x,
                       const Tensor& weights) {
  std::vector<Taken> parts;
  for (std::size_t e = 0; e < experts.each.size(); ++e) {
    Taken part{static_cast<Index>(e), {}, {}};
    for (Index token = 0; token < x.dim(0); ++token)
      if (weights.at(token, part.expert) != 0) part.tokens.push_back(static_cast<std::int32_t>(token));
    if (part.tokens.empty()) continue;
    part.output = backend.gather(x, part.tokens);
    if (config.experts.weigh_input) {  // the row itself times its weight
      Taken rows{0, std::vector<std::int32_t>(part.tokens.size()), part.output};
      std::iota(rows.tokens.begin(), rows.tokens.end(), 0);
      const Tensor own = backend.gather(weights, part.tokens).slice(1, part.expert, part.expert + 1);
      part.output = mixed(backend, own, {rows}, x.dim(1));
    }
    part.output = through(config, experts.each[e], backend, part.output);
    parts.push_back(std::move(part));
  }
  const Tensor out = mixed(backend, config.experts.weigh_input ? taken(weights) : weights, std::move(parts), x.dim(1));
  if (!experts.shared.up.defined()) return out;
  Tensor shared = through(config, experts.shared, backend, x);
  if (experts.shared_gate.defined()) {
    Taken all{0, std::vector<std::int32_t>(static_cast<std::size_t>(x.dim(0))), shared};
    std::iota(all.tokens.begin(), all.tokens.end(), 0);
    shared = mixed(backend, sigmoid(backend, backend.linear(x, experts.shared_gate)), {all}, x.dim(1));
  }
  return backend.add(out, shared);
}

Tensor gated(const ModelConfig& config, const Backend::Xielu& xielu, Backend& backend, const Tensor& gate,
             const Tensor& up, RowQueue* later) {
  if (config.gate_limit > 0 && later) later->run();
  if (config.gate_limit > 0) return clamped_gate(backend, config.gate_alpha, config.gate_limit, gate, up);
  return backend.multiply(activated(config.activation, xielu, backend, gate, later), up, later);
}

}  // namespace headscope
