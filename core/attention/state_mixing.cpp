#include "core/attention/state_mixing.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/attention/state_lanes.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/tensor/over_rows.h"

namespace headscope {
namespace {

using state_lanes::Rows;
using state_lanes::Tile;
using state_lanes::WritableRows;

// A pass that is recorded keeps the state before each chunk of so many tokens; the way back runs a chunk once more.
constexpr Index chunk_tokens = 32;
// Lanes of width 1 are computed so many at a time. What they share is summed tile by tile, whatever the threads.
constexpr Index tile_columns = 64;

/// A number for each row of x at `place`, and for each of those that follow.
Rows rows_of(const Tensor& x, Index row, Index place) {
  return {x.data() + row * x.stride(0) + place, x.stride(0)};
}
WritableRows rows_of(Tensor& x, Index row, Index place) {
  return {x.mutable_data() + row * x.stride(0) + place, x.stride(0)};
}

/// Whether each row of (n, …) lies without gaps.
bool whole_rows(const Tensor& x) {
  return x.dim(0) == 0 || x.select(0, 0).contiguous();
}

/// The op's inputs, in tiles of lanes that share B and C and chunks of the tokens of a text.
class Mixing {
 public:
  explicit Mixing(const StateMixing& in)
      : in_(in),
        rows(in.x.dim(0)),
        lanes(in.x.dim(1)),
        states(in.b.dim(2)),
        width(in.x.dim(2)),
        groups(in.b.dim(1)),
        columns(width == 1) {
    assert(whole_rows(in.x) && whole_rows(in.delta) && whole_rows(in.b) && whole_rows(in.c));
    assert(in.delta.shape() == Shape({rows, lanes}) && in.b.dim(0) == rows && in.c.shape() == in.b.shape());
    assert(in.a.dim(0) == lanes && (in.a.dim(1) == states || in.a.dim(1) == 1) && lanes % groups == 0);
    in_.lengths = {};
    const std::span<const Index> lengths = in.lengths.empty() ? std::span(&rows, 1) : in.lengths;
    for (const Index length : lengths) {
      begin.push_back(begin.back() + length);
      chunks.push_back(chunks.back() + (length + chunk_tokens - 1) / chunk_tokens);
    }
    assert(begin.back() == rows);
    const Index per_group = lanes / groups, step = columns ? tile_columns : 1;
    for (Index group = 0; group < groups; ++group)
      for (Index lane = 0; lane < per_group; lane += step) tiles.push_back(group * per_group + lane);
    tiles_per_group = std::ssize(tiles) / groups;
    tiles.push_back(lanes);
    a_ = Tensor::uninitialized({lanes * states});
    for (Index tile = 0; tile < tile_count(); ++tile)
      for (Index lane = nth(tiles, tile); lane < nth(tiles, tile + 1); ++lane)
        for (Index i = 0; i < states; ++i) a_.ref(place_of_a(tile, lane, i)) = in.a.at(lane, i % in.a.dim(1));
    d_ = in.d.defined() ? in.d.packed() : Tensor::zeros({lanes});
  }

  Index texts() const { return std::ssize(begin) - 1; }
  Index tile_count() const { return std::ssize(tiles) - 1; }
  Index state_size() const { return states * width; }                            ///< of a lane
  Index tile_size(Index tile) const { return tile_lanes(tile) * state_size(); }  ///< of a tile's state
  Index tile_lanes(Index tile) const { return nth(tiles, tile + 1) - nth(tiles, tile); }
  Index most_lanes() const { return columns ? std::min(tile_columns, lanes / groups) : 1; }
  const StateMixing& in() const { return in_; }

  /// From row `row` on.
  Tile tile(Index tile, Index row) const {
    const Index lane = nth(tiles, tile), group = tile / tiles_per_group;
    return {states,
            tile_lanes(tile) * width,
            columns,
            rows_of(in_.x, row, lane * width),
            rows_of(in_.delta, row, lane),
            rows_of(in_.b, row, group * states),
            rows_of(in_.c, row, group * states),
            a_.data() + lane * states,
            d_.data() + lane};
  }
  /// Where a of a lane's state lies among those of all tiles: state by state, columns side by side.
  Index place_of_a(Index tile, Index lane, Index state) const {
    const Index first = nth(tiles, tile);
    return first * states + state * tile_lanes(tile) + lane - first;
  }

