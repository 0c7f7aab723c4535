// Lightning Attention (Qin et al., TransNormerLLM, 2023; Lightning Attention-2, 2024; MiniMax-01, 2025): causal linear
// attention with a decay λ, o_t = Σ_{s ≤ t} λ^{t−s} (φ(q_t)·φ(k_s)) φ(v_s), computed in blocks of B rows: inside a
// block by the small B × B product and its mask (left product), everything before it by the state that the blocks pass
// on (right product), O = [(Q Kᵀ) ∘ M] V + Λ Q S, S ← λᴮ S + (Λ' K)ᵀ V. No prefix sum over tokens is needed. As in
// MiniMax-01: φ is SiLU, of queries, keys and values; λ < 1 is fixed for each head, λ = exp(−s (1 − l ÷ (L − 1 + ε) +
// ε)), s = 2^(−8 (h + 1) ÷ H), ε = 1e−5, for head h of H in layer l of L; each output row, all heads of the layer side
// by side, is divided by its root mean square; σ(x W) gates it. Ours: queries and keys take √scale each (the norm takes
// it off again); the gate as after_state.h says; the norm has no gains; heads of the layer that do not run this
// mechanism count in the norm as if they did. Shapes: B × B tiles, S (d, d_v). Cost: n B (d + d_v) + 2 n d d_v
// multiply-adds; state d d_v floats. Where one block holds the whole text, blocks of 2 are drawn; edits, timings and
// costs keep the chosen size.

#include "core/attention/mechanisms/lightning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanism_ticks.h"
#include "core/attention/mechanisms/after_state.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// One head of the layer, mapped.
struct Features {
  Tensor q, k, v;
  double decay;
};

/// λ of head h of H in layer l of L.
double own_decay(Index head, Index heads, Index layer, Index layers) {
  constexpr double epsilon = 1e-5;
  const double slope = std::exp2(-8 * static_cast<double>(head + 1) / static_cast<double>(heads));
  const double depth = 1 - static_cast<double>(layer) / (static_cast<double>(layers - 1) + epsilon) + epsilon;
  return std::exp(-slope * depth);
}

Features features_of(const MechanismInput& in, const MechanismValues& values, Index head) {
  const float root = std::sqrt(std::abs(in.scale));
  const Index map = values.whole("map");
  const auto phi = [map, root](float x) { return map == 0 ? root * silu(x) : map == 1 ? one_plus_elu(x) : root * x; };
  const bool own = head == in.head;
  const auto at = static_cast<std::size_t>(head);
  const Tensor& v = own ? in.v : in.layer->v[at];
  const double given = values.number("decay");
  return {each(own ? in.q : in.layer->q[at], phi), each(own ? in.k : in.layer->k[at], phi),
          values.whole("values") == 0 ? each(v, silu) : v,
          given > 0  ? given
          : in.layer ? own_decay(head, static_cast<Index>(in.layer->q.size()), in.layer->layer, in.layer->layers)
                     : own_decay(0, 1, 0, 1)};
}

/// Part of the output from inside the blocks and from before them.
struct LightningParts {
  Tensor intra, inter;
  std::vector<Tensor> states;  // before each block
};

LightningParts blocks(const MechanismInput& in, const Features& f, Index size) {
  const Index n = in.n(), d_v = in.d_v(), r = f.q.dim(1);
  LightningParts parts{Tensor::zeros({n, d_v}), Tensor::zeros({n, d_v}), {}};
  Tensor state = Tensor::zeros({r, d_v});
  for (Index begin = 0; begin < n; begin += size) {
    check(in);
    const Index end = std::min(begin + size, n), rows = end - begin;
    const Tensor q = f.q.slice(0, begin, end), v = f.v.slice(0, begin, end);
    parts.states.push_back(state);
    Tensor tile = product_t(q, f.k.slice(0, begin, end));  // (rows, rows)
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < rows; ++j)
        tile.ref(i, j) =
            j > i ? 0.0f : tile.at(i, j) * static_cast<float>(std::pow(f.decay, static_cast<double>(i - j)));
    const Tensor inside = product(tile, v), before = product(q, state);
    Tensor weighted = f.k.slice(0, begin, end).copy();  // λ^(end − 1 − s) k_s
    for (Index i = 0; i < rows; ++i) {
      const auto reach = static_cast<float>(std::pow(f.decay, static_cast<double>(i + 1)));
      const auto left = static_cast<float>(std::pow(f.decay, static_cast<double>(rows - 1 - i)));
      for (Index c = 0; c < d_v; ++c) {
        parts.intra.ref(begin + i, c) = inside.at(i, c);
        parts.inter.ref(begin + i, c) = reach * before.at(i, c);
      }
      for (Index c = 0; c < r; ++c) weighted.ref(i, c) *= left;
    }
    const Tensor added = product(weighted.transpose(0, 1), v);
    const auto fade = static_cast<float>(std::pow(f.decay, static_cast<double>(rows)));
    Tensor next = times(state, fade);
    for (std::size_t c = 0; c < next.values().size(); ++c) next.mutable_values()[c] += added.values()[c];
    state = next;
  }
  return parts;
}

