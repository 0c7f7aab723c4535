#include "core/attention/softmax_attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "core/attention/attention_backward.h"
#include "core/attention/attention_kernel.h"
#include "core/attention/own_scores.h"
#include "core/attention/positions/disentangled.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/tensor/panels.h"
#include "core/trace/row_stats.h"

namespace headscope {
namespace {

constexpr Index block_rows = 16;  // whose scores over 1,024 keys fill 64 KB
constexpr Index plain_tile_rows = 64;
// So few rows read the values where they lie: packing them would take longer than the product.
constexpr Index few_rows = 4;

/// One text's attention in one layer: the products by blocks of rows, shared by the fused pass and the staged one.
class Pass {
 public:
  /// `z` is where the result goes. `keep`: the pattern is stored, even when no map wants it.
  Pass(const AttentionInput& in, Tensor z, std::span<const HeadRule> rules, std::span<const RulePtr> masks, bool keep,
       Backend& backend, std::stop_token stop, bool staged)
      : in_(in),
        backend_(backend),
        stop_(std::move(stop)),
        rules_(rules),
        masks_(masks),
        heads_(in.q.dim(1)),
        kv_heads_(in.k.dim(1)),
        n_query_(in.q.dim(0)),
        n_key_(in.k.dim(0)),
        d_(in.q.dim(2)),
        d_value_(in.v.dim(2)),
        stride_(panels::padded(n_key_)),
        values_in_place_(n_query_ - in.known <= few_rows && d_value_ % panels::width() == 0 && in.v.stride(2) == 1) {
    assert(in.q.stride(2) == 1 && heads_ % kv_heads_ == 0 && in.k.dim(2) == d_ && in.v.dim(0) == n_key_ &&
           in.v.dim(1) == kv_heads_);
    out_.z = std::move(z);
    const Index key_packs = in.key_panels ? 0 : kv_heads_, packs = key_packs + (values_in_place_ ? 0 : kv_heads_);
    if (in.key_panels)
      in.key_panels->put(in.k, in.room, backend.pool());
    else
      keys_ = backend.empty({kv_heads_, panels::packed_size(d_, n_key_)});
    if (!values_in_place_) values_ = backend.empty({kv_heads_, panels::packed_size(n_key_, d_value_)});
    if (in.storage != MapStorage::none && (in.statistics || in.storage == MapStorage::factored))
      stats_.resize(static_cast<std::size_t>(heads_));
    if (in.storage == MapStorage::dense || staged || keep) weights_ = backend_.empty({heads_, n_query_, n_key_});
    backend.pool().parallel(static_cast<int>(packs) + static_cast<int>(stats_.size()), [&](int task, int) {
      if (task >= packs)
        new_stats(task - packs, true, staged ? Tensor() : kept(task - packs));
      else if (task < key_packs)
        panels::pack(in.k.select(1, task).transpose(0, 1), &keys_.ref(task, 0));
      else
        panels::pack(in.v.select(1, task - key_packs), &values_.ref(task - key_packs, 0));
    });
  }

  /// Scores, softmax, statistics and mixing while a block of rows is in cache.
  AttentionSteps fused() {
    std::vector<Tensor> scratch(static_cast<std::size_t>(backend_.pool().threads()));
    for_each_tile([&](Index head, int tile, KeyRange rows, int thread) {
      Tensor& scores = nth(scratch, thread);
      if (!scores.defined()) scores = backend_.empty({block_rows, stride_});
      const auto collect = stats_tile(head, tile);
      for (Index first = rows.begin; first < rows.end; first += block_rows) {
        const Index count = std::min(block_rows, rows.end - first);
        const KeyRange hull = score_block(head, first, count, scores.mutable_data(), stride_);
        for (Index r = 0; r < count; ++r) {
          float* const row = &scores.ref(r, 0);
          weigh_row(collect.get(), first + r, visible(head, first + r), hull, row, sink(head, first + r));
          if (weights_.defined() && !collect) {  // else the statistics write the row
            float* const to = &weights_.ref(head, first + r, 0);
            std::fill(to, to + hull.begin, 0.0f);
            std::copy(row + hull.begin, row + hull.end, to + hull.begin);
            std::fill(to + hull.end, to + n_key_, 0.0f);
          }
        }
        mix_block(head, first, count, hull, scores.data(), stride_);
      }
    });
    make_maps(false);
    return steps(false, false);
  }