 private:
  StateMixing in_;  // without lengths
  Tensor a_, d_;    // (lanes · N) by tiles, (lanes)

 public:
  Index rows, lanes, states, width, groups;
  bool columns;
  std::vector<Index> begin{0};   ///< row of every text, then their number
  std::vector<Index> chunks{0};  ///< first chunk of every text, then their number
  std::vector<Index> tiles;      ///< first lane of every tile, then their number
  Index tiles_per_group = 0;
};

/// body(row, n, chunk) for the chunks of a text, first to last or last to first.
template <class Body>
void over_chunks(const Mixing& m, Index text, bool backwards, Body body) {
  const Index first = nth(m.chunks, text), end = nth(m.chunks, text + 1);
  for (Index k = 0; k < end - first; ++k) {
    const Index chunk = backwards ? end - 1 - k : first + k, row = nth(m.begin, text) + (chunk - first) * chunk_tokens;
    body(row, std::min(chunk_tokens, nth(m.begin, text + 1) - row), chunk);
  }
}

/// The way back. Each task takes a tile of one text; what tiles and texts share is then summed in their order.
class MixingBackward {
 public:
  MixingBackward(Backend& backend, Tape& tape, const Mixing& mixing, const Tensor& before, const Tensor& d_y)
      : backend_(backend), tape_(tape), m_(mixing), before_(before), d_y_(d_y.reshape({m_.rows, m_.lanes * m_.width})) {
    x_ = slot(m_.in().x);
    delta_ = slot(m_.in().delta);
    b_ = backend.empty({m_.tile_count(), m_.rows, m_.states});
    c_ = backend.empty({m_.tile_count(), m_.rows, m_.states});
    a_ = backend.empty({m_.texts(), m_.lanes * m_.states});
    d_ = backend.empty({m_.texts(), m_.lanes});
  }

  void run() {
    std::vector<Tensor> scratch(static_cast<std::size_t>(backend_.pool().threads()));
    backend_.pool().parallel(static_cast<int>(m_.texts() * m_.tile_count()), [&](int task, int thread) {
      Tensor& own = nth(scratch, thread);
      const Index lanes = m_.most_lanes();
      if (!own.defined())
        own =
            backend_.empty({(2 * chunk_tokens + 1) * lanes * m_.state_size() + (chunk_tokens + 3) * lanes * m_.width});
      one(task / m_.tile_count(), task % m_.tile_count(), own.mutable_data());
    });
    share(m_.in().b, b_);
    share(m_.in().c, c_);
    over_texts();
  }

 private:
  /// A gradient's place, or, where nobody asks for it, one that nobody reads.
  Tape::Slot slot(const Tensor& x) const {
    return tape_.active(x) ? tape_.into(x) : Tape::Slot{backend_.empty(x.shape()), false};
  }

  void one(Index text, Index tile, float* scratch) {
    const Index size = m_.tile_size(tile), lane = nth(m_.tiles, tile), width = m_.tile_lanes(tile) * m_.width;
    const WritableRows h{scratch + size, size}, keep{h[chunk_tokens], m_.tile(tile, 0).own() * m_.states},
        y{keep[chunk_tokens], width};
    std::fill_n(scratch, size, 0.0f);
    std::fill_n(&a_.ref(text, lane * m_.states), m_.tile_lanes(tile) * m_.states, 0.0f);
    std::fill_n(&d_.ref(text, lane), m_.tile_lanes(tile), 0.0f);
    over_chunks(m_, text, true, [&](Index row, Index n, Index chunk) {
      const Tile from = m_.tile(tile, row);
      const float* const before = before_.data() + chunk * before_.stride(0) + lane * m_.state_size();
      const Rows kept{keep.data, keep.step};
      state_lanes::decays(from, n, keep);
      state_lanes::mix(from, n, kept, before, h, y);
      for (Tensor* sums : {&b_, &c_}) std::fill_n(&sums->ref(tile, row, 0), n * m_.states, 0.0f);
      state_lanes::TileGradients out;
      out.x = rows_of(x_.values, row, lane * m_.width);
      out.delta = rows_of(delta_.values, row, lane);
      out.add_x = x_.add;
      out.add_delta = delta_.add;
      out.b = {&b_.ref(tile, row, 0), m_.states};
      out.c = {&c_.ref(tile, row, 0), m_.states};
      out.a = &a_.ref(text, lane * m_.states);
      out.d = &d_.ref(text, lane);
      state_lanes::back(from, n, kept, before, {h.data, h.step}, rows_of(d_y_, row, lane * m_.width), scratch,
                        y[chunk_tokens], out);
    });
  }

