// Means of α over lanes by products of matrices. With S the sum of Δ, a lane's
//   α_ts = Σ_i C_t,i exp(a_i (S_t − S_r)) · Δ_s B_s,i exp(a_i (S_r − S_s)) for any r with s ≤ r < t:
// rows behind a token r times columns up to it are one product over lanes and states, and both its factors are decays,
// so that nothing overflows. A tree of runs of 2^j leaves has a product at every middle; within a leaf reaches are
// decayed step by step. A node's factors are its halves', decayed over the other half.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/state_lanes.h"
#include "core/attention/state_mixing.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/tensor/panels.h"

namespace headscope {
namespace {

using state_lanes::leaf_tokens;

/// Leaves lie in pairs, of which each takes whole panels.
constexpr Index pair_tokens = 2 * leaf_tokens;
constexpr Index bundle_depth = 256;  ///< of a product: lanes · N at once
// So much of a product's factors stays in the nearest caches.
constexpr Index strip_tokens = 32, tile_tokens = 256;

class MeanOfLanes {
 public:
  MeanOfLanes(const StateMixing& in, Index begin, Index end, Index first, Tensor out, const std::stop_token& stop)
      : in_(in),
        stop_(stop),
        n_(in.x.dim(0)),
        first_(first),
        states_(in.b.dim(2)),
        panel_(panels::width()),
        out_(std::move(out)) {
    assert(in.lengths.size() < 2 && first >= 0 && first <= n_ && begin >= 0 && begin < end && end <= in.x.dim(1));
    assert(n_ == 0 ||
           (in.delta.select(0, 0).contiguous() && in.b.select(0, 0).contiguous() && in.c.select(0, 0).contiguous()));
    assert(pair_tokens % panel_ == 0);
    most_lanes_ = std::min(end - begin, std::max<Index>(1, bundle_depth / states_));
    const Index depth = filled_up(most_lanes_ * states_), pairs = (n_ + pair_tokens - 1) / pair_tokens;
    if (!out_.defined()) out_ = Tensor::uninitialized({n_ - first, n_});
    assert(out_.contiguous() && out_.shape() == Shape({n_ - first, n_}));
    std::ranges::fill(out_.mutable_values(), 0.0f);
    partial_ = Tensor::zeros({(n_ + leaf_tokens - 1) / leaf_tokens - first / leaf_tokens, state_lanes::partial_size()});
    left_ = Tensor::uninitialized({n_ - first, depth});
    right_ = Tensor::uninitialized({pairs * pair_tokens, depth});
    leaf_ = Tensor::zeros({3, leaf_tokens, depth});
    ends_ = Tensor::uninitialized({pair_tokens, depth});
    half_ = Tensor::uninitialized({panels::packed_size(depth, leaf_tokens)});
    passed_ = Tensor::zeros({depth});
    spans_.resize(static_cast<std::size_t>(most_lanes_));
    a_ = Tensor::uninitialized({most_lanes_, states_});
    if (first == n_) return;
    for (Index lane = begin; lane < end; lane += most_lanes_) bundle(lane, std::min(most_lanes_, end - lane));
    finish(static_cast<float>(end - begin));
  }

  Tensor out() const { return out_; }

 private:
  static Index filled_up(Index depth) {
    constexpr Index step = state_lanes::depth_step;
    return (depth + step - 1) / step * step;
  }