Tensor sum_of(const LightningParts& parts) {
  return plus(parts.intra, parts.inter);
}

Index block_of(const MechanismInput& in, const MechanismValues& values) {
  return std::min(values.whole("block"), in.n());
}

/// Of the picture. One block that holds the whole text would show nothing of the method: then small ones are drawn.
Index drawn_block(Index n, const MechanismValues& values) {
  const Index size = values.whole("block");
  return size < n ? size : std::min<Index>(2, n);
}

Index drawn_blocks(Index n, const MechanismValues& values) {
  const Index size = drawn_block(n, values);
  return (n + size - 1) / size;
}

/// Rows of the blocks that are done; all others are still 0.
Index rows_done(const MechanismInput& in, const MechanismValues& values) {
  const double count = static_cast<double>(drawn_blocks(in.n(), values));
  return std::min(in.n(), static_cast<Index>(std::lround(values.number("done") * count)) * drawn_block(in.n(), values));
}

void clear_after(Tensor& x, Index rows) {
  for (Index i = rows; i < x.dim(0); ++i)
    for (Index c = 0; c < x.dim(1); ++c) x.ref(i, c) = 0;
}

/// Q, K and V are read and O is written once, block by block; the state stays in fast memory.
std::shared_ptr<const TileWork> work_of(const MechanismInput& in, const MechanismValues& values) {
  const Index n = in.n(), d = in.d(), d_v = in.d_v(), size = drawn_block(n, values), done = rows_done(in, values);
  using Role = ShapeChip::Role;
  TileWork work;
  work.tiles = drawn_blocks(n, values);
  work.done = (done + size - 1) / size;
  const KeyRange held{done > 0 ? (work.done - 1) * size : 0, done};
  const auto block = [&](const char* name, Role role, Index width) {
    return TileWork::Block{name, role, n, width, held, 4 * static_cast<double>(done * width)};
  };
  work.blocks = {block("Q", Role::query, d), block("K", Role::key, d), block("V", Role::value, d_v),
                 block("O", Role::output, d_v)};
  work.kept = {{"(Q Kᵀ) ∘ M", size, size}, {"S", d, d_v}};
  work.moved = 4 * static_cast<double>(done * 2 * (d + d_v));
  work.moved_in_all = work.one_tile = 4 * static_cast<double>(n * 2 * (d + d_v));
  work.plain = plain_cost({n, d, d_v}).moved_bytes;
  return std::make_shared<const TileWork>(std::move(work));
}

/// What each row is multiplied by: 1 ÷ its root mean square, over all heads or this one's `own` output; empty = no
/// norm.
std::vector<float> norm_factors(const MechanismInput& in, const MechanismValues& values, const Tensor& own) {
  if (!values.on("norm")) return {};
  std::vector<double> squares = row_squares(own);
  Index width = own.dim(1);
  if (in.layer && values.whole("norm-over") == 0)
    for (Index head = 0; head < static_cast<Index>(in.layer->q.size()); ++head) {
      if (head == in.head) continue;
      const Tensor other = sum_of(blocks(in, features_of(in, values, head), block_of(in, values)));
      const std::vector<double> more = row_squares(other);
      for (std::size_t i = 0; i < squares.size(); ++i) squares[i] += more[i];
      width += other.dim(1);
    }
  return rms_factors(squares, width);
}

}  // namespace

