// FlashAttention (Dao, Fu, Ermon, Rudra & Ré, FlashAttention: Fast and Memory-Efficient Exact Attention with
// IO-Awareness, 2022; loop order of FlashAttention-2, Dao 2023): for every block of B_r rows, all blocks of B_c keys
// are visited in turn and folded into the running maximum m, sum l and output O of the rows. The result is exactly
// softmax(QKᵀ/√d)V; the n × m scores never exist. Blocks that the mask hides altogether are skipped.
// Shapes: tile (B_r, B_c); m, l (n, 1); O (n, d_v). Cost: the multiply-adds of softmax attention. Moved: Q and O once,
// K and V once for every block of rows: 4 (n d + n d_v + ⌈n/B_r⌉ m (d + d_v)) bytes, in place of 4 n m for each of the
// four trips of the n × m matrices.
// The tile follows from the M numbers that fast memory holds: B_c = min(d, m) keys, and as many rows as there is room
// for beside them, B_r (B_c + d + d_v) + B_c (d + d_v) ≤ M. Then B_r grows with M/d, and Θ(n² d² / M) numbers are
// moved, as Theorem 2 of the first paper says. The usual M is the 192 KiB of a multiprocessor of an A100 (there,
// section 2.1). Where fast memory holds the whole text nothing is seen of the method: for the picture, and where only
// some tiles are done, tiles of `rows` × `columns` are then computed; edits, timings and costs keep the tile from
// memory.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_ticks.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/online_softmax.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

struct Tiles {
  Index rows, columns, down, across;
  Tiles(const MechanismShape& s, Index m, const MechanismValues& v, bool fit) {
    rows = v.whole("rows"), columns = v.whole("columns");
    if (fit) {
      const Index numbers = v.whole("memory") * 1024 / 4, width = s.d + s.d_v;
      columns = std::min(s.d, m);
      // A memory too small for d keys holds fewer of them, and one row.
      if (columns * (width + 1) + width > numbers) columns = std::max<Index>(1, (numbers - width) / (width + 1));
      rows = std::max<Index>(1, (numbers - columns * width) / (columns + width));
    }
    rows = std::min(rows, s.n), columns = std::min(columns, m);
    down = (s.n + rows - 1) / rows;
    across = (m + columns - 1) / columns;
  }
  Tiles(const MechanismShape& s, Index m, const MechanismValues& v) : Tiles(s, m, v, v.on("fit")) {}
  Index count() const { return down * across; }
  KeyRange row_range(Index tile, Index n) const {
    const Index begin = tile / across * rows;
    return {begin, std::min(begin + rows, n)};
  }
  KeyRange key_range(Index tile, Index m) const {
    const Index begin = tile % across * columns;
    return {begin, std::min(begin + columns, m)};
  }
};

/// Whether fast memory holds the whole text: Q, K, V, O and every score.
bool holds_all(const MechanismShape& s, const MechanismValues& v) {
  return s.rows() * s.n + (s.rows() + s.n) * (s.d + s.d_v) <= v.whole("memory") * 1024 / 4;
}
bool chosen_tiles(const MechanismValues& v, const MechanismShape& s) {
  return !v.on("fit") || holds_all(s, v);
}
/// The tiles of the picture, of `s.rows()` queries.
Tiles shown_tiles(const MechanismShape& s, const MechanismValues& v) {
  return {{s.rows(), s.d, s.d_v}, s.n, v, !chosen_tiles(v, s)};
}
MechanismShape shape_of(const MechanismInput& in) {
  return {in.m(), in.d(), in.d_v(), in.n()};
}

double moved_bytes(Index n, Index m, Index d, Index d_v, Index blocks_of_rows) {
  return 4 * (static_cast<double>(n) * static_cast<double>(d + d_v) +
              static_cast<double>(blocks_of_rows) * static_cast<double>(m) * static_cast<double>(d + d_v));
}

std::string bytes(double value) {
  return value < 1e3   ? fmt::format("{:.0f} B", value)
         : value < 1e6 ? fmt::format("{:.1f} kB", value / 1e3)
         : value < 1e9 ? fmt::format("{:.1f} MB", value / 1e6)
                       : fmt::format("{:.1f} GB", value / 1e9);
}

Tensor finite(const Tensor& x) {
  return each(x, [](float value) { return std::isfinite(value) ? value : 0.0f; });
}

/// Bytes of `rows` rows of `width` numbers, with a note of it.
void cross(TileWork::Block& block, double& moved, Index rows) {
  const double bytes_of = 4 * static_cast<double>(rows * block.width);
  block.crossed += bytes_of;
  moved += bytes_of;
}

