#include "core/model/state_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>

#include "core/attention/linear_cells.h"
#include "core/attention/state_patterns.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/trace/row_stats.h"

namespace headscope {

namespace {

/// x cut to [least, most]; the gradient of what was cut is 0.
Tensor limited(Backend& backend, const Tensor& x, const StateSpaceConfig& c) {
  const auto least = static_cast<float>(c.least_step), most = static_cast<float>(c.most_step);
  if (c.least_step <= 0 && std::isinf(c.most_step)) return x;  // steps are above 0
  const Tensor in = x.packed();
  Tensor out = backend.empty(x.shape());
  std::ranges::transform(in.values(), out.mutable_values().begin(),
                         [&](float value) { return std::clamp(value, least, most); });
  if (Tape* const tape = backend.tape(); tape && tape->active(x))
    tape->record(out, [&backend, tape, x, in, least, most](const Tensor& d_out) {
      Tensor passed = d_out.copy();
      for (Index i = 0; i < passed.size(); ++i)
        if (in.data()[i] < least || in.data()[i] > most) passed.mutable_data()[i] = 0;
      backend.accumulate(passed, tape->into(x));
    });
  return out;
}

/// What mixes the tokens: with rates by the delta rule, where b are its keys, c its queries and x its values.
struct Taking {
  StateMixing states;
  Tensor beta;
  Tensor kernel, bias;  ///< of a short convolution, of which b, c and x are channel by channel

  GatedDelta delta() const { return {states.c, states.b, states.x, states.delta, states.a, beta, states.lengths}; }
  ShortConvolution convolution() const {
    const Shape flat{states.x.dim(0), states.x.dim(1)};
    return {states.b.reshape(flat), states.c.reshape(flat), states.x.reshape(flat), kernel, bias, states.lengths};
  }
  LinearMixing linear(Backend& backend) const {
    if (kernel.defined()) return {convolution(), convolution_offset(backend, convolution())};
    return beta.defined() ? LinearMixing(delta()) : LinearMixing(states);
  }
  /// What patterns are made of alone, in memory of its own: x is there by its shape.
  Taking of_patterns() const {
    Taking out = *this;
    StateMixing& s = out.states;
    s.d = {};
    s.x = Tensor::zeros({s.x.dim(0), s.x.dim(1), 1});
    for (Tensor* each : {&s.delta, &s.a, &s.b, &s.c, &out.beta})
      if (each->defined()) *each = each->copy();
    return out;
  }
  Tensor mixed(Backend& backend, Tensor* state, const std::stop_token& stop) const {
    return beta.defined() ? mix_delta(backend, delta(), state, stop) : mix_states(backend, states, state, stop);
  }
};

/// Which earlier tokens count for a head, and whether these are all, of the rows of a pass and of those before them.
struct Visible {
  std::shared_ptr<const AttentionRule> rule;
  bool all = true, all_before = true;
};

/// Which of the keys a row sees under `rule`. Throws Error where it says more than that.
std::vector<char> seen_keys(const AttentionRule& rule, Index query, Index keys, const std::string& where) {
  const KeyRange range = rule.keys(query, keys);
  if (range.size() > 0 && range.end > query + 1)
    throw Error(
        where, "a mask under which no token sees a later one", rule.describe(),
        "such a layer holds what came before, and nothing of what comes; \"(…) and causal\" leaves the earlier ones");
  if (rule.factor(query) != 1 || rule.cap(query) > 0 || std::isfinite(rule.sink(query)))
    throw Error(where, "which earlier tokens a head sees", "what is done to their scores: " + rule.describe(),
                "what is no attention has no scores and no softmax");
  std::vector<float> bias(static_cast<std::size_t>(range.size()), 0.0f);
  if (!rule.plain()) rule.apply(query, range.begin, bias);
  std::vector<char> seen(static_cast<std::size_t>(keys), 0);
  for (Index key = range.begin; key < range.end; ++key) {
    const float added = nth(bias, key - range.begin);
    if (std::isfinite(added) && added != 0)
      throw Error(where, "which earlier tokens a head sees", "what is added to their scores: " + rule.describe(),
                  "what is no attention has no scores and no softmax");
    nth(seen, key) = std::isfinite(added);
  }
  return seen;
}

class StateMixer {
 public:
  StateMixer(const StateSpaceInput& in, Backend& backend, Tap* tap, const std::stop_token& stop)
      : in_(in),
        c_(in.config),
        d_(c_.dims),
        s_(*c_.state_space),
        w_(in.weights),
        b_(backend),
        tap_(tap),
        stop_(stop),
        n_(in.x.dim(0)),
        heads_(d_.heads_of(in.layer)) {}