MechanismResult lightning_run(const MechanismInput& in, const MechanismValues& values, Detail detail) {
  need_causal(in, "lightning");
  const Features f = features_of(in, values, in.head);
  const Index size = detail == Detail::steps ? drawn_block(in.n(), values) : block_of(in, values);
  const LightningParts parts = blocks(in, f, size);
  const Tensor raw = sum_of(parts), gate = output_gate(in, values, GateCurve::sigmoid);
  const std::vector<float> factors = norm_factors(in, values, raw);
  MechanismResult result;
  result.kind = MapKind::effective;
  result.output = gated(factors.empty() ? raw : scaled_rows(raw, factors), gate);
  const Index done = rows_done(in, values);
  clear_after(result.output, done);
  result.output_is_weights_times_v = !gate.defined() && values.whole("values") == 1;
  if (detail == Detail::output) return result;
  const Tensor similarity = product_t(f.q, f.k);
  result.weights = Tensor::zeros({in.n(), in.m()});
  bool negative = false;
  for (Index i = 0; i < in.n(); ++i)
    for (Index j = 0; j <= i; ++j) {
      const float w = (factors.empty() ? 1 : nth(factors, i)) * similarity.at(i, j) *
                      static_cast<float>(std::pow(f.decay, static_cast<double>(i - j)));
      result.weights.ref(i, j) = w;
      negative = negative || w < 0;
    }
  clear_after(result.weights, done);
  // In the last layer λ is so near 1 that digits of it would hide that it is below.
  const std::string decay = f.decay < 1 && f.decay > 0.999 ? "1 − " + text(1 - f.decay) : text(f.decay);
  result.facts.push_back({said("Decay λ"), decay,
                          values.number("decay") > 0 ? said("as set, the same in every head")
                          : in.layer ? say("of head {} of {} in layer {} of {}", in.head, in.layer->q.size(),
                                           in.layer->layer, in.layer->layers)
                                     : said("of the one head of one layer")});
  if (detail != Detail::steps) return result;
  result.tiles = work_of(in, values);
  auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  add_inputs(result.steps, in);
  result.steps.push_back({.id = "phi-q",
                          .title = "φ(Q)",
                          .formula = said("the feature map"),
                          .value = f.q,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "phi-k",
                          .title = "φ(K)",
                          .formula = said("the feature map"),
                          .value = f.k,
                          .rows = MechanismAxis::key,
                          .columns = MechanismAxis::other});
  if (values.whole("values") == 0)
    result.steps.push_back({.id = "phi-v",
                            .title = "SiLU(V)",
                            .formula = said("values are mapped too"),
                            .value = f.v,
                            .rows = MechanismAxis::key,
                            .columns = MechanismAxis::dimension});
  Tensor inside = result.weights.copy(), before = result.weights.copy();
  auto inside_hidden = hidden, before_hidden = hidden;
  if (inside_hidden.empty())
    inside_hidden.assign(static_cast<std::size_t>(in.n() * in.m()), 0), before_hidden = inside_hidden;
  for (Index i = 0; i < in.n(); ++i)
    for (Index j = 0; j < in.m(); ++j) {
      const auto cell = static_cast<std::size_t>(i * in.m() + j);
      const bool same = i / size == j / size;
      (same ? before_hidden : inside_hidden)[cell] = 1;
      (same ? before : inside).ref(i, j) = 0;
    }
  result.steps.push_back({.id = "inside",
                          .title = said("Inside the blocks"),
                          .formula = said("(φ(Q) φ(K)ᵀ) ∘ M: left product, B × B at a time"),
                          .value = inside,
                          .masked = std::move(inside_hidden)});
  result.steps.push_back({.id = "state",
                          .title = done < in.n() ? said("S before the newest block") : said("S before the last block"),
                          .formula = "λᴮ S + Σ λ^… φ(k) vᵀ",
                          .value = nth(parts.states, done > 0 ? (done - 1) / size : 0),
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "before",
                          .title = said("Before the blocks"),
                          .formula = said("what φ(q) S stands for: right product, never built"),
                          .value = before,
                          .masked = std::move(before_hidden)});
  result.steps.push_back({.id = "weights",
                          .title = said("Effective weights"),
                          .formula = said("both, ÷ rms of the row where that is on"),
                          .value = result.weights,
                          .range = negative ? MechanismStep::Range::signed_values : MechanismStep::Range::positive,
                          .masked = std::move(hidden)});
  if (gate.defined()) result.steps.push_back(gate_step(gate, GateCurve::sigmoid));
  result.steps.push_back(output_step(result.output_is_weights_times_v ? result.weights : Tensor(), in.v, result.output,
                                     gate.defined() ? said("(inside + before) ⊙ gate") : said("inside + before")));
  return result;
}