MechanismResult run_flash(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const Index n = in.n(), m = in.m();
  const bool shown = detail == Detail::steps || values.number("done") < 1;
  const Tiles tiles = shown ? shown_tiles(shape_of(in), values) : Tiles({n, in.d(), in.d_v()}, m, values);
  const auto upto = static_cast<Index>(std::lround(values.number("done") * static_cast<double>(tiles.count())));
  OnlineSoftmax state(n, in.d_v());
  std::vector<std::uint8_t> done(static_cast<std::size_t>(n * m), 0);
  // 0 = not reached yet; a shade for skipped, done, and the newest
  Tensor schedule = Tensor::zeros({tiles.down, tiles.across});
  using Role = ShapeChip::Role;
  TileWork work;
  work.done = upto, work.tiles = tiles.count();
  work.blocks = {{"Q", Role::query, n, in.d()},
                 {"K", Role::key, m, in.d()},
                 {"V", Role::value, m, in.d_v()},
                 {"O", Role::output, n, in.d_v()}};
  TileWork::Block &q = work.blocks[0], &k = work.blocks[1], &v = work.blocks[2], &o = work.blocks[3];
  Index skipped = 0;
  for (Index tile = 0; tile < upto; ++tile) {
    check(in);
    const KeyRange rows = tiles.row_range(tile, n), keys = tiles.key_range(tile, m);
    const bool newest = tile + 1 == upto;
    const Tensor max_before = newest ? state.max.copy() : Tensor(), sum_before = newest ? state.sum.copy() : Tensor();
    const bool needed = state.add(in, rows, keys);
    skipped += !needed;
    schedule.ref(tile / tiles.across, tile % tiles.across) = !needed ? 0.25f : newest ? 1.0f : 0.6f;
    for (Index i = rows.begin; i < rows.end; ++i)
      for (Index j = keys.begin; j < keys.end; ++j) nth(done, i * m + j) = 1;
    if (tile % tiles.across == 0) cross(q, work.moved, rows.size());
    if (needed) cross(k, work.moved, keys.size()), cross(v, work.moved, keys.size());
    if (tile % tiles.across == tiles.across - 1) cross(o, work.moved, rows.size());
    if (!newest) continue;
    work.skipped = !needed;
    q.held = o.held = rows;
    if (needed) k.held = v.held = keys;
    const Index last = rows.end - 1;
    work.row = {last,
                max_before.at(last, 0),
                state.max.at(last, 0),
                sum_before.at(last, 0),
                state.sum.at(last, 0),
                state.newest.at(last, 0)};
  }
  MechanismResult result;
  result.output = state.output();
  if (detail == Detail::output) return result;
  result.weights = online_weights(in, state, done);
  const double flash = moved_bytes(n, m, in.d(), in.d_v(), tiles.down);
  const double plain = plain_cost({n, in.d(), in.d_v()}).moved_bytes;
  work.kept = {{"scores", tiles.rows, tiles.columns}, {"m, l", tiles.rows, 2}};
  work.moved_in_all = flash, work.plain = plain, work.one_tile = moved_bytes(n, m, in.d(), in.d_v(), 1);
  result.facts = {
      {said("Tiles"), say("{} of {} done, {} skipped", upto, tiles.count(), skipped),
       said("a tile is skipped when the mask hides all of it")},
      {said("Bytes moved"), say("{} against {}", bytes(flash), bytes(plain)),
       said("slow memory, float32: Q, O once, K and V for every block of rows; plain: the n × m matrices written and "
            "read")},
      {said("On the chip"),
       bytes(4.0 * static_cast<double>(tiles.rows * tiles.columns + (tiles.rows + tiles.columns) * in.d() +
                                       (tiles.rows + tiles.columns) * in.d_v())),
       say("tiles of {} × {}: 4 (B_r B_c + (B_r + B_c)(d + d_v)), one tile of scores, its blocks of Q, K, V and O",
           tiles.rows, tiles.columns)}};
  if (detail != Detail::steps) return result;
  result.tiles = std::make_shared<const TileWork>(std::move(work));
  add_inputs(result.steps, in);
  result.steps.push_back({.id = "schedule",
                          .title = said("Tiles"),
                          .formula = said("bright: the newest; dim: skipped"),
                          .value = schedule,
                          .range = MechanismStep::Range::probability,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other});
  Tensor scores = raw_scores(in);
  apply_rule(*in.rule, scores);
  std::vector<std::uint8_t> hidden(done.size());
  for (std::size_t c = 0; c < done.size(); ++c)
    hidden[c] = !done[c] || scores.values()[c] == -std::numeric_limits<float>::infinity();
  hide(hidden, scores);
  result.steps.push_back({.id = "scores",
                          .title = said("Scores so far"),
                          .formula = said("one tile at a time; never stored whole"),
                          .value = scores,
                          .masked = hidden,
                          .explain = explain_product_t(in.q, in.k, static_cast<double>(in.scale))});
  result.steps.push_back({.id = "max",
                          .title = "m",
                          .formula = said("running maximum of the row"),
                          .value = finite(state.max),
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "sum",
                          .title = "l",
                          .formula = "Σ exp(s − m)",
                          .value = state.sum,
                          .range = MechanismStep::Range::positive,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "mixed",
                          .title = said("O before ÷ l"),
                          .formula = said("Σ exp(s − m) v, rescaled when m rises"),
                          .value = state.mixed,
                          .columns = MechanismAxis::dimension});
  add_weights_so_far(result, in, std::move(hidden));
  return result;
}

}  // namespace