  /// The same with every stage stored whole, so that a tap can see and replace it.
  AttentionSteps staged(Tap& tap) {
    const Site score_site{SiteKind::attn_scores, in_.layer}, pattern_site{SiteKind::pattern, in_.layer};
    Tensor scores = backend_.empty({heads_, n_query_, n_key_});
    for_each_tile([&](Index head, int, KeyRange rows, int) {
      for (Index first = rows.begin; first < rows.end; first += block_rows) {
        const Index count = std::min(block_rows, rows.end - first);
        score_block(head, first, count, &scores.ref(head, first, 0), n_key_);
        for (Index i = first; i < first + count; ++i) {
          const KeyRange keys = visible(head, i);
          float* const row = &scores.ref(head, i, 0);
          std::fill(row, row + keys.begin, -float_infinity);
          std::fill(row + keys.end, row + n_key_, -float_infinity);
        }
      }
    });
    const bool edited_scores = pass_through(tap, score_site, scores);

    for_each_tile([&](Index head, int tile, KeyRange rows, int) {
      const auto collect = stats_tile(head, tile);
      for (Index i = rows.begin; i < rows.end; ++i) {
        float* const row = &weights_.ref(head, i, 0);
        std::memcpy(row, &scores.ref(head, i, 0), static_cast<std::size_t>(n_key_) * sizeof(float));
        // An edit may have opened masked cells, so then the whole row counts.
        const KeyRange keys = edited_scores ? KeyRange{0, n_key_} : visible(head, i);
        weigh_row(collect.get(), i, keys, {0, n_key_}, row, sink(head, i));
      }
    });
    const bool edited_pattern = pass_through(tap, pattern_site, weights_);

    if (edited_pattern)
      for (std::size_t head = 0; head < stats_.size(); ++head) new_stats(static_cast<Index>(head), false, {});
    std::vector<std::vector<float>> copies(static_cast<std::size_t>(backend_.pool().threads()));
    for_each_tile([&](Index head, int tile, KeyRange rows, int thread) {
      if (edited_pattern) {
        if (const auto collect = stats_tile(head, tile)) {
          std::vector<float>& copy = nth(copies, thread);
          for (Index i = rows.begin; i < rows.end; ++i) {
            const float* const row = &weights_.ref(head, i, 0);
            copy.assign(row, row + n_key_);
            collect->weights(i, copy);
          }
        }
      }
      // The same products as in the fused pass, so that looking changes no bit; an edit may have opened any key.
      for (Index first = rows.begin; first < rows.end; first += block_rows) {
        const Index count = std::min(block_rows, rows.end - first);
        const KeyRange keys = edited_scores || edited_pattern ? KeyRange{0, n_key_} : hull_of(head, first, count);
        mix_block(head, first, count, keys, &weights_.ref(head, first, 0), n_key_);
      }
    });
    make_maps(edited_scores || edited_pattern);
    AttentionSteps steps = this->steps(edited_scores, edited_pattern);
    if (tap.wants(score_site)) steps.scores = scores;
    return steps;
  }

  std::vector<AttentionMap> maps() { return std::move(out_.maps); }

 private:
  AttentionSteps steps(bool edited_scores, bool edited_pattern) const {
    return {in_.q, in_.k, in_.v, weights_, {}, edited_scores, edited_pattern, in_.entropy_price, in_.sinks, in_.offset};
  }

