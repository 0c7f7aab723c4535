// Ring attention (Liu, Zaharia & Abbeel, Ring Attention with Blockwise Transformers for Near-Infinite Context, 2023):
// the text is split over P workers; each keeps its queries and passes the keys and values on to its neighbour, round
// after round, folding what it holds into its online softmax. After P rounds every worker has seen every key: the
// result is exactly softmax attention's. Under a causal mask a worker has nothing to do with keys that lie after its
// queries. Shapes: blocks of ⌈n/P⌉ rows. Cost: softmax attention's multiply-adds over P workers; each round every
// worker sends and receives 4 ⌈n/P⌉ (d + d_v) bytes, while it computes.
// Several texts may be packed into the row (varlen ring attention: MiniMax-01, 2025, whose texts lie one behind another
// without padding): blocks are cut from the whole row, a block may hold the end of one text and the beginning of the
// next, and of what it holds a worker folds in the keys of each text into that text's queries alone; other cells are
// never computed. The result is softmax attention of each text by itself. A ring for each text would pad it to a
// multiple of 2 P tokens (two stretches a worker, so that causal work is even).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_ticks.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/online_softmax.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// Where the texts begin and, last, where the row ends (cu_seqlens): `texts` of them, as long as 1 : 2 : 3 : … of the
/// row, each of a token at least; one where queries and keys are not the same row.
std::vector<Index> ends_of_texts(Index queries, Index keys, Index texts) {
  const Index count = queries == keys ? std::min(texts, keys) : 1;
  std::vector<Index> ends{0};
  for (Index t = 1; t <= count; ++t)
    ends.push_back(std::clamp(keys * t * (t + 1) / (count * (count + 1)), ends.back() + 1, keys - (count - t)));
  return ends;
}

