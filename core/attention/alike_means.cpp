// Means of α over the lanes of a head where all states of a lane decay alike. With S the sum of Δ up to a token, and
// the token before it out of it,
//   α_ts = (C_t · B_s) exp(a (S_t − S_s)) Δ_s
// so that one product of C and B serves all lanes of a group, and a lane scales its rows and columns: both from the
// last leaf's beginning before the row, so that nothing overflows.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "core/attention/state_lanes.h"
#include "core/attention/state_mixing.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/tensor/panels.h"
#include "core/trace/attention_rule.h"

namespace headscope {
namespace {

using state_lanes::leaf_tokens;
constexpr Index task_rows = 2 * leaf_tokens;

class AlikeMeans {
 public:
  AlikeMeans(const StateMixing& in, Index heads, Index head, Index first, Tensor out)
      : in_(in),
        n_(in.x.dim(0)),
        first_(first),
        groups_(in.b.dim(1)),
        states_(in.b.dim(2)),
        lanes_(in.x.dim(1)),
        of_head_(lanes_ / heads),
        begin_(head * of_head_),
        end_((head + out.dim(0)) * of_head_),
        out_(std::move(out)) {
    assert(in.lengths.size() < 2 && in.a.dim(1) == 1 && lanes_ % heads == 0 && end_ <= lanes_);
    assert(out_.contiguous() && out_.shape() == Shape({out_.dim(0), n_ - first, n_}));
    delta_ = Tensor::uninitialized({lanes_, n_});
    sums_.resize(static_cast<std::size_t>(lanes_ * (n_ + 1)));
    for (Index lane = begin_; lane < end_; ++lane) {
      double* sum = sums(lane);
      *sum = 0;
      for (Index t = 0; t < n_; ++t, ++sum) {
        const float delta = in.delta.at(t, lane);
        delta_.ref(lane, t) = delta;
        if (std::isnan(delta)) unknown_.emplace_back(lane, t);
        sum[1] = *sum + (std::isnan(delta) ? 0.0 : static_cast<double>(delta));
      }
    }
    for (Index group = 0; group < groups_; ++group) {
      panels_.emplace_back();
      if (of_group(group).size() == 0) continue;
      panels_.back() = Tensor::uninitialized({panels::packed_size(states_, n_)});
      panels::pack(in.b.select(1, group).transpose(0, 1), panels_.back().mutable_data());
    }
  }

  int tasks() const { return static_cast<int>((n_ + task_rows - 1) / task_rows - first_ / task_rows); }

  /// The last rows first, which have most keys.
  void task(int which) {
    const Index begin = ((n_ - 1) / task_rows - which) * task_rows;
    const Index from = std::max(begin, first_), to = std::min(begin + task_rows, n_);
    Tensor products = Tensor::uninitialized({to - from, to});
    std::vector<float> reach(static_cast<std::size_t>(to));
    for (Index group = 0; group < groups_; ++group) {
      const KeyRange lanes = of_group(group);
      if (lanes.size() == 0) continue;
      const Tensor c = in_.c.select(1, group).slice(0, from, to).packed();
      panels::multiply(c.data(), states_, to - from, states_, nth(panels_, group).data(), states_ * panels::width(), to,
                       1.0f, nullptr, products.mutable_data(), to);
      for (Index lane = lanes.begin; lane < lanes.end; ++lane)
        for (Index leaf = from / leaf_tokens * leaf_tokens; leaf < to; leaf += leaf_tokens)
          rows(lane, leaf, std::max(from, leaf), std::min(to, leaf + leaf_tokens), products, from, reach);
    }
  }

 private:
  /// Its lanes, of those that are asked for.
  KeyRange of_group(Index group) const {
    const Index each = lanes_ / groups_, from = std::max(group * each, begin_);
    return {from, std::max(from, std::min((group + 1) * each, end_))};
  }

  /// Adds a lane's part to rows [from, to) of the leaf that begins there. `products`: of rows from `top` on.
  void rows(Index lane, Index leaf, Index from, Index to, const Tensor& products, Index top,
            std::vector<float>& reach) {
    const bool add = lane % of_head_ > 0;
    const double a = std::max(static_cast<double>(in_.a.at(lane, 0)), -1e300);  // times no step: none, were it −∞
    const double* const sum = sums(lane);
    const float* const delta = delta_.data() + lane * n_;
    // What is left of a token at the leaf's beginning; of those before `seen` less than exp(−80).
    const Index seen = std::lower_bound(sum + 1, sum + 1 + leaf, sum[leaf] + 80 / a) - (sum + 1);
    state_lanes::reaches(sum + 1 + seen, sum[leaf], a, delta + seen, leaf - seen, reach.data() + seen);
    for (Index t = from; t < to; ++t) {
      const float* const product = products.data() + (t - top) * products.stride(0);
      float* const out = &out_.ref((lane - begin_) / of_head_, t - first_, 0);
      if (!add) {
        std::fill(out, out + seen, 0.0f);
        std::fill(out + t + 1, out + n_, 0.0f);
      }
      const float share = 1 / static_cast<float>(of_head_);
      const auto left = static_cast<float>(std::exp(a * (sum[t + 1] - sum[leaf])));
      state_lanes::scaled(product + seen, reach.data() + seen, left * share, leaf - seen, add, out + seen);
      float within[leaf_tokens];
      state_lanes::reaches(sum + 1 + leaf, sum[t + 1], a, delta + leaf, t + 1 - leaf, within);
      state_lanes::scaled(product + leaf, within, share, t + 1 - leaf, add, out + leaf);
      // What came before a step that is no number, or with it, is none.
      const auto later = std::ranges::upper_bound(unknown_, std::pair(lane, t));
      if (later != unknown_.begin() && std::prev(later)->first == lane)
        std::fill_n(out, std::prev(later)->second + 1, std::numeric_limits<float>::quiet_NaN());
    }
  }

  double* sums(Index lane) { return sums_.data() + lane * (n_ + 1); }

  const StateMixing& in_;
  const Index n_, first_, groups_, states_, lanes_, of_head_, begin_, end_;  // lanes [begin_, end_) are asked for
  Tensor out_;                                                               // (head, n − first, n)
  Tensor delta_;                                                             // (lanes, n)
  std::vector<double> sums_;                      // (lanes, n + 1): Δ of the tokens before each, and of all
  std::vector<Tensor> panels_;                    // of a group's Bᵀ (N, n)
  std::vector<std::pair<Index, Index>> unknown_;  // lane, token: whose Δ is NaN, which is no part of the sums
};

}  // namespace

void means_of_alike(ThreadPool* pool, const StateMixing& in, Index heads, Index head, Index first,
                    const std::stop_token& stop, const Tensor& out) {
  if (first == in.x.dim(0)) return;
  AlikeMeans means(in, heads, head, first, out);
  const auto one = [&](int task, int) {
    if (!stop.stop_requested()) means.task(task);
  };
  if (pool)
    pool->parallel(means.tasks(), one);
  else
    for (int task = 0; task < means.tasks(); ++task) one(task, 0);
  if (stop.stop_requested()) throw Cancelled();
}

}  // namespace headscope
