// Ring attention (Liu, Zaharia & Abbeel, Ring Attention with Blockwise Transformers for Near-Infinite Context, 2023):
// the text is split over P workers; each keeps its queries and passes the keys and values on to its neighbour, round
// after round, folding what it holds into its online softmax. After P rounds every worker has seen every key: the
// result is exactly softmax attention's. Under a causal mask a worker has nothing to do with keys that lie after its
// queries. Shapes: blocks of ⌈n/P⌉ rows. Cost: softmax attention's multiply-adds over P workers; each round every
// worker sends and receives 4 ⌈n/P⌉ (d + d_v) bytes, while it computes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_ticks.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/online_softmax.h"
#include "core/base/nth.h"

namespace headscope::mechanism {

namespace {

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
  Index idle = 0, worked = 0;
  RingRound ring;
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
      const bool needed = rows.size() > 0 && keys.size() > 0 && state.add(in, rows, keys);
      busy.ref(worker, round) = needed ? 1.0f : 0.15f;
      ++(needed ? worked : idle);
      RingRound::Worker& at = nth(ring.workers, worker);
      at.keys = keys, at.of = holds, at.works = needed, at.met += needed;
      for (Index i = rows.begin; i < rows.end; ++i)
        for (Index j = keys.begin; j < keys.end; ++j) nth(done, i * m + j) = 1;
    }
  MechanismResult result;
  result.output = state.output();
  if (detail == Detail::output) return result;
  result.weights = online_weights(in, state, done);
  const KeyRange one = part(m, 0);
  result.facts = {
      {"Idle",
       fmt::format("{:.0f} % of worker rounds",
                   worked + idle ? 100.0 * static_cast<double>(idle) / static_cast<double>(worked + idle) : 0.0),
       "rounds in which a worker holds keys that the mask hides from all its queries"},
      {"Sent per round", fmt::format("{} B per worker", 4 * one.size() * (in.d() + in.d_v())),
       "keys and values of one block in float32"}};
  if (detail != Detail::steps) return result;
  ring.sent = 4.0 * static_cast<double>(std::max<Index>(rounds - 1, 0) * one.size() * (in.d() + in.d_v()));
  result.ring = std::make_shared<const RingRound>(std::move(ring));
  add_inputs(result.steps, in);
  std::vector<std::uint8_t> later(static_cast<std::size_t>(workers * workers), 0);
  for (Index w = 0; w < workers; ++w)
    for (Index r = rounds; r < workers; ++r) nth(later, w * workers + r) = 1;
  result.steps.push_back({.id = "schedule",
                          .title = "Schedule",
                          .formula = "row: worker, column: round; colour: whose keys it holds",
                          .value = schedule,
                          .range = MechanismStep::Range::positive,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other,
                          .masked = later,
                          .explain = [part, n, m, schedule](Index worker, Index round) {
                            const auto holds = static_cast<Index>(schedule.at(worker, round));
                            const KeyRange rows = part(n, worker), keys = part(m, holds);
                            return fmt::format("round {}: worker {} (queries {}–{}) holds keys {}–{} of worker {}",
                                               round + 1, worker, rows.begin, rows.end - 1, keys.begin, keys.end - 1,
                                               holds);
                          }});
  result.steps.push_back({.id = "busy",
                          .title = "Work",
                          .formula = "dim: the mask leaves nothing to do",
                          .value = busy,
                          .range = MechanismStep::Range::probability,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other,
                          .masked = std::move(later)});
  std::vector<std::uint8_t> hidden = hidden_cells(*in.rule, n, m);
  if (hidden.empty()) hidden.assign(done.size(), 0);
  for (std::size_t c = 0; c < done.size(); ++c) hidden[c] = hidden[c] || !done[c];
  result.steps.push_back({.id = "sum",
                          .title = "l",
                          .formula = "running Σ exp(s − m) of each row",
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
  m.title = "Ring attention over P workers";
  m.name = "Ring attention";
  m.group = "Exact softmax";
  m.source = "Liu et al. 2023";
  m.formula = "worker w, round r: fold in the keys of worker (w − r) mod P";
  m.meaning =
      "The text is split over workers that sit in a ring. Keys and values travel round it; after P rounds each worker "
      "has seen all of them, and the result is exactly softmax attention's.";
  m.keywords =
      "ring attention distributed sequence parallel blockwise context parallelism parallelism devices workers long "
      "context";
  m.parameters = {whole_parameter("workers", "Workers P", "Parts that the text is split into.", 1, 16, 4),
                  whole_parameter("rounds", "Rounds done", "From P on the result is whole.", 0, 16, 16)};
  m.run = run_ring;
  m.ticks = [](const MechanismShape& s, const MechanismValues& v) {
    return std::min({v.whole("workers"), s.n, s.rows()});
  };
  m.tick = "round";
  m.score_edits = ScoreEdits::all;
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    MechanismCost cost = plain_cost(s);
    const double workers = v.number("workers");
    cost.cache_bytes /= workers;  // each worker holds one block at a time
    cost.moved_bytes = 4 * static_cast<double>(s.n) * static_cast<double>(s.d + s.d_v) * (workers + 1);
    return cost;
  };
  m.chips = [](const MechanismShape& s, const MechanismValues& v) {
    using Role = ShapeChip::Role;
    const Index block = (s.n + v.whole("workers") - 1) / v.whole("workers");
    return std::vector<ShapeChip>{
        chip(Role::query, "Q block", block, s.d),
        chip(Role::key, "K, V in passing", block, s.d + s.d_v),
        chip(Role::plain, "m, l", block, 2),
        chip(Role::output, "O", s.rows(), s.d_v),
        {Role::remark, fmt::format("{} workers, {} rounds", v.whole("workers"), v.whole("workers")), ""}};
  };
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult& r) -> std::string {
    if (v.number("rounds") < std::min({v.number("workers"), static_cast<double>(in.n())}))
      return "Some keys have not come round yet: rows still lack their weight.";
    return r.facts.empty() ? ""
                           : "Every key has come round: the result is softmax attention's. " + r.facts[0].value +
                                 " had nothing to do.";
  };
  return m;
}

}  // namespace headscope::mechanism
