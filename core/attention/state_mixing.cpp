#include "core/attention/state_mixing.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/attention/state_lanes.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/tensor/over_rows.h"

namespace headscope {
namespace {

using state_lanes::Lane;
using state_lanes::Rows;

// A pass that is recorded keeps the state before each chunk of so many tokens; the way back runs a chunk once more.
constexpr Index chunk_tokens = 32;

/// The op's inputs as lanes of texts.
class Lanes {
 public:
  explicit Lanes(const StateMixing& in)
      : in_(in), rows(in.x.dim(0)), lanes(in.x.dim(1)), states(in.b.dim(2)), width(in.x.dim(2)), groups(in.b.dim(1)) {
    assert((width == 1 || in.x.stride(2) == 1) && (states == 1 || (in.b.stride(2) == 1 && in.c.stride(2) == 1)));
    assert(in.delta.shape() == Shape({rows, lanes}) && in.b.dim(0) == rows && in.c.shape() == in.b.shape());
    assert(in.a.dim(0) == lanes && (in.a.dim(1) == states || in.a.dim(1) == 1) && lanes % groups == 0);
    in_.lengths = {};
    begin.push_back(0);
    for (const Index length : in.lengths) begin.push_back(begin.back() + length);
    if (in.lengths.empty()) begin.push_back(rows);
    assert(begin.back() == rows);
    a_ = in.a.packed();
    if (in.a.dim(1) == states) return;
    a_ = Tensor::uninitialized({lanes, states});
    for (Index lane = 0; lane < lanes; ++lane) std::fill_n(&a_.ref(lane, 0), states, in.a.at(lane, 0));
  }

  /// From row `row` on.
  Lane lane(Index lane, Index row) const {
    const Index group = lane / (lanes / groups);
    const auto of = [row](const Tensor& x, Index place) {
      return Rows{x.data() + row * x.stride(0) + place * x.stride(1), x.stride(0)};
    };
    return {states,
            width,
            of(in_.x, lane),
            of(in_.delta, lane),
            of(in_.b, group),
            of(in_.c, group),
            a_.data() + lane * states,
            in_.d.defined() ? in_.d.at(lane) : 0.0f};
  }

  Index texts() const { return std::ssize(begin) - 1; }
  Index state_size() const { return states * width; }
  const StateMixing& in() const { return in_; }

 private:
  StateMixing in_;  // without lengths
  Tensor a_;        // (lanes, N)

 public:
  Index rows, lanes, states, width, groups;
  std::vector<Index> begin;  ///< of every text, then the end
};

/// Which chunks there are: those of a text one behind the other.
struct Chunks {
  explicit Chunks(const Lanes& lanes) {
    for (Index text = 0; text < lanes.texts(); ++text)
      first.push_back(first.back() +
                      (nth(lanes.begin, text + 1) - nth(lanes.begin, text) + chunk_tokens - 1) / chunk_tokens);
  }
  std::vector<Index> first{0};  ///< of every text, then their number
};

/// The way back. Each task takes a few lanes of one text; what lanes share is summed over tasks, in their order.
class MixingBackward {
 public:
  MixingBackward(Backend& backend, Tape& tape, const Lanes& lanes, const Chunks& chunks, const Tensor& before,
                 const Tensor& d_y)
      : backend_(backend), tape_(tape), l_(lanes), chunks_(chunks), before_(before), d_y_(d_y) {
    per_tile_ = std::max<Index>(1, 16 / l_.width);
    const Index per_group = l_.lanes / l_.groups;
    tiles_per_group_ = (per_group + per_tile_ - 1) / per_tile_;
    x_ = slot(l_.in().x);
    delta_ = slot(l_.in().delta);
    const Index tiles = tiles_per_group_ * l_.groups;
    b_ = backend.empty({tiles, l_.rows, l_.states});
    c_ = backend.empty({tiles, l_.rows, l_.states});
    a_ = backend.empty({l_.texts(), l_.lanes, l_.states});
    d_ = backend.empty({l_.texts(), l_.lanes});
  }

  void run() {
    const Index tiles = tiles_per_group_ * l_.groups;
    std::vector<Tensor> scratch(static_cast<std::size_t>(backend_.pool().threads()));
    backend_.pool().parallel(static_cast<int>(l_.texts() * tiles), [&](int task, int thread) {
      Tensor& own = nth(scratch, thread);
      if (!own.defined())
        own = backend_.empty({(chunk_tokens + 1) * l_.state_size() + chunk_tokens * (l_.states + l_.width)});
      tile(task / tiles, task % tiles, own);
    });
    share(l_.in().b, b_);
    share(l_.in().c, c_);
    over_texts();
  }