  void bundle(Index lane, Index lanes) {
    const Index depth = filled_up(lanes * states_), per_group = in_.x.dim(1) / in_.b.dim(1);
    if (depth != of_.depth || lanes != of_.lanes)  // zeros where no lane fills depth up
      for (Tensor* each : {&leaf_, &passed_}) std::ranges::fill(each->mutable_values(), 0.0f);
    place_.clear();
    slowest_.clear();
    sums_.assign(static_cast<std::size_t>(lanes), {Sum{}});
    for (Index l = 0; l < lanes; ++l) {
      place_.push_back((lane + l) / per_group * states_);
      for (Index i = 0; i < states_; ++i) a_.ref(l, i) = in_.a.at(lane + l, i % in_.a.dim(1));
      slowest_.push_back(-static_cast<double>(std::ranges::max(a_.select(0, l).values())));
    }
    std::vector<Sum> sum(static_cast<std::size_t>(lanes));
    for (Index t = 0; t < n_; ++t) {
      const float* const delta = in_.delta.data() + t * in_.delta.stride(0) + lane;
      for (Index l = 0; l < lanes; ++l) {
        const auto step = static_cast<double>(delta[l]);
        std::isnan(step) ? static_cast<void>(++nth(sum, l).unknown) : static_cast<void>(nth(sum, l).known += step);
      }
      if ((t + 1) % leaf_tokens == 0)
        for (Index l = 0; l < lanes; ++l) nth(sums_, l).push_back(nth(sum, l));
    }
    of_ = {lanes,
           states_,
           depth,
           {in_.delta.data() + lane, in_.delta.stride(0)},
           {in_.b.data(), in_.b.stride(0)},
           {in_.c.data(), in_.c.stride(0)},
           a_.data(),
           place_.data()};
    Index size = pair_tokens;
    while (size < n_) size *= 2;
    node(0, size);
  }

  /// α of the tokens [begin, begin + size) among each other, as far as there are such. Left factors are decayed since
  /// before `begin` then, right ones until the last token.
  void node(Index begin, Index size) {
    if (begin >= n_) return;
    if (stop_.stop_requested()) throw Cancelled();
    if (size == pair_tokens) return pair(begin);
    const Index middle = begin + size / 2, end = begin + size;
    node(begin, size / 2);
    node(middle, size / 2);
    product(middle, end, right(begin), begin);
    decay_left(begin, middle, end);
    if (end >= n_) return;
    decays(middle, end);
    state_lanes::decay_panels(right(begin), size / 2 / panel_, of_.depth, panel_, passed_.data());
  }

  /// The same of two leaves, whose right factors become panels.
  void pair(Index begin) {
    const Index middle = begin + leaf_tokens, end = middle + leaf_tokens;
    leaf(begin, 0);
    if (middle >= n_) return;
    leaf(middle, leaf_tokens);
    if (end > first_) {
      pack(leaf_tokens, half_.mutable_data());
      product(middle, end, half_.data(), begin);
      decay_left(begin, middle, end);
    }
    if (end >= n_) return;
    decays(middle, end);
    state_lanes::decay_rows(ends_.mutable_data(), leaf_tokens, of_.depth, passed_.data());
    pack(pair_tokens, right(begin));
  }

  void pack(Index tokens, float* to) const {
    panels::pack(Tensor::borrow(ends_.data(), {tokens, of_.depth}, {}).transpose(0, 1), to);
  }

  /// The same of a leaf; its right factors are rows `at` on of ends_.
  void leaf(Index begin, Index at) {
    const Index end = std::min(begin + leaf_tokens, n_), skip = std::max<Index>(0, first_ - begin);
    const Index size = leaf_tokens * of_.depth;
    float* const own = leaf_.mutable_data();
    const state_lanes::Factors factors{own, own + size, own + 2 * size};
    state_lanes::Bundle from = of_;
    from.delta = from.delta.from(begin), from.b = from.b.from(begin), from.c = from.c.from(begin);
    float* const ends = ends_.mutable_data() + at * of_.depth;
    if (end <= first_) return state_lanes::until(from, end - begin, own, ends);  // no row asks for more
    state_lanes::spread(from, end - begin, factors);
    state_lanes::among(factors, end - begin, skip, of_.depth, partial(begin));
    if (begin > 0) state_lanes::since(factors, end - begin, skip, of_.depth, left(begin + skip));
    if (end < n_) state_lanes::until(factors, end - begin, of_.depth, ends);
  }