  StateSpaceOutput run() {
    const bool convolves = s_.lane == StateSpaceConfig::Lane::convolution;
    Tensor gate;
    if (!convolves) gate = tap(SiteKind::mixer_gate, b_.linear(in_.x, w_.gate));
    Taking mixing = convolves ? gated_channels(b_.linear(in_.x, w_.x)) : made(b_.linear(in_.x, w_.x));
    if (!convolves) mixing.states.a = decay_rates(b_, w_.decay_log);
    mixing.states.d = w_.d;
    mixing.states.lengths = in_.lengths;
    Taking whole = mixing;  // of all tokens, those in the cache too
    const Index before = in_.cache ? in_.cache->length() : 0;
    Tensor y;
    if (convolves) {
      y = convolved(mixing, whole);
    } else if (in_.cache) {
      y = go_on(mixing, whole);
    } else {
      y = mixing.mixed(b_, nullptr, stop_);
    }
    y = patterned(whole, before, y);
    StateSpaceOutput out;
    out.maps = std::move(maps_);
    const Tensor z = tap(SiteKind::z, y.reshape({n_, heads_, d_.d_inner / heads_}));
    out.gated = tap(SiteKind::mixer_gated, convolves ? z : gated(z.reshape({n_, d_.d_inner}), gate).reshape(z.shape()));
    return out;
  }

 private:
  Tensor tap(SiteKind kind, const Tensor& value) const {
    const Site site{kind, in_.layer};
    if (!tap_ || !tap_->wants(site)) return value;
    const Tensor seen = tap_->at(site, value);
    if (seen.shape() != value.shape())
      throw Error(name(site), "an edit of shape " + value.shape().str(), seen.shape().str());
    return seen;
  }
  static Tensor side_by_side(const Tensor& x) { return x.stride(-1) == 1 ? x : x.copy(); }