 private:
  Tape::Slot slot(const Tensor& x) const {
    return tape_.active(x) ? tape_.into(x) : Tape::Slot{backend_.empty(x.shape()), false};
  }

  void tile(Index text, Index tile, Tensor& scratch) {
    const Index first = nth(l_.begin, text), end = nth(l_.begin, text + 1);
    for (Tensor* sums : {&b_, &c_})
      if (end > first) std::fill_n(&sums->ref(tile, first, 0), (end - first) * l_.states, 0.0f);
    const Index per_group = l_.lanes / l_.groups, group = tile / tiles_per_group_,
                begin = tile % tiles_per_group_ * per_tile_;
    for (Index lane = begin; lane < std::min(per_group, begin + per_tile_); ++lane)
      one(text, tile, group * per_group + lane, scratch);
  }

  void one(Index text, Index tile, Index lane, Tensor& scratch) {
    const Index first = nth(l_.begin, text), end = nth(l_.begin, text + 1), size = l_.state_size();
    float* const g = scratch.mutable_data();
    const state_lanes::WritableRows h{g + size, size}, keep{h[chunk_tokens], l_.states},
        y{keep[chunk_tokens], l_.width};
    std::fill_n(g, size, 0.0f);
    state_lanes::LaneGradients out;
    out.add_x = x_.add;
    out.add_delta = delta_.add;
    out.a = &a_.ref(text, lane, 0);
    std::fill_n(out.a, l_.states, 0.0f);
    const auto at = [lane](Tensor& values, Index row) {
      return state_lanes::WritableRows{&values.ref(row, 0) + lane * values.stride(1), values.stride(0)};
    };
    for (Index chunk = nth(chunks_.first, text + 1) - 1; chunk >= nth(chunks_.first, text); --chunk) {
      const Index row = first + (chunk - nth(chunks_.first, text)) * chunk_tokens,
                  n = std::min(chunk_tokens, end - row);
      const Lane from = l_.lane(lane, row);
      const float* const before = before_.data() + (chunk * l_.lanes + lane) * size;
      state_lanes::decays(from, n, keep);
      state_lanes::mix(from, n, {keep.data, keep.step}, before, h, y);
      out.x = {const_cast<float*>(x_.values.data()) + row * x_.values.stride(0) + lane * x_.values.stride(1),
               x_.values.stride(0)};
      out.delta = at(delta_.values, row);
      out.b = {&b_.ref(tile, row, 0), l_.states};
      out.c = {&c_.ref(tile, row, 0), l_.states};
      const Index across = l_.lanes * l_.width;
      state_lanes::back(from, n, {keep.data, keep.step}, before, {h.data, h.step},
                        {d_y_.data() + row * across + lane * l_.width, across}, g, out);
    }
    d_.ref(text, lane) = out.d;
  }

  /// What the tiles of a group found for its B, or C.
  void share(const Tensor& x, const Tensor& by_tile) {
    if (!tape_.active(x)) return;
    const Tape::Slot to = tape_.into(x);
    over_rows(backend_.pool(), l_.rows, l_.groups * l_.states, tiles_per_group_, [&](Index begin, Index end) {
      for (Index row = begin; row < end; ++row)
        for (Index group = 0; group < l_.groups; ++group) {
          float* const sum =
              const_cast<float*>(&to.values.data()[row * to.values.stride(0) + group * to.values.stride(1)]);
          for (Index k = 0; k < tiles_per_group_; ++k) {
            const float* const part = by_tile.data() + ((group * tiles_per_group_ + k) * l_.rows + row) * l_.states;
            for (Index i = 0; i < l_.states; ++i) sum[i] = part[i] + (to.add || k > 0 ? sum[i] : 0.0f);
          }
        }
    });
  }

  void over_texts() {
    const Tensor &a = l_.in().a, &d = l_.in().d;
    const bool to_a = tape_.active(a), to_d = tape_.active(d);
    const Tape::Slot into_a = to_a ? tape_.into(a) : Tape::Slot{}, into_d = to_d ? tape_.into(d) : Tape::Slot{};
    Tensor da = into_a.values, dd = into_d.values;
    for (Index lane = 0; lane < l_.lanes; ++lane)
      for (Index text = 0; text < l_.texts(); ++text) {
        if (to_d) dd.ref(lane) = d_.at(text, lane) + (into_d.add || text > 0 ? dd.at(lane) : 0.0f);
        for (Index i = 0; to_a && i < l_.states; ++i) {
          const Index cell = i % a.dim(1);  // one pace gathers those of all states
          const bool add = into_a.add || text > 0 || cell < i;
          da.ref(lane, cell) = a_.at(text, lane, i) + (add ? da.at(lane, cell) : 0.0f);
        }
      }
  }

