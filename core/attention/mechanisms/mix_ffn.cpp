// Convolution in place of positions (Xie et al., SegFormer, 2021: Mix-FFN; Xie et al., SANA, 2024): attention without
// positions cannot tell a picture from its patches shuffled, attention(P X) = P attention(X). A 3 × 3 depth-wise
// convolution in the feed-forward part can: each channel of a patch meets the eight patches around it, padded with 0.
//   Y = X + softmax(X Xᵀ ÷ √d) X,   Z = Y + silu(conv₃ₓ₃(Y)).
// Ours: a head has no feed-forward part; nine numbers a channel are drawn, N(0, 1/9), the 1 × 1 convolutions before and
// behind, which act on each patch alone, are left out. X: the last g² keys of the input, g² the largest square among
// them, so that a class token before the patches is passed over.
// Shapes: X, Y, Z (g², d). Cost: 9 g² d beside attention's.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

struct Grid {
  Index side, skipped;
  explicit Grid(Index tokens)
      : side(static_cast<Index>(std::sqrt(static_cast<double>(tokens)))), skipped(tokens - side * side) {}
};

Tensor mixed(const Tensor& x) {
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(x.dim(1))));
  return plus(x, product(softmax_rows(times(product_t(x, x), scale)), x));
}

/// Each channel by its own 3 × 3 numbers `w` (9, d), zeros around the picture.
Tensor convolved(const Tensor& y, const Tensor& w, Index side) {
  Tensor out = Tensor::zeros(y.shape());
  for (Index r = 0; r < side; ++r)
    for (Index c = 0; c < side; ++c)
      for (Index dr = -1; dr <= 1; ++dr)
        for (Index dc = -1; dc <= 1; ++dc) {
          const Index row = r + dr, column = c + dc;
          if (row < 0 || row >= side || column < 0 || column >= side) continue;
          for (Index e = 0; e < y.dim(1); ++e)
            out.ref(r * side + c, e) += w.at((dr + 1) * 3 + dc + 1, e) * y.at(row * side + column, e);
        }
  return out;
}

Tensor with_convolution(const Tensor& y, const Tensor& w, Index side) {
  return plus(y, each(convolved(y, w, side), silu));
}

Tensor rows_in(const Tensor& x, const std::vector<Index>& order) {
  Tensor out = Tensor::zeros(x.shape());
  for (Index i = 0; i < x.dim(0); ++i)
    for (Index c = 0; c < x.dim(1); ++c) out.ref(i, c) = x.at(nth(order, i), c);
  return out;
}

double apart(const Tensor& a, const Tensor& b) {
  double off = 0, all = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    off += std::pow(static_cast<double>(a.values()[i]) - static_cast<double>(b.values()[i]), 2);
    all += std::pow(static_cast<double>(b.values()[i]), 2);
  }
  return all > 0 ? std::sqrt(off / all) : std::sqrt(off);
}

/// ‖a_i − b_i‖ ÷ ‖a_i‖ of every patch, on the grid.
Tensor off_by_patch(const Tensor& a, const Tensor& b, Index side) {
  Tensor out = Tensor::zeros({side, side});
  for (Index i = 0; i < side * side; ++i)
    out.ref(i / side, i % side) = static_cast<float>(apart(b.slice(0, i, i + 1).copy(), a.slice(0, i, i + 1).copy()));
  return out;
}

/// How many rows of f(x) change at all when row `patch` of x does.
template <class Function>
Index touched(const Tensor& x, Index patch, Function f) {
  Tensor other = x.copy();
  for (Index c = 0; c < x.dim(1); ++c) other.ref(patch, c) += 1;
  const Tensor a = f(x), b = f(other);
  Index count = 0;
  for (Index i = 0; i < x.dim(0); ++i) {
    bool changed = false;
    for (Index c = 0; c < x.dim(1); ++c) changed = changed || a.at(i, c) != b.at(i, c);
    count += changed;
  }
  return count;
}