Mechanism make_flash() {
  Mechanism m;
  m.id = "flash";
  m.title = to_say("FlashAttention: tiles and online softmax");
  m.name = to_say("FlashAttention (tiles)");
  m.group = to_say("Exact softmax");
  m.source = "Dao et al. 2022, 2023";
  m.formula = "m ← max(m, s),  l ← e^(m₀−m) l + Σ e^(s−m),  O ← e^(m₀−m) O + e^(s−m) V";
  m.meaning = to_say(
      "The same numbers as softmax attention, a tile at a time: a running maximum and sum make each tile forgettable, "
      "so the n × n matrix is never written to memory.");
  m.keywords =
      "flash attention tiling online softmax IO-aware FlashAttention-2 tiles HBM SRAM fast memory efficient "
      "recomputation memory-efficient";
  m.parameters = {
      toggle_parameter("fit", to_say("Tile from memory"),
                       to_say("The largest tile that the memory below holds; off: as chosen."), true),
      only_where(whole_parameter("memory", to_say("Fast memory, KiB"),
                                 to_say("On the chip; an A100 has 192 for each multiprocessor."), 1, 1024, 192, true),
                 [](const MechanismValues& v, const MechanismShape&) { return v.on("fit"); }),
      only_where(whole_parameter(
                     "rows", to_say("Rows of a tile"),
                     to_say("B_r: queries that are held at once; of the tiles drawn, where memory holds the text."), 1,
                     128, 2, true),
                 chosen_tiles),
      only_where(whole_parameter("columns", to_say("Keys of a tile"), to_say("B_c: keys that are folded in at once."),
                                 1, 128, 2, true),
                 chosen_tiles),
      number_parameter("done", to_say("Tiles done"), to_say("How far the computation has come; 1 is the whole."), 0, 1,
                       1)};
  m.run = run_flash;
  m.ticks = [](const MechanismShape& s, const MechanismValues& v) { return shown_tiles(s, v).count(); };
  m.tick = to_say("tile");
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    MechanismCost cost = plain_cost(s);
    cost.moved_bytes = moved_bytes(s.n, s.n, s.d, s.d_v, Tiles(s, s.n, v).down);
    return cost;
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    using Role = ShapeChip::Role;
    const Tiles tiles(s, s.n, v);
    return std::vector<ShapeChip>{chip(Role::query, said("Q block"), tiles.rows, s.d),
                                  chip(Role::key, said("tile of scores"), tiles.rows, tiles.columns),
                                  chip(Role::plain, "m, l", tiles.rows, 2),
                                  chip(Role::value, "+ e^(s−m) V", tiles.rows, s.d_v, "→"),
                                  chip(Role::output, "O", s.rows(), s.d_v),
                                  {Role::remark, say("never stores {}×{}", s.rows(), s.n), ""}};
  };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult&) -> std::string {
    if (v.number("done") < 1)
      return said("Only the tiles done so far count: rows whose tiles are missing will change.");
    if (v.on("fit") && chosen_tiles(v, shape_of(in)))
      return said(
          "The result is softmax attention's up to rounding. The chip would hold so short a text whole: small tiles "
          "are drawn, which read K and V more often. Steps plays them one by one.");
    return said(
        "All tiles are done, and the result is softmax attention's up to rounding. Steps lets you "
        "go back over the tiles.");
  };
  return m;
}

}  // namespace headscope::mechanism