  /// x, Δ, B and C of these tokens, of what the convolution reads of them.
  Taking made(Tensor read) {
    read_ = read;
    const Index inner = d_.d_inner, states = Index{d_.state_groups} * d_.d_state;
    const bool delta = s_.lane == StateSpaceConfig::Lane::delta;
    const Tensor before = in_.cache ? in_.cache->read_before(in_.layer, s_.convolution - 1) : Tensor();
    const Tensor convolved = activated(
        c_.state_activation.value_or(c_.activation), {}, b_,
        s_.steady ? read : causal_convolution(b_, read, w_.convolution, w_.convolution_bias, before, in_.lengths));
    const bool channels = s_.lane == StateSpaceConfig::Lane::channel;
    Tensor x = side_by_side(tap(SiteKind::mixer_x, channels ? convolved
                                                   : delta  ? convolved.slice(1, 2 * states, 2 * states + inner)
                                                            : convolved.slice(1, 0, inner)));
    Tensor few, b, c;  // what Δ is made of
    if (channels) {
      const Tensor all = b_.linear(x, w_.select);
      few = all.slice(1, 0, s_.step_rank);
      b = all.slice(1, s_.step_rank, s_.step_rank + states);
      c = all.slice(1, s_.step_rank + states, s_.step_rank + 2 * states);
      if (s_.select_norms) {
        few = normalized(c_, w_.step_norm, b_, side_by_side(few));
        b = normalized(c_, w_.b_norm, b_, side_by_side(b));
        c = normalized(c_, w_.c_norm, b_, side_by_side(c));
      }
    } else if (delta) {
      few = in_.x;
      c = convolved.slice(1, 0, states);
      b = convolved.slice(1, states, 2 * states);
    } else {
      few = in_.x;
      b = convolved.slice(1, inner, inner + states);
      c = convolved.slice(1, inner + states, inner + 2 * states);
    }
    Taking taking;
    StateMixing& out = taking.states;
    if (delta)
      taking.beta =
          tap(SiteKind::mixer_beta, sigmoids(b_, b_.linear(in_.x, w_.rate), static_cast<float>(s_.most_rate)));
    out.delta =
        tap(SiteKind::mixer_delta, s_.steady ? Tensor::full({n_, d_.lanes}, 1.0f)
                                             : limited(b_, softplus(b_, b_.linear(few, w_.step), w_.delta_bias), s_));
    const Shape by_group{n_, d_.state_groups, d_.d_state};
    if (delta) {
      constexpr double small = 1e-6;  // Flash Linear Attention's
      b = unit_rows(b_, side_by_side(b).reshape(by_group), small);
      c = unit_rows(b_, side_by_side(c).reshape(by_group), small, 1 / std::sqrt(static_cast<float>(d_.d_state)));
    }
    out.b = side_by_side(tap(SiteKind::mixer_b, b.reshape(by_group)));
    out.c = side_by_side(tap(SiteKind::mixer_c, c.reshape(by_group)));
    out.x = x.reshape({n_, d_.lanes, inner / d_.lanes});
    return taking;
  }

  /// B, C and x of a short convolution.
  Taking gated_channels(const Tensor& all) {
    const Index inner = d_.d_inner;
    const Shape apart{n_, inner, 1};
    Taking out;
    out.kernel = w_.convolution, out.bias = w_.convolution_bias;
    out.states.b = side_by_side(tap(SiteKind::mixer_b, all.slice(1, 0, inner).reshape(apart)));
    out.states.c = side_by_side(tap(SiteKind::mixer_c, all.slice(1, inner, 2 * inner).reshape(apart)));
    out.states.x = side_by_side(tap(SiteKind::mixer_x, all.slice(1, 2 * inner, 3 * inner))).reshape(apart);
    return out;
  }

  /// y of these tokens behind those in the cache, if there is one; `whole` becomes the mixing of all of them.
  Tensor convolved(const Taking& taking, Taking& whole) {
    const ShortConvolution now = taking.convolution();
    if (!in_.cache) return convolve_gated(b_, now).reshape(taking.states.x.shape());
    KvCache& cache = *in_.cache;
    const Tensor y = convolve_gated(b_, now, cache.read_before(in_.layer, s_.convolution - 1));
    const KvCache::Taken all =
        cache.append(in_.layer, {b_.multiply(now.b, now.x), taking.states.x, {}, taking.states.b, {}, taking.states.c});
    whole.states.x = all.x, whole.states.b = all.b;
    whole.states.c = all.c.defined() ? all.c : behind(taking.states.c, cache.length());
    return y.reshape(taking.states.x.shape());
  }

  /// As many rows of 0, which nobody asks for, before c.
  Tensor behind(const Tensor& c, Index before) const {
    Tensor out = Tensor::zeros({before + n_, c.dim(1), c.dim(2)});
    for (Index i = 0; i < n_; ++i)
      for (Index g = 0; g < c.dim(1); ++g)
        for (Index j = 0; j < c.dim(2); ++j) out.ref(before + i, g, j) = c.at(i, g, j);
    return out;
  }