  void new_stats(Index head, bool have_scores, Tensor kept) {
    KnownRows known{.rows = in_.known, .keep_partial = in_.goes_on};
    const AttentionMap* const before = in_.before.empty() ? nullptr : &nth(in_.before, head);
    // Of factored maps weights are found again, to within a rounding.
    if (before && !(kept.defined() && before->is_factored())) known.stats = &before->stats();
    auto& made = nth(stats_, head);
    made = std::make_unique<HeadStatsBuilder>(n_query_, n_key_, in_.offset, in_.links, have_scores, kept, known);
    if (!kept.defined() || made->first_row() == 0) return;
    const Index keys = std::min(n_key_, before->n_key());
    const Tensor rows = before->tile({0, made->first_row()}, {0, keys}).packed();
    for (Index row = 0; row < rows.dim(0); ++row) {
      float* const to = &kept.ref(row, 0);
      std::copy_n(rows.data() + row * keys, keys, to);
      std::fill(to + keys, to + n_key_, 0.0f);
    }
  }

  Tensor kept(Index head) const { return weights_.defined() ? weights_.select(0, head) : Tensor(); }

  std::unique_ptr<HeadStatsBuilder::Tile> stats_tile(Index head, int tile) {
    if (stats_.empty()) return nullptr;
    return std::make_unique<HeadStatsBuilder::Tile>(*nth(stats_, head), tile);
  }

  /// body(head, tile, rows, thread) for every tile of rows of every head; head by head, so that all threads read the
  /// same keys and values; the last rows first, since under a causal mask they are the longest, and short tasks at the
  /// end balance the threads.
  template <class Body>
  void for_each_tile(Body body) {
    const Index step = stats_.empty() ? plain_tile_rows : stats_[0]->tile_rows();
    const int tiles = static_cast<int>((n_query_ + step - 1) / step);
    const int known = stats_.empty() ? 0 : static_cast<int>(stats_[0]->first_row() / step);  // the same in every head
    const int own = tiles - known;
    backend_.pool().parallel(own * static_cast<int>(heads_), [&](int task, int thread) {
      if (stop_.stop_requested()) return;
      const int tile = tiles - 1 - task % own;
      body(task / own, tile, KeyRange{tile * step, std::min(n_query_, (tile + 1) * step)}, thread);
    });
    if (stop_.stop_requested()) throw Cancelled();
  }

  /// The keys that any of the rows [first, first + count) may see, from the beginning of a panel on.
  KeyRange hull_of(Index head, Index first, Index count) const {
    KeyRange hull = visible(head, first);
    for (Index i = first + 1; i < first + count; ++i) {
      const KeyRange keys = visible(head, i);
      if (keys.size() == 0) continue;
      hull = hull.size() == 0 ? keys : KeyRange{std::min(hull.begin, keys.begin), std::max(hull.end, keys.end)};
    }
    if (hull.size() > 0) hull.begin = hull.begin / panels::width() * panels::width();
    return hull;
  }

  /// Biased scores of rows [first, first + count) for the keys of their hull, into out + row · stride + key.
  KeyRange score_block(Index head, Index first, Index count, float* out, Index stride) const {
    const KeyRange hull = hull_of(head, first, count);
    if (hull.size() == 0) return hull;
    const Index panel = panels::width() * d_;
    panels::multiply_streamed({in_.q.data() + first * in_.q.stride(0) + head * in_.q.stride(1), in_.q.stride(0)}, count,
                              d_, keys_of(kv(head)) + hull.begin / panels::width() * panel, panel, hull.size(),
                              nth(rules_, head).scale, out + hull.begin, stride);
    const AttentionRule& rule = *nth(rules_, head).rule;
    if (!rule.plain())
      for (Index i = first; i < first + count; ++i) {
        const KeyRange keys = visible(head, i);
        rule.apply(in_.offset + i, keys.begin,
                   {out + (i - first) * stride + keys.begin, static_cast<std::size_t>(keys.size())});
      }
    return hull;
  }