  /// Rows [middle, end) times the columns [begin, middle).
  void product(Index middle, Index end, const float* columns, Index begin) {
    struct Strip {
      Index begin, end, seen;  ///< columns before `seen` have all gone
    };
    std::vector<Strip> strips;
    Index seen = begin;
    for (Index t = std::max(middle, first_), next = 0; t < std::min(end, n_); t = next) {
      const Index whole = t / strip_tokens * strip_tokens;  // whatever `first`
      next = std::min({whole + strip_tokens, end, n_});
      while (seen < middle && gone(seen + leaf_tokens, std::max(whole, middle))) seen += leaf_tokens;
      if (seen < middle) strips.push_back({t, next, seen / pair_tokens * pair_tokens});
    }
    for (Index s = begin; s < middle; s += tile_tokens)
      for (const Strip& strip : strips) {
        const Index from = std::max(s, strip.seen), to = std::min(s + tile_tokens, middle);
        if (from >= to) continue;
        float* const out = &out_.ref(strip.begin - first_, from);
        panels::multiply({left(strip.begin), of_.depth}, strip.end - strip.begin, of_.depth,
                         columns + (from - begin) * of_.depth, of_.depth * panel_, to - from, 1.0f, {out, n_}, out, n_);
      }
  }

  /// Whether the tokens between two leaves leave nothing of what was there before: less than exp(−80) in every lane.
  bool gone(Index begin, Index end) const {
    for (Index l = 0; l < of_.lanes; ++l)
      if (!(nth(slowest_, l) * span(l, begin, end) >= 80)) return false;  // also where nobody knows
    return true;
  }
  /// Δ of the tokens of whole leaves together: NaN where one of them is.
  double span(Index lane, Index begin, Index end) const {
    const Sum &from = nth(nth(sums_, lane), begin / leaf_tokens), &to = nth(nth(sums_, lane), end / leaf_tokens);
    return from.unknown == to.unknown ? to.known - from.known : std::numeric_limits<double>::quiet_NaN();
  }

  void decay_left(Index begin, Index middle, Index end) {
    const Index from = std::max(middle, first_), to = std::min(end, n_);
    if (begin == 0 || from >= to) return;
    decays(begin, middle);
    state_lanes::decay_rows(left(from), to - from, of_.depth, passed_.data());
  }

  /// What the tokens [begin, end), whole leaves, leave of what was there before them.
  void decays(Index begin, Index end) {
    for (Index l = 0; l < of_.lanes; ++l) nth(spans_, l) = static_cast<float>(span(l, begin, end));
    state_lanes::passed(of_, spans_.data(), passed_.mutable_data());
  }

  void finish(float lanes) {
    for (Index t = first_; t < n_; ++t) {
      float* const row = &out_.ref(t - first_, 0);
      const Index leaf = t / leaf_tokens * leaf_tokens;
      state_lanes::summed(partial(leaf), t - leaf, row + leaf);
      for (Index s = 0; s <= t; ++s) row[s] /= lanes;
    }
  }

  float* left(Index t) { return left_.mutable_data() + (t - first_) * of_.depth; }
  float* right(Index s) { return right_.mutable_data() + s * of_.depth; }
  float* partial(Index t) { return &partial_.ref(t / leaf_tokens - first_ / leaf_tokens, 0); }

  const StateMixing& in_;
  const std::stop_token& stop_;
  Index n_, first_, states_, panel_, most_lanes_ = 0;
  Tensor out_;              // (n − first, n)
  Tensor partial_;          // (leaf, …): α within leaves, still to be summed
  Tensor left_, right_;     // (row, depth), panels of (depth, column)
  Tensor leaf_, ends_;      // (3, token, depth): a leaf's Factors; (token, depth): a pair's right factors
  Tensor half_, passed_;    // panels of a leaf; (depth)
  Tensor a_;                // (lanes, N)
  state_lanes::Bundle of_;  // these lanes
  std::vector<Index> place_;
  struct Sum {
    double known = 0;
    Index unknown = 0;  ///< how many are NaN
  };
  std::vector<std::vector<Sum>> sums_;  // by lane: Δ of all tokens before a leaf
  std::vector<float> spans_;
  std::vector<double> slowest_;  // by lane: how fast its slowest state decays
};

}  // namespace

Tensor mean_implied(const StateMixing& in, Index begin, Index end, Index first, const std::stop_token& stop,
                    const Tensor& out) {
  return MeanOfLanes(in, begin, end, first, out, stop).out();
}

}  // namespace headscope