  /// y of these tokens behind those in the cache; `all_taken` becomes the mixing of all of them.
  Tensor go_on(const Taking& taking, Taking& all_taken) {
    const StateMixing& mixing = taking.states;
    StateMixing& whole = all_taken.states;
    KvCache& cache = *in_.cache;
    const Index before = cache.length();
    const KvCache::Taken all =
        cache.append(in_.layer, {read_, mixing.x, mixing.delta, mixing.b, taking.beta, mixing.c});
    whole.x = all.x, whole.delta = all.delta, whole.b = all.b, all_taken.beta = all.beta;
    whole.c = all.c.defined() ? all.c : behind(mixing.c, before);

    // A token after another from the last state that is known, which is further back where the text was cut back. It
    // halts where these tokens begin, and at the state that is kept for the next time.
    auto [at, state] = cache.state(in_.layer);
    const Index end = before + n_, back = KvCache::further_back(static_cast<int>(end));
    std::vector<Tensor> parts;
    for (const Index halt : {std::min(before, back), std::max(before, back), end}) {
      if (halt <= at) continue;
      const Tensor y = of_text(all_taken, at, halt - at).mixed(b_, &state, stop_);
      if (at >= before) parts.push_back(y);
      at = static_cast<int>(halt);
      if (halt == back || halt == end) cache.keep_state(in_.layer, state, at);
    }
    return joined(parts);
  }

  Tensor joined(const std::vector<Tensor>& parts) {
    if (parts.size() == 1) return parts[0];
    Tensor all = b_.empty({n_, parts[0].dim(1), parts[0].dim(2)});
    float* to = all.mutable_data();
    for (const Tensor& part : parts) to = std::ranges::copy(part.values(), to).out;
    return all;
  }

  /// y once patterns were looked at, and changed, text by text.
  Tensor patterned(const Taking& whole, Index before, Tensor y) {
    const std::vector<Visible> visible = ask_rules(before);
    const bool masked = std::ranges::any_of(visible, [](const Visible& each) { return !each.all; });
    const bool hides = masked || std::ranges::any_of(visible, [](const Visible& each) { return !each.all_before; });
    const bool watched = tap_ && tap_->wants({SiteKind::pattern, in_.layer});
    if (!masked && !watched && in_.storage == MapStorage::none) return y;
    const std::vector<Index> one{whole.states.x.dim(0)};
    const std::span<const Index> lengths = in_.lengths.empty() ? std::span<const Index>(one) : in_.lengths;
    Tape* const tape = b_.tape();
    Index begin = 0;
    for (std::size_t text = 0; text < lengths.size(); begin += lengths[text], ++text) {
      const bool mapped = in_.storage != MapStorage::none && (in_.text < 0 || in_.text == static_cast<int>(text));
      if (!mapped && !masked && !watched) continue;
      const Taking taken = lengths.size() == 1 ? alone(whole) : of_text(whole, begin, lengths[text]);
      // Few rows behind a cache, of which alone there will be maps, take less than what they are made of.
      const bool all_rows = before == 0 || keeps_rows();
      if (in_.storage == MapStorage::factored && !hides && !watched && all_rows && !tape) {
        add_computed_maps(taken.of_patterns().linear(b_), visible, before);
        continue;
      }
      const LinearMixing own = taken.linear(b_);
      const Tensor pattern = mean_patterns(b_, own, heads_, {before, lengths[text]}, stop_);
      Tensor now = masked ? hidden(pattern, visible, before) : pattern;
      now = tap(SiteKind::pattern, now).packed();
      const bool changed = now.data() != pattern.data();
      if (changed && tape && lengths.size() > 1)
        throw Error(where(0), "one text at a time for gradients of a pass whose patterns are edited",
                    fmt::format("{}", lengths.size()));
      if (changed && tape) {
        y = mixed_by(b_, own, pattern, now, stop_);
      } else if (changed) {
        if (lengths.size() == 1) y = y.copy();
        Tensor rows = lengths.size() == 1 ? y : y.slice(0, begin, begin + lengths[text]);
        remix(b_, own, pattern, now, before, rows, stop_);
      } else if (tape && tape->active(now)) {
        y = with_pattern(b_, own, now, y);
      }
      if (mapped) add_maps(now, visible, before);
    }
    return y;
  }