Tensor lightning_output(const MechanismInput& in, const MechanismValues& values) {
  return lightning_run(in, values, Detail::output).output;
}

Recurrence lightning_recurrent(const MechanismInput& in, const MechanismValues& values) {
  need_causal(in, "lightning");
  const Features f = features_of(in, values, in.head);
  Recurrence result;
  const bool mapped = values.whole("values") == 0;
  result.update = fmt::format("Sₜ = λ Sₜ₋₁ + φ(kₜ) {}ᵀ", mapped ? "φ(vₜ)" : "vₜ");
  result.output = Tensor::zeros({in.n(), in.d_v()});
  Tensor state = Tensor::zeros({f.k.dim(1), in.d_v()});
  for (Index t = 0; t < in.n(); ++t) {
    state = times(state, static_cast<float>(f.decay));
    for (Index c = 0; c < state.dim(0); ++c)
      for (Index e = 0; e < in.d_v(); ++e) {
        state.ref(c, e) += f.k.at(t, c) * f.v.at(t, e);
        result.output.ref(t, e) += f.q.at(t, c) * state.at(c, e);
      }
    result.states.push_back(state);
  }
  const std::vector<float> factors = norm_factors(in, values, result.output);
  const Tensor gate = output_gate(in, values, GateCurve::sigmoid);
  if (!factors.empty()) result.output = scaled_rows(result.output, factors);
  result.output = gated(result.output, gate);
  clear_after(result.output, rows_done(in, values));
  result.readout =
      fmt::format("oₜ = φ(qₜ)ᵀ Sₜ{}{}", factors.empty() ? "" : said(", ÷ rms"), gate.defined() ? said(", ⊙ gate") : "");
  return result;
}

MechanismCost lightning_cost(const MechanismShape& s, const MechanismValues& values) {
  const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d), d_v = static_cast<double>(s.d_v);
  const double block = std::min(values.number("block"), n);
  return {n * block * (d + d_v) + 2 * n * d * d_v, d * d_v * 4, 0, 4 * 2 * n * (d + d_v)};
}

std::vector<ShapeChip> lightning_chips(const MechanismShape& s, const MechanismValues& values) {
  using Role = ShapeChip::Role;
  const Index block = std::min(values.whole("block"), s.n);
  return {chip(Role::query, said("Q block"), block, s.d),
          chip(Role::plain, said("(Q Kᵀ)∘M inside"), block, block),
          chip(Role::value, said("+ Q S before"), s.d, s.d_v, ""),
          chip(Role::output, "O", s.n, s.d_v),
          {Role::remark, say("{} blocks; never builds {}×{}", (s.n + block - 1) / block, s.n, s.n), ""}};
}

std::vector<MechanismParameter> lightning_parameters() {
  return {whole_parameter("block", to_say("Block B"),
                          to_say("Rows computed together; the result does not depend on it."), 1, 256, 8, true),
          number_parameter(
              "decay", to_say("Decay λ"),
              to_say("What a step back is multiplied by; 1 forgets nothing; 0: each head its own, as in MiniMax-01."),
              0, 1, 0),
          choice_parameter("map", to_say("Feature map φ"), to_say("Of queries and keys."),
                           {to_say("silu"), to_say("elu"), to_say("identity")}),
          choice_parameter("values", to_say("Map of values"), to_say("MiniMax-01 maps values too."),
                           {to_say("silu"), to_say("identity")}),
          toggle_parameter("norm", to_say("Normalise after"), to_say("Each output row ÷ its root mean square."), true),
          only_where(choice_parameter("norm-over", to_say("Norm over"),
                                      to_say("The row of all heads of the layer, as in MiniMax-01, or of this head."),
                                      {to_say("heads"), to_say("head")}),
                     [](const MechanismValues& v, const MechanismShape&) { return v.on("norm"); }),
          output_gate_parameter(),
          only_where(seed_parameter(to_say("of the output gate")),
                     [](const MechanismValues& v, const MechanismShape&) { return v.whole("output-gate") == 0; }),
          number_parameter("done", to_say("Blocks done"), to_say("How far the computation has come; 1 is the whole."),
                           0, 1, 1)};
}