  /// Scores of `keys` → weights in place, zero in the rest of `hull`.
  static void weigh_row(HeadStatsBuilder::Tile* collect, Index query, KeyRange keys, KeyRange hull, float* row,
                        float sink) {
    const std::span<float> visible(row + keys.begin, static_cast<std::size_t>(keys.size()));
    if (collect)
      collect->softmax(query, keys, visible, sink);
    else
      softmax_row(visible, sink);
    std::fill(row + hull.begin, row + std::max(hull.begin, keys.begin), 0.0f);
    std::fill(row + std::min(hull.end, keys.end), row + hull.end, 0.0f);
  }

  /// z rows = weights · v over the keys of `hull`; `weights` points at key 0 of the first row.
  void mix_block(Index head, Index first, Index count, KeyRange hull, const float* weights, Index stride) {
    const Index known = std::clamp<Index>(in_.known - first, 0, count);
    if (known == count) return;
    if (values_in_place_) {
      const float* const values = in_.v.data() + kv(head) * in_.v.stride(1) + hull.begin * in_.v.stride(0);
      for (Index r = known; r < count; ++r)
        panels::multiply_in_place(weights + r * stride + hull.begin, hull.size(), values, in_.v.stride(0), d_value_,
                                  &out_.z.ref(first + r - in_.known, head, 0));
      return;
    }
    panels::multiply_streamed({weights + known * stride + hull.begin, stride}, count - known, hull.size(),
                              values_.data() + kv(head) * values_.stride(0) + hull.begin * panels::width(),
                              n_key_ * panels::width(), d_value_, 1.0f, &out_.z.ref(first + known - in_.known, head, 0),
                              out_.z.stride(0));
  }

  /// Lets the tap see `value`; true when it put another tensor in its place.
  static bool pass_through(Tap& tap, Site site, Tensor& value) {
    if (!tap.wants(site)) return false;
    const Tensor seen = tap.at(site, value);
    if (seen.shape() != value.shape())
      throw Error(name(site), "an edit of shape " + value.shape().str(), seen.shape().str());
    const bool replaced = seen.data() != value.data();
    value = seen.packed();
    return replaced;
  }

  /// What a tap put in a pattern's place need be no probabilities. A row that sees nothing is none of either; beside a
  /// sink a row may hold less than 1.
  MapKind kind_of(Index head) const {
    const Tensor weights = weights_.select(0, head);
    for (Index i = 0; i < weights.dim(0); ++i) {
      double sum = 0;
      for (Index j = 0; j < weights.dim(1); ++j) {
        if (weights.at(i, j) < 0) return MapKind::effective;
        sum += static_cast<double>(weights.at(i, j));
      }
      if (sum != 0 && std::abs(sum - 1) > 1e-3 && !(sum < 1 && std::isfinite(sink(head, i)))) return MapKind::effective;
    }
    return MapKind::probability;
  }

  void make_maps(bool edited) {
    if (in_.storage == MapStorage::none) return;
    static const auto nothing = std::make_shared<const HeadStats>();
    std::vector<std::shared_ptr<const HeadStats>> stats(static_cast<std::size_t>(heads_), nothing);
    backend_.pool().parallel(static_cast<int>(stats_.size()),
                             [&](int head, int) { nth(stats, head) = nth(stats_, head)->finish(); });
    for (Index head = 0; head < heads_; ++head) {
      const AttentionMap::Place place{in_.layer,
                                      static_cast<int>(head),
                                      static_cast<int>(kv(head)),
                                      in_.offset,
                                      edited ? kind_of(head) : MapKind::probability,
                                      in_.between_texts};
      const auto& head_stats = nth(stats, head);
      const HeadRule& rule = nth(rules_, head);
      if (in_.storage == MapStorage::factored && !edited)
        out_.maps.push_back(AttentionMap::factored(place, in_.q.select(1, head), in_.k.select(1, kv(head)), rule.scale,
                                                   rule.rule, head_stats));
      else
        out_.maps.push_back(AttentionMap::dense(
            place, weights_.select(0, head), edited && weight_outside(head) ? nullptr : nth(masks_, head), head_stats));
    }
  }