MechanismResult run_mix_ffn(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const Grid grid(in.m());
  const Index patches = grid.side * grid.side, d = in.d();
  const Tensor x = in.k.slice(0, grid.skipped, in.m()).copy();
  Tensor w = times(gaussian(9, d, values.seed()), 1.0f / 3);
  std::vector<Index> order(static_cast<std::size_t>(patches));
  std::iota(order.begin(), order.end(), Index{0});
  Random random(values.seed() + 1);
  for (Index i = patches - 1; i > 0; --i)  // Fisher & Yates
    std::swap(nth(order, i), nth(order, static_cast<Index>(random.below(static_cast<std::uint64_t>(i + 1)))));
  const Tensor shuffled = rows_in(x, order);
  const auto with = [&](const Tensor& y) { return with_convolution(y, w, grid.side); };
  MechanismResult result;
  const auto add = [&](const char* id, const char* title, const char* formula, const Tensor& value) {
    result.steps.push_back({.id = id,
                            .title = title,
                            .formula = formula,
                            .value = value,
                            .rows = MechanismAxis::other,
                            .columns = MechanismAxis::dimension});
  };
  Tensor places = Tensor::zeros({grid.side, grid.side});
  for (Index i = 0; i < patches; ++i) places.ref(i / grid.side, i % grid.side) = static_cast<float>(nth(order, i));
  result.steps.push_back({.id = "places",
                          .title = said("The shuffled picture"),
                          .formula = said("which patch lies where now"),
                          .value = places,
                          .range = MechanismStep::Range::positive,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::other});
  add("x", "X", said("patches as they are: keys of the input"), x);
  const Tensor y = mixed(x), a = rows_in(y, order), b = mixed(shuffled), c = rows_in(with(y), order), e = with(b);
  add("attention", said("Attention, then shuffled"), said("P attention(X)"), a);
  const auto add_off = [&](const char* id, const char* title, const Tensor& first, const Tensor& last) {
    result.steps.push_back({.id = id,
                            .title = title,
                            .formula = said("off, by patch"),
                            .value = off_by_patch(last, first, grid.side),
                            .range = MechanismStep::Range::positive,
                            .rows = MechanismAxis::other,
                            .columns = MechanismAxis::other});
  };
  add_off("attention-off", said("Shuffled first instead"), b, a);
  add("convolution", said("With 3 × 3, then shuffled"), "P f(X)", c);
  add_off("convolution-off", said("Shuffled first instead"), e, c);
  const Index middle = grid.side / 2 * grid.side + grid.side / 2;
  result.facts = {
      {said("Without the convolution"), text(apart(b, a)), said("‖f(P X) − P f(X)‖ ÷ ‖P f(X)‖: float32's rounding")},
      {said("With it"), text(apart(e, c)), said("the same with Z in place of Y: the order of patches counts")},
      {said("A patch reaches"), say("{} of {}", touched(x, middle, with), patches),
       said("patches that change when the middle one does, by the convolution alone")},
      {said("Picture"), say("{} × {} patches", grid.side, grid.side),
       grid.skipped > 0 ? say("the last {} of {} keys", patches, in.m()) : say("all {} keys", patches)}};
  return result;
}

}  // namespace

Mechanism make_mix_ffn() {
  Mechanism m;
  m.id = "mix-ffn";
  m.title = to_say("Mix-FFN: a 3 × 3 convolution in place of positions");
  m.name = to_say("Mix-FFN, convolution for positions");
  m.group = to_say("Memory and blocks");
  m.source = "Xie et al. 2021";
  m.formula = to_say("attention(P X) = P attention(X),   conv₃ₓ₃(P X) ≠ P conv₃ₓ₃(X)");
  m.meaning = to_say(
      "Attention without positions sees a bag of patches: shuffle them, and the outputs are shuffled alike. A small "
      "convolution in the feed-forward part knows neighbours, and so the order comes back.");
  m.keywords =
      "SANA SegFormer depth-wise convolution depthwise conv NoPE no positional encoding permutation equivariance "
      "shuffle patches picture";
  m.ours = to_say(
      "Nine numbers a channel are drawn; the 1 × 1 convolutions before and behind, which act on each patch alone, are "
      "left out.");
  m.parameters = {seed_parameter(to_say("of the convolution and of the order"))};
  m.run = run_mix_ffn;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say(
        "Shuffling first or last differs by {} without the convolution, by {} with it; a patch reaches {} "
        "patches in one layer. Keys of a picture come from a vision model; any {} will do to see it.",
        nth(r.facts, 0).value, nth(r.facts, 1).value, nth(r.facts, 2).value, nth(r.facts, 3).value);
  };
  return m;
}

}  // namespace headscope::mechanism