KeyRange met(KeyRange a, KeyRange b) {
  const Index begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// What the packing saves and how evenly the work lies.
void add_packing_facts(MechanismResult& result, const std::vector<Index>& ends, Index workers,
                       const std::vector<double>& cells, double never) {
  const double most = *std::ranges::max_element(cells);
  const double mean = std::accumulate(cells.begin(), cells.end(), 0.0) / static_cast<double>(cells.size());
  result.facts.push_back({said("Busiest worker"), mean > 0 ? say("{:.2f} × the mean", most / mean) : "–",
                          say("cells that each worker computes: {:g}", fmt::join(cells, ", "))});
  if (ends.size() <= 2) return;
  std::vector<Index> lengths;
  Index padding = 0;
  for (std::size_t t = 1; t < ends.size(); ++t) {
    lengths.push_back(ends[t] - ends[t - 1]);
    padding += (2 * workers - lengths.back() % (2 * workers)) % (2 * workers);
  }
  result.facts.push_back({said("Texts"), say("{} tokens", fmt::join(lengths, ", ")),
                          say("they begin at (cu_seqlens): {}", fmt::join(ends, ", "))});
  result.facts.push_back(
      {said("Never computed"), say("{:g} cells", never), said("cells that the mask shows, between different texts")});
  result.facts.push_back({said("A ring for each text"), say("{} tokens of padding", padding),
                          say("each text to a multiple of 2 P = {}; packed: none", 2 * workers)});
}

MechanismResult run_ring(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  const Index n = in.n(), m = in.m(), workers = std::min({values.whole("workers"), n, m});
  const Index rounds = std::min(workers, values.whole("rounds"));
  const auto part = [workers](Index size, Index worker) {
    const Index step = (size + workers - 1) / workers;
    return KeyRange{std::min(worker * step, size), std::min((worker + 1) * step, size)};
  };
  OnlineSoftmax state(n, in.d_v());
  std::vector<std::uint8_t> done(static_cast<std::size_t>(n * m), 0);
  Tensor schedule = Tensor::zeros({workers, workers}), busy = Tensor::zeros({workers, workers});
  Tensor cells = Tensor::zeros({workers, workers});
  Index idle = 0, worked = 0;
  const std::vector<Index> ends = ends_of_texts(n, m, values.whole("texts"));
  // Which cells the mask hides, for counting; outputs alone need it not.
  const std::vector<std::uint8_t> unseen =
      detail == Detail::output ? std::vector<std::uint8_t>{} : hidden_cells(*in.rule, n, m);
  RingRound ring;
  ring.texts = ends;
  ring.done = rounds, ring.rounds = workers;
  for (Index worker = 0; worker < workers; ++worker)  // before the first round each holds its own
    ring.workers.push_back({part(n, worker), part(m, worker), worker, false, 0});
  for (Index round = 0; round < workers; ++round)
    for (Index worker = 0; worker < workers; ++worker) {
      check(in);
      // Keys move on by one worker each round, so this one holds those of the neighbour `round` places before.
      const Index holds = (worker - round + workers) % workers;
      schedule.ref(worker, round) = static_cast<float>(holds);
      if (round >= rounds) continue;
      const KeyRange rows = part(n, worker), keys = part(m, holds);
      bool needed = false;
      double seen = 0;
      for (std::size_t t = 1; t < ends.size(); ++t) {
        const KeyRange text{ends[t - 1], ends[t]};
        const KeyRange own = ends.size() == 2 ? rows : met(rows, text),
                       others = ends.size() == 2 ? keys : met(keys, text);
        if (own.size() == 0 || others.size() == 0) continue;
        needed = state.add(in, own, others) || needed;
        for (Index i = own.begin; i < own.end; ++i)
          for (Index j = others.begin; j < others.end; ++j) {
            nth(done, i * m + j) = 1;
            seen += unseen.empty() || !nth(unseen, i * m + j);
          }
      }
      cells.ref(worker, round) = static_cast<float>(seen);
      busy.ref(worker, round) = needed ? 1.0f : 0.15f;
      ++(needed ? worked : idle);
      RingRound::Worker& at = nth(ring.workers, worker);
      at.keys = keys, at.of = holds, at.works = needed, at.met += needed, at.cells += seen;
    }
  MechanismResult result;
  result.output = state.output();
  if (detail == Detail::output) return result;
  result.weights = online_weights(in, state, done);
  const KeyRange one = part(m, 0);
  result.facts = {{said("Idle"),
                   say("{:.0f} % of worker rounds",
                       worked + idle ? 100.0 * static_cast<double>(idle) / static_cast<double>(worked + idle) : 0.0),
                   said("rounds in which a worker holds no key that any of its queries sees")},
                  {said("Sent per round"), say("{} B per worker", 4 * one.size() * (in.d() + in.d_v())),
                   said("keys and values of one block in float32")}};
  std::vector<double> work;
  for (const RingRound::Worker& worker : ring.workers) work.push_back(worker.cells);
  double never = 0;
  for (Index i = 0; i < n && ends.size() > 2; ++i)
    for (Index j = 0; j < m; ++j) {
      const auto text_of = [&](Index at) { return std::ranges::upper_bound(ends, at) - ends.begin(); };
      never += text_of(i) != text_of(j) && (unseen.empty() || !nth(unseen, i * m + j));
    }
  add_packing_facts(result, ends, workers, work, never);
  if (detail != Detail::steps) return result;
  ring.sent = 4.0 * static_cast<double>(std::max<Index>(rounds - 1, 0) * one.size() * (in.d() + in.d_v()));
  result.ring = std::make_shared<const RingRound>(std::move(ring));
  add_inputs(result.steps, in);
  std::vector<std::uint8_t> later(static_cast<std::size_t>(workers * workers), 0);
  for (Index w = 0; w < workers; ++w)
    for (Index r = rounds; r < workers; ++r) nth(later, w * workers + r) = 1;
  result.steps.push_back({.id = "schedule",
                          .title = said("Schedule"),
                          .formula = said("row: worker, column: round; colour: whose keys it holds"),
                          .value = schedule,
                          .range = MechanismStep::Range::positive,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other,
                          .masked = later,
                          .explain = [part, n, m, schedule](Index worker, Index round) {
                            const auto holds = static_cast<Index>(schedule.at(worker, round));
                            const KeyRange rows = part(n, worker), keys = part(m, holds);
                            return say("round {}: worker {} (queries {}–{}) holds keys {}–{} of worker {}", round + 1,
                                       worker, rows.begin, rows.end - 1, keys.begin, keys.end - 1, holds);
                          }});
  result.steps.push_back({.id = "busy",
                          .title = said("Work"),
                          .formula = said("dim: none of its queries sees a key it holds"),
                          .value = busy,
                          .range = MechanismStep::Range::probability,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other,
                          .masked = later});
  result.steps.push_back({.id = "cells",
                          .title = said("Cells"),
                          .formula = said("scores that a worker computes in a round"),
                          .value = cells,
                          .range = MechanismStep::Range::positive,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other,
                          .masked = std::move(later)});
  std::vector<std::uint8_t> hidden = unseen;
  if (hidden.empty()) hidden.assign(done.size(), 0);
  for (std::size_t c = 0; c < done.size(); ++c) hidden[c] = hidden[c] || !done[c];
  result.steps.push_back({.id = "sum",
                          .title = "l",
                          .formula = said("running Σ exp(s − m) of each row"),
                          .value = state.sum,
                          .range = MechanismStep::Range::positive,
                          .columns = MechanismAxis::other});
  add_weights_so_far(result, in, std::move(hidden));
  return result;
}

}  // namespace