  /// An edit may put weight on cells that the rule hides; then nobody can tell any more what is masked.
  bool weight_outside(Index head) const {
    const AttentionRule& rule = *nth(masks_, head);
    for (Index i = 0; i < n_query_; ++i)
      for (Index j = 0; j < n_key_; ++j)
        if (weights_.at(head, i, j) != 0 && masked(rule, in_.offset + i, j, n_key_)) return true;
    return false;
  }
  KeyRange visible(Index head, Index query) const { return nth(rules_, head).rule->keys(in_.offset + query, n_key_); }
  float sink(Index head, Index query) const { return nth(rules_, head).rule->sink(in_.offset + query); }
  Index kv(Index head) const { return head / (heads_ / kv_heads_); }
  const float* keys_of(Index kv_head) const {
    return in_.key_panels ? in_.key_panels->of(kv_head) : keys_.data() + kv_head * keys_.stride(0);
  }

  const AttentionInput& in_;
  Backend& backend_;
  std::stop_token stop_;
  const std::span<const HeadRule> rules_;  // per head
  const std::span<const RulePtr> masks_;   // likewise, for who asks what is masked
  const Index heads_, kv_heads_, n_query_, n_key_, d_, d_value_, stride_;
  const bool values_in_place_;
  Tensor keys_;     // (kv_head, panels of kᵀ) where nobody keeps them
  Tensor values_;   // (kv_head, panels of v), unless in place
  Tensor weights_;  // (head, query, key) when stored
  std::vector<std::unique_ptr<HeadStatsBuilder>> stats_;
  AttentionOutput out_;
};

/// The rules of a text whose queries and keys are known, and what they read while it is computed.
struct Met {
  std::vector<HeadRule> rules;
  std::vector<RulePtr> masks;
  std::vector<std::shared_ptr<const DistanceProducts>> products;