Mechanism make_lightning() {
  Mechanism m;
  m.id = "lightning";
  m.title = to_say("Lightning Attention: blocks inside and between");
  m.name = to_say("Lightning (blocked)");
  m.group = to_say("Low rank & kernel");
  m.source = "Qin et al. 2024; MiniMax-01 2025";
  m.formula = "O = [(Q Kᵀ) ∘ M] V + Λ Q S,   S ← λᴮ S + (Λ′ K)ᵀ V";
  m.meaning = to_say(
      "Causal linear attention by blocks: inside a block the small matrix with its mask, before it a state that is "
      "passed on. So the sum over tokens runs at the speed of matrix products.");
  m.keywords = "MiniMax TransNormerLLM block intra inter Lightning Attention-2 linear tiling";
  m.ours = to_say(
      "The output gate is drawn, on the query in place of the layer's input; the norm has no learnt gains; queries and "
      "keys keep the head's scale, which the norm takes off.");
  m.parameters = lightning_parameters();
  m.run = lightning_run;
  m.output = lightning_output;
  m.ticks = [](const MechanismShape& s, const MechanismValues& v) { return drawn_blocks(s.rows(), v); };
  m.tick = to_say("block");
  m.recurrent = lightning_recurrent;
  m.cost = lightning_cost;
  m.chips = lightning_chips;
  m.needs_causal = true;
  m.note = [](const MechanismInput& in, const MechanismValues& v, const MechanismResult&) -> std::string {
    const double decay = v.number("decay");
    const std::string size =
        drawn_block(in.n(), v) < block_of(in, v)
            ? said("One block holds so short a text: blocks of 2 are drawn. Their size changes nothing.")
            : said("The size of the blocks changes nothing.");
    if (v.number("done") < 1)
      return said("Only the blocks done so far have an output: the rows below them are still 0.");
    if (decay == 0)
      return say(
          "Each head has a decay of its own: the first heads of a layer forget soon, the last ones late, and "
          "the last layer's hardly at all. {}",
          size);
    return decay < 1 ? say("The decay fades what lies far back: {} of a weight is left after 10 tokens. {}",
                           text(std::pow(decay, 10.0)), size)
                     : size;
  };
  return m;
}

Mechanism make_hybrid() {
  Mechanism m = make_lightning();
  m.id = "hybrid";
  m.title = to_say("Hybrid 7 : 1: linear layers, every eighth softmax");
  m.name = to_say("Hybrid 7 : 1 (MiniMax-01)");
  m.source = "MiniMax 2025";
  m.formula = to_say("layers 8k + 7: softmax;  all others: Lightning Attention");
  m.meaning = to_say(
      "A state of fixed size cannot recall everything. One softmax layer in eight gives exact recall back, and the "
      "cost stays near linear. In the model: choose which layers keep softmax.");
  m.keywords =
      "hybrid attention MiniMax-01 lightning 7:1 architecture softmax layers parameters and FLOPs of a whole model "
      "cost";
  m.parameters.push_back(
      whole_parameter("every", to_say("Softmax every"), to_say("One layer of so many keeps softmax."), 1, 32, 8));
  m.cost = [](const MechanismShape& s, const MechanismValues& v) {
    MechanismCost cost = lightning_cost(s, v);
    const MechanismCost plain = plain_cost(s);
    const double share = 1 / v.number("every");
    const auto mixed = [share](double linear, double softmax) { return (1 - share) * linear + share * softmax; };
    return MechanismCost{mixed(cost.multiply_adds, plain.multiply_adds), mixed(cost.state_bytes, 0),
                         mixed(0, plain.cache_bytes), mixed(cost.moved_bytes, plain.moved_bytes)};
  };
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult&) -> std::string {
    return say(
        "Shown is one of the linear layers; cost is the mean over layers, one in {} softmax. In the model lays this "
        "pattern over the layers.",
        text(v.number("every")));
  };
  return m;
}

}  // namespace headscope::mechanism