  Backend& backend_;
  Tape& tape_;
  const Lanes& l_;
  const Chunks& chunks_;
  const Tensor& before_;  // (chunk, lane, N · P)
  const Tensor& d_y_;
  Index per_tile_ = 0, tiles_per_group_ = 0;  // lanes; tiles
  Tape::Slot x_, delta_;
  Tensor b_, c_;  // (tile, row, N)
  Tensor a_, d_;  // (text, lane, N), (text, lane)
};

}  // namespace

Tensor mix_states(Backend& backend, const StateMixing& in, Tensor* state, const std::stop_token& stop) {
  const Lanes lanes(in);
  const Chunks chunks(lanes);
  const Index size = lanes.state_size(), across = lanes.lanes * lanes.width;
  Tape* const tape = backend.tape();
  const bool recorded =
      tape && std::ranges::any_of(std::initializer_list<const Tensor*>{&in.x, &in.delta, &in.a, &in.b, &in.c, &in.d},
                                  [&](const Tensor* each) { return tape->active(*each); });
  assert(!state || (!tape && lanes.texts() == 1));
  Tensor y = backend.empty({lanes.rows, lanes.lanes, lanes.width});
  Tensor before = recorded ? backend.empty({chunks.first.back(), lanes.lanes, size}) : Tensor();
  Tensor after = state ? backend.empty({lanes.lanes, lanes.states, lanes.width}) : Tensor();
  const Index longest = lanes.rows / std::max<Index>(1, lanes.texts());
  over_rows(backend.pool(), lanes.texts() * lanes.lanes, longest * size, 4, [&](Index begin, Index end) {
    Tensor scratch = backend.empty({size + chunk_tokens * lanes.states});
    const state_lanes::WritableRows keep{scratch.mutable_data() + size, lanes.states};
    for (Index task = begin; task < end; ++task) {
      const Index text = task / lanes.lanes, lane = task % lanes.lanes;
      float* const h = after.defined() ? &after.ref(lane, 0, 0) : scratch.mutable_data();
      if (state && state->defined())
        std::copy_n(state->data() + lane * size, size, h);
      else
        std::fill_n(h, size, 0.0f);
      for (Index chunk = nth(chunks.first, text); chunk < nth(chunks.first, text + 1); ++chunk) {
        if (stop.stop_requested()) return;
        const Index row = nth(lanes.begin, text) + (chunk - nth(chunks.first, text)) * chunk_tokens,
                    n = std::min(chunk_tokens, nth(lanes.begin, text + 1) - row);
        if (recorded) std::copy_n(h, size, &before.ref(chunk, lane, 0));
        const Lane from = lanes.lane(lane, row);
        state_lanes::decays(from, n, keep);
        state_lanes::mix(from, n, {keep.data, keep.step}, h, {h, 0},
                         {y.mutable_data() + row * across + lane * lanes.width, across});
      }
    }
  });
  if (stop.stop_requested()) throw Cancelled();
  if (state) *state = after;
  if (recorded)
    tape->record(y, [&backend, &tape = *tape, lanes, chunks, before](const Tensor& d_y) {
      MixingBackward(backend, tape, lanes, chunks, before, d_y).run();
    });
  return y;
}

Tensor implied_attention(const StateMixing& in, Index lane, Index first, const std::stop_token& stop) {
  const Lanes lanes(in);
  assert(lanes.texts() == 1 && first >= 0 && first <= lanes.rows && lane >= 0 && lane < lanes.lanes);
  const Lane from = lanes.lane(lane, 0);
  Tensor keep = Tensor::uninitialized({lanes.rows, lanes.states}), reach = Tensor::uninitialized({lanes.states});
  state_lanes::decays(from, lanes.rows, {keep.mutable_data(), lanes.states});
  Tensor weights = Tensor::zeros({lanes.rows - first, lanes.rows});
  for (Index t = first; t < lanes.rows; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    state_lanes::implied(from, t, {keep.data(), lanes.states}, reach.mutable_data(), &weights.ref(t - first, 0));
  }
  return weights;
}

}  // namespace headscope