  Met(const AttentionInput& in, const std::vector<HeadRule>& of, Backend& backend) : rules(of), products(of.size()) {
    for (const HeadRule& rule : of) masks.push_back(told_rule(rule));
    if (std::ranges::none_of(of, [](const HeadRule& rule) { return rule.distances != nullptr; })) return;
    const Index share = in.q.dim(1) / in.k.dim(1);
    backend.pool().parallel(static_cast<int>(of.size()), [&](int head, int) {
      const Tensor q = in.q.select(1, head), k = in.k.select(1, head / share);
      nth(products, head) = distance_products(nth(of, head), q, k, in.offset);
      nth(rules, head).rule = met_rule(nth(of, head), q, k, in.offset, nth(products, head));
    });
  }
};

}  // namespace

AttentionOutput softmax_attention(const AttentionInput& input, Backend& backend, Tap* tap, std::stop_token stop) {
  const Index rows = input.q.dim(0), heads = input.q.dim(1);
  const std::span<const Index> lengths = input.lengths.empty() ? std::span(&rows, 1) : input.lengths;
  const Index keys = input.k.dim(0);
  const std::span<const Index> key_lengths = lengths.size() == 1         ? std::span(&keys, 1)
                                             : input.key_lengths.empty() ? lengths
                                                                         : input.key_lengths;
  assert(lengths.size() == 1 || (input.offset == 0 && key_lengths.size() == lengths.size()));
  assert(input.known == 0 || (lengths.size() == 1 && !backend.tape()));
  std::vector<HeadRule> rules;
  std::vector<AttentionKernel::Head> parts;
  for (Index head = 0; head < heads; ++head) {
    const HeadRule usual{input.rule,
                         input.scale,
                         input.cap,
                         input.slopes.empty() ? 0 : nth(input.slopes, head),
                         input.slope_unit,
                         input.sinks.defined() ? input.sinks.at(head) : HeadRule{}.sink,
                         input.buckets.empty() ? nullptr : nth(input.buckets, head),
                         input.distances.empty() ? nullptr : nth(input.distances, head)};
    const HeadRule own = tap ? tap->head_rule({input.layer, static_cast<int>(head)}, usual) : usual;
    HeadRule& whole = rules.emplace_back(HeadRule{own_scores(own.rule, own), own.scale});
    whole.distances = own.distances;
    whole.without_distances = own.without_distances;
    parts.push_back({rules.back(), own});
  }
  const bool watched =
      tap && (tap->wants({SiteKind::attn_scores, input.layer}) || tap->wants({SiteKind::pattern, input.layer}));
  Tape* const tape = backend.tape();
  AttentionKernel* const kernel = watched ? nullptr : backend.attention();
  const bool on_device =
      kernel && input.known == 0 && kernel->takes(input, parts) && (!tape || kernel->records(*tape, input, parts));
  const Shape z_shape{rows - input.known, heads, input.v.dim(2)};
  AttentionOutput out;
  out.z = on_device ? kernel->room(z_shape) : backend.empty(z_shape);

  const auto begins = [](std::span<const Index> of) {
    std::vector<Index> at{0};
    for (const Index length : of) at.push_back(at.back() + length);
    return at;
  };
  std::vector<Index> begin = begins(lengths);
  const std::vector<Index> key_begin = begins(key_lengths);
  assert(begin.back() == rows && key_begin.back() == keys);
  std::vector<AttentionSteps> steps(lengths.size());
  std::vector<std::vector<AttentionMap>> maps(lengths.size());
  const auto run = [&](std::size_t text) {
    AttentionInput in = input;
    if (lengths.size() > 1) {
      in.q = in.q.slice(0, begin[text], begin[text + 1]);
      for (Tensor* x : {&in.k, &in.v}) *x = x->slice(0, key_begin[text], key_begin[text + 1]);
      in.lengths = in.key_lengths = {};
      if (input.mapped >= 0 && input.mapped != static_cast<Index>(text)) in.storage = MapStorage::none;
    }
    const Tensor z = out.z.slice(0, begin[text], begin[text + 1] - input.known);
    if (on_device) {
      maps[text] = kernel->attend(in, parts, z);
      return;
    }
    const Met met(in, rules, backend);
    Pass pass(in, z, met.rules, met.masks, tape != nullptr, backend, stop, watched);
    steps[text] = watched ? pass.staged(*tap) : pass.fused();
    maps[text] = pass.maps();
  };
  const bool mapped = input.storage != MapStorage::none;
  const bool together =
      on_device && lengths.size() > 1 && !(mapped && input.mapped < 0) && kernel->takes_together(input, parts);
  if (together) {
    AttentionInput all = input;
    all.storage = MapStorage::none;
    kernel->attend(all, parts, out.z);
    if (mapped && input.mapped < static_cast<Index>(lengths.size())) run(static_cast<std::size_t>(input.mapped));
  } else if (watched || on_device || lengths.size() == 1)  // a tap is called on the thread that runs the pass
    for (std::size_t text = 0; text < lengths.size(); ++text) run(text);
  else
    backend.pool().parallel(static_cast<int>(lengths.size()),
                            [&](int text, int) { run(static_cast<std::size_t>(text)); });
  for (auto& each : maps) std::ranges::move(each, std::back_inserter(out.maps));
  if (tape && on_device)
    kernel->record(*tape, input, parts, out.z);
  else if (tape)
    record_attention(*tape, backend, out.z, std::move(begin), std::move(steps), std::move(rules));
  return out;
}

}  // namespace headscope