Mechanism make_ring() {
  Mechanism m;
  m.id = "ring";
  m.title = to_say("Ring attention over P workers");
  m.name = to_say("Ring attention");
  m.group = to_say("Exact softmax");
  m.source = "Liu et al. 2023";
  m.formula = to_say("worker w, round r: fold in the keys of worker (w − r) mod P");
  m.meaning = to_say(
      "The text is split over workers that sit in a ring. Keys and values travel round it; after P rounds each worker "
      "has seen all of them, and the result is exactly softmax attention's.");
  m.keywords =
      "ring attention distributed sequence parallel blockwise context parallelism parallelism devices workers long "
      "context varlen packing cu_seqlens packed sequences several texts";
  m.parameters = {
      whole_parameter("workers", to_say("Workers P"), to_say("Parts that the text is split into."), 1, 16, 4),
      whole_parameter("rounds", to_say("Rounds done"), to_say("From P on the result is whole."), 0, 16, 16),
      only_where(
          whole_parameter("texts", to_say("Texts packed"),
                          to_say("Packed one behind another, as long as 1 : 2 : 3 : …; none sees another."), 1, 16, 1),
          [](const MechanismValues&, const MechanismShape& s) { return s.rows() == s.n; })};
  m.run = run_ring;
  m.ticks = [](const MechanismShape& s, const MechanismValues& v) {
    return std::min({v.whole("workers"), s.n, s.rows()});
  };
  m.tick = to_say("round");
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    MechanismCost cost = plain_cost(s);
    const double workers = v.number("workers");
    const std::vector<Index> ends = ends_of_texts(s.rows(), s.n, v.whole("texts"));
    double pairs = 0;  // of one text
    for (std::size_t t = 1; t < ends.size(); ++t)
      pairs += static_cast<double>(ends[t] - ends[t - 1]) * static_cast<double>(ends[t] - ends[t - 1]);
    cost.multiply_adds = pairs * static_cast<double>(s.d + s.d_v);
    cost.cache_bytes /= workers;  // each worker holds one block at a time
    cost.moved_bytes = 4 * static_cast<double>(s.n) * static_cast<double>(s.d + s.d_v) * (workers + 1);
    return cost;
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    using Role = ShapeChip::Role;
    const Index block = (s.n + v.whole("workers") - 1) / v.whole("workers");
    return std::vector<ShapeChip>{
        chip(Role::query, said("Q block"), block, s.d),
        chip(Role::key, said("K, V in passing"), block, s.d + s.d_v),
        chip(Role::plain, "m, l", block, 2),
        chip(Role::output, "O", s.rows(), s.d_v),
        {Role::remark, say("{} workers, {} rounds", v.whole("workers"), v.whole("workers")), ""}};
  };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult& r) -> std::string {
    if (v.number("rounds") < std::min({v.number("workers"), static_cast<double>(in.n())}))
      return said("Some keys have not come round yet: rows still lack their weight.");
    if (r.facts.empty()) return "";
    const bool packed = v.number("texts") > 1 && in.n() == in.m();
    return say("Every key has come round: the result is softmax attention's{}. {} had nothing to do.",
               packed ? said(", each text by itself") : "", r.facts[0].value);
  };
  return m;
}

}  // namespace headscope::mechanism