  /// What the tiles of a group found for its B, or C.
  void share(const Tensor& x, const Tensor& by_tile) {
    if (!tape_.active(x)) return;
    Tape::Slot to = tape_.into(x);
    over_rows(backend_.pool(), m_.rows, m_.tile_count() * m_.states, 1, [&](Index begin, Index end) {
      for (Index row = begin; row < end; ++row)
        for (Index tile = 0; tile < m_.tile_count(); ++tile) {
          float* const sum = rows_of(to.values, row, tile / m_.tiles_per_group * m_.states).data;
          const bool add = to.add || tile % m_.tiles_per_group > 0;
          for (Index i = 0; i < m_.states; ++i) sum[i] = by_tile.at(tile, row, i) + (add ? sum[i] : 0.0f);
        }
    });
  }

  void over_texts() {
    const Tensor &a = m_.in().a, &d = m_.in().d;
    const bool to_a = tape_.active(a), to_d = tape_.active(d);
    const Tape::Slot into_a = to_a ? tape_.into(a) : Tape::Slot{}, into_d = to_d ? tape_.into(d) : Tape::Slot{};
    Tensor da = into_a.values, dd = into_d.values;
    for (Index text = 0; text < m_.texts(); ++text)
      for (Index tile = 0; tile < m_.tile_count(); ++tile)
        for (Index lane = nth(m_.tiles, tile); lane < nth(m_.tiles, tile + 1); ++lane) {
          if (to_d) dd.ref(lane) = d_.at(text, lane) + (into_d.add || text > 0 ? dd.at(lane) : 0.0f);
          for (Index i = 0; to_a && i < m_.states; ++i) {
            const Index cell = i % a.dim(1);  // one pace gathers those of all states
            const bool add = into_a.add || text > 0 || cell < i;
            da.ref(lane, cell) = a_.at(text, m_.place_of_a(tile, lane, i)) + (add ? da.at(lane, cell) : 0.0f);
          }
        }
  }