  static Taking alone(Taking one) {
    one.states.lengths = {};
    return one;
  }
  static Taking of_text(Taking all, Index begin, Index length) {
    StateMixing& s = all.states;
    for (Tensor* each : {&s.x, &s.delta, &s.b, &s.c, &all.beta})
      if (each->defined()) *each = each->slice(0, begin, begin + length);
    return alone(std::move(all));
  }

  std::string where(int head) const { return fmt::format("{}: head {}.{}", c_.name, in_.layer, head); }

  /// The rule of every head, as the tap has it; empty without one.
  std::vector<Visible> ask_rules(Index before) const {
    std::vector<Visible> visible;
    const auto usual = causal_rule();
    Index longest = n_ + before;
    if (!in_.lengths.empty()) longest = *std::ranges::max_element(in_.lengths);
    for (int head = 0; tap_ && head < heads_; ++head) {
      const HeadRule rule = tap_->head_rule({in_.layer, head}, HeadRule{usual, 1});
      if (rule.scale != 1 || rule.cap != 0 || rule.slope != 0 || std::isfinite(rule.sink) || rule.buckets)
        throw Error(where(head), "a head without scores", "an edit of its scores",
                    "what is no attention has no scores and no softmax");
      Visible& own = visible.emplace_back(Visible{rule.rule});
      const bool all_rows = keeps_rows() && in_.storage == MapStorage::factored;
      for (Index query = all_rows ? 0 : before; rule.rule != usual && query < longest; ++query) {
        const std::vector<char> seen = seen_keys(*rule.rule, query, longest, where(head));
        bool& all = query < before ? own.all_before : own.all;
        all = all && std::all_of(seen.begin(), seen.begin() + query + 1, [](char each) { return each != 0; });
      }
    }
    return visible;
  }

  /// The pattern with what the heads' rules hide at 0.
  Tensor hidden(const Tensor& pattern, const std::vector<Visible>& visible, Index before) const {
    Tensor out = pattern.copy();
    for (Index head = 0; head < out.dim(0); ++head)
      for (Index i = 0; !nth(visible, head).all && i < out.dim(1); ++i) {
        const std::vector<char> seen =
            seen_keys(*nth(visible, head).rule, before + i, out.dim(2), where(static_cast<int>(head)));
        for (Index key = 0; key <= before + i; ++key)
          if (!nth(seen, key)) out.ref(head, i, key) = 0;
      }
    return out;
  }

  void add_maps(const Tensor& pattern, const std::vector<Visible>& visible, Index before) {
    for (int head = 0; head < heads_; ++head) {
      const Tensor weights = pattern.select(0, head);
      const auto rule = visible.empty() ? causal_rule() : nth(visible, head).rule;
      AttentionMap::Place place{in_.layer, head, head, before, MapKind::effective};
      if (!keeps_rows()) {
        maps_.push_back(
            AttentionMap::dense(place, weights, rule, stats_of_weights(RowBlocks(weights), in_.links, before)));
        continue;
      }
      place.offset = 0;
      const AttentionMap* const last = before > 0 ? &nth(in_.before, head) : nullptr;
      const RowBlocks rows = last ? dense_rows(*last, before).with(before, weights) : RowBlocks(weights);
      const KnownRows known{last ? &last->stats() : nullptr, before, true};
      maps_.push_back(AttentionMap::dense(place, rows, rule, stats_of_weights(rows, in_.links, 0, known)));
    }
  }

  /// Those that a map has, and may give away: of one that was computed, since the text was longer or less was hidden,
  /// the first `rows`.
  static RowBlocks dense_rows(const AttentionMap& map, Index rows) {
    return map.is_dense() ? map.weights() : RowBlocks(map.tile({0, rows}, {0, rows}));
  }

  /// Whether maps are of all rows of a text that goes on.
  bool keeps_rows() const { return in_.cache && in_.cache->keeps_queries(); }