  Backend& backend_;
  Tape& tape_;
  const Mixing& m_;
  const Tensor& before_;  // (chunk, lanes · N · P)
  const Tensor d_y_;      // (row, lanes · P)
  Tape::Slot x_{}, delta_{};
  Tensor b_, c_;  // (tile, row, N)
  Tensor a_, d_;  // (text, lanes · N) by tiles, (text, lanes)
};

/// A tile's state between a cache, (lane, N, P), and here, where columns lie side by side.
void load_state(const Mixing& m, Index tile, const Tensor& state, float* h) {
  const Index lanes = m.tile_lanes(tile), first = nth(m.tiles, tile);
  if (!state.defined()) {
    std::fill_n(h, m.tile_size(tile), 0.0f);
  } else if (!m.columns) {
    std::copy_n(state.data() + first * m.state_size(), m.state_size(), h);
  } else {
    for (Index lane = 0; lane < lanes; ++lane)
      for (Index i = 0; i < m.states; ++i) h[i * lanes + lane] = state.at(first + lane, i, 0);
  }
}
void store_state(const Mixing& m, Index tile, const float* h, Tensor& state) {
  const Index lanes = m.tile_lanes(tile), first = nth(m.tiles, tile);
  if (!m.columns) {
    std::copy_n(h, m.state_size(), &state.ref(first, 0, 0));
    return;
  }
  for (Index lane = 0; lane < lanes; ++lane)
    for (Index i = 0; i < m.states; ++i) state.ref(first + lane, i, 0) = h[i * lanes + lane];
}

}  // namespace

Tensor mix_states(Backend& backend, const StateMixing& in, Tensor* state, const std::stop_token& stop) {
  const Mixing m(in);
  Tape* const tape = backend.tape();
  const auto active = [&](const Tensor* each) { return tape->active(*each); };
  const bool recorded =
      tape &&
      std::ranges::any_of(std::initializer_list<const Tensor*>{&in.x, &in.delta, &in.a, &in.b, &in.c, &in.d}, active);
  assert(!state || (!tape && m.texts() == 1));
  Tensor y = backend.empty({m.rows, m.lanes, m.width});
  Tensor before = recorded ? backend.empty({m.chunks.back(), m.lanes * m.state_size()}) : Tensor();
  Tensor after = state ? backend.empty({m.lanes, m.states, m.width}) : Tensor();
  const Index row_work = m.rows / std::max<Index>(1, m.texts()) * m.most_lanes() * m.state_size();
  over_rows(backend.pool(), m.texts() * m.tile_count(), row_work, 4, [&](Index begin, Index end) {
    const Index most = m.most_lanes() * m.state_size();
    Tensor scratch = backend.empty({(1 + chunk_tokens) * most});
    float* const h = scratch.mutable_data();
    for (Index task = begin; task < end; ++task) {
      const Index text = task / m.tile_count(), tile = task % m.tile_count(), lane = nth(m.tiles, tile);
      const WritableRows keep{h + most, m.tile(tile, 0).own() * m.states};
      load_state(m, tile, state ? *state : Tensor(), h);
      over_chunks(m, text, false, [&](Index row, Index n, Index chunk) {
        if (stop.stop_requested()) return;
        if (recorded) std::copy_n(h, m.tile_size(tile), &before.ref(chunk, lane * m.state_size()));
        const Tile from = m.tile(tile, row);
        state_lanes::decays(from, n, keep);
        state_lanes::mix(from, n, {keep.data, keep.step}, h, {h, 0}, rows_of(y, row, lane * m.width));
      });
      if (state) store_state(m, tile, h, after);
    }
  });
  if (stop.stop_requested()) throw Cancelled();
  if (state) *state = after;
  if (recorded)
    tape->record(y, [&backend, &tape = *tape, m, before](const Tensor& d_y) {
      MixingBackward(backend, tape, m, before, d_y).run();
    });
  return y;
}

Tensor implied_attention(const StateMixing& in, Index lane, Index first, const std::stop_token& stop) {
  const Index rows = in.x.dim(0), lanes = in.x.dim(1), states = in.b.dim(2);
  const Index place = lane / (lanes / in.b.dim(1)) * states;  // of its group
  assert(in.lengths.size() < 2 && first >= 0 && first <= rows && lane >= 0 && lane < lanes);
  assert(whole_rows(in.delta) && whole_rows(in.b) && whole_rows(in.c));
  std::vector<float> a, reach(static_cast<std::size_t>(states));
  for (Index i = 0; i < states; ++i) a.push_back(in.a.at(lane, i % in.a.dim(1)));
  const Tile from{
      states,   1,      false, {}, rows_of(in.delta, 0, lane), rows_of(in.b, 0, place), rows_of(in.c, 0, place),
      a.data(), nullptr};
  Tensor keep = Tensor::uninitialized({rows, states});
  state_lanes::decays(from, rows, rows_of(keep, 0, 0));
  for (Index t = 0; t < rows; ++t)  // of which decays() makes 0
    if (std::isnan(in.delta.at(t, lane)))
      std::fill_n(keep.mutable_data() + t * states, states, std::numeric_limits<float>::quiet_NaN());
  Tensor weights = Tensor::zeros({rows - first, rows});
  for (Index t = first; t < rows; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    state_lanes::implied(from, t, {keep.data(), states}, reach.data(), &weights.ref(t - first, 0));
  }
  return weights;
}

}  // namespace headscope