  /// Maps whose weights do not stand in memory: the rows whose sums are not known pass by once.
  void add_computed_maps(LinearMixing own, const std::vector<Visible>& visible, Index before) {
    constexpr Index cells_at_once = Index{1} << 23, fewest_rows = 64;
    const Index n = own.x.dim(0), step = std::max(fewest_rows, cells_at_once / (n * heads_));
    struct Head {
      Head(Index length, const TokenLinks* links, const KnownRows& known)
          : sums(length, length, 0, links, false, {}, known) {}
      HeadStatsBuilder sums;
      std::optional<HeadStatsBuilder::Tile> tile;
    };
    std::deque<Head> heads;
    for (int head = 0; head < heads_; ++head)
      heads.emplace_back(n, in_.links,
                         KnownRows{before > 0 ? &nth(in_.before, head).stats() : nullptr, before, keeps_rows()});
    Index first = n;
    for (const Head& each : heads) first = std::min(first, each.sums.first_row());
    for (Index begin = first; begin < n; begin += step) {
      const KeyRange rows{begin, std::min(begin + step, n)};
      const Tensor pattern = mean_patterns(b_, own, heads_, rows, stop_);
      b_.pool().parallel(heads_, [&](int head, int) {
        auto& [sums, tile] = nth(heads, head);
        std::vector<float> row(static_cast<std::size_t>(n), 0.0f);
        for (Index t = rows.begin; t < rows.end; ++t) {
          if (t % sums.tile_rows() == 0) tile.emplace(sums, static_cast<int>(t / sums.tile_rows()));
          std::copy_n(&pattern.data()[(head * rows.size() + t - rows.begin) * rows.end], rows.end, row.begin());
          tile->weights(t, row);
        }
      });
    }
    const auto cells = cells_of(std::move(own), heads_);
    for (int head = 0; head < heads_; ++head) {
      nth(heads, head).tile.reset();
      maps_.push_back(AttentionMap::computed({in_.layer, head, head, 0, MapKind::effective}, nth(cells, head),
                                             visible.empty() ? causal_rule() : nth(visible, head).rule,
                                             nth(heads, head).sums.finish()));
    }
  }

  /// z ∘ silu(gate), or σ(gate), or the norm of that, by groups; of the delta rule the norm of every lane ∘ silu(gate).
  Tensor gated(const Tensor& z, const Tensor& gate) {
    if (s_.lane == StateSpaceConfig::Lane::delta) {
      const Tensor normed = normalized(c_, w_.norm, b_, z.reshape({n_ * d_.lanes, d_.d_inner / d_.lanes}));
      return b_.multiply(normed.reshape(gate.shape()), b_.activate(Backend::Unary::silu, gate));
    }
    const Index groups = s_.one_norm ? 1 : d_.state_groups, width = Index{d_.d_inner} / groups;
    const auto normed = [&](const Tensor& x) {
      return w_.norm.gain.defined() ? normalized(c_, w_.norm, b_, x.reshape({n_ * groups, width})) : x;
    };
    const Tensor open = s_.sigmoid_gate ? sigmoids(b_, gate, 1) : b_.activate(Backend::Unary::silu, gate);
    if (s_.norm_before_gate) return b_.multiply(normed(z).reshape(gate.shape()), open);
    return normed(b_.multiply(z, open));
  }

  const StateSpaceInput& in_;
  const ModelConfig& c_;
  const ModelDims& d_;
  const StateSpaceConfig& s_;
  const StateSpaceLayer& w_;
  Backend& b_;
  Tap* const tap_;
  const std::stop_token& stop_;
  const Index n_;
  const int heads_;  // of this layer
  Tensor read_;      // by the convolution
  std::vector<AttentionMap> maps_;
};

}  // namespace

StateSpaceOutput state_space(const StateSpaceInput& input, Backend& backend, Tap* tap, const std::stop_token& stop) {
  return StateMixer(input, backend, tap, stop).run();
}

}  // namespace headscope
