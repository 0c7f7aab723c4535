// Why layers are added and not replaced (He et al., Deep Residual Learning, 2016; Xiong et al., On Layer Normalization
// in the Transformer Architecture, 2020): a random deep stack, and the gradient of a random direction of its output by
// the stream at each depth. f(x) = relu(W x), W ~ N(0, g/d).
//   plain      x ← f(x)            relu keeps half of E[z²]: signal and gradient shrink by √(g/2) a layer (He 2015)
//   residual   x ← x + f(x)        the gradient always has the way past f
//   pre-norm   x ← x + f(LN(x))    the same, and f is given numbers of one size
//   post-norm  x ← LN(x + f(x))    every layer's norm divides the way past f too
// LN: mean 0, variance 1, no gains. float64. Shapes: x (d), W (d, d) for each layer. Cost: 8 layers d².

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

using Vector = Eigen::VectorXd;
enum Stack { plain, residual, pre_norm, post_norm };
constexpr const char* names[] = {"plain", "residual", "pre-norm", "post-norm"};

Vector residual_highway_drawn(Index d, Random& random) {
  Vector x(d);
  for (double& value : x) value = static_cast<double>(random.normal());
  return x;
}

struct Normed {
  Vector value;
  double deviation = 1;
};
Normed layer_norm(const Vector& x) {
  Vector centred = x.array() - x.mean();
  const double deviation = std::sqrt(centred.squaredNorm() / static_cast<double>(x.size()) + 1e-12);
  return {centred / deviation, deviation};
}
Vector layer_norm_gradient(const Normed& norm, const Vector& g) {
  const double along = g.dot(norm.value) / static_cast<double>(g.size());
  return (g.array() - g.mean() - norm.value.array() * along) / norm.deviation;
}

struct Depths {
  std::vector<double> signal,
      gradient;                  // rms of the stream, and of the gradient, entering each layer and leaving the last
  double halved = 0, zeros = 0;  // Σ relu(z)² ÷ Σ z², and how many became 0, over all layers
};

Depths through(Stack stack, const std::vector<Eigen::MatrixXd>& weights, const Vector& input, const Vector& direction) {
  const auto rms = [](const Vector& x) { return std::sqrt(x.squaredNorm() / static_cast<double>(x.size())); };
  Depths depths;
  struct Kept {
    Normed before, after;
    Vector open;  // 1 where relu let through
  };
  std::vector<Kept> kept;
  Vector x = input;
  double before = 0, after = 0;
  for (const Eigen::MatrixXd& w : weights) {
    depths.signal.push_back(rms(x));
    Kept k;
    if (stack == pre_norm) k.before = layer_norm(x);
    const Vector z = w * (stack == pre_norm ? k.before.value : x);
    k.open = (z.array() > 0).cast<double>();
    const Vector f = z.cwiseProduct(k.open);
    before += z.squaredNorm(), after += f.squaredNorm();
    depths.zeros += (1 - k.open.mean()) / static_cast<double>(weights.size());
    x = stack == plain ? f : Vector(x + f);
    if (stack == post_norm) k.after = layer_norm(x), x = k.after.value;
    kept.push_back(std::move(k));
  }
  depths.signal.push_back(rms(x));
  depths.halved = before > 0 ? after / before : 0;
  Vector g = direction;
  depths.gradient.push_back(rms(g));
  for (std::size_t layer = weights.size(); layer-- > 0;) {
    const Kept& k = kept[layer];
    if (stack == post_norm) g = layer_norm_gradient(k.after, g);
    Vector inner = weights[layer].transpose() * g.cwiseProduct(k.open);
    if (stack == pre_norm) inner = layer_norm_gradient(k.before, inner);
    g = stack == plain ? inner : Vector(g + inner);
    depths.gradient.push_back(rms(g));
  }
  std::ranges::reverse(depths.gradient);
  return depths;
}

MechanismCurve chart(std::string title, std::string y, const std::vector<Depths>& all, bool gradient) {
  MechanismCurve curve{std::move(title), said("layer"), std::move(y), {}, false, {}};
  for (std::size_t s = 0; s < all.size(); ++s) {
    const std::vector<double>& values = gradient ? all[s].gradient : all[s].signal;
    const double one = gradient ? values.back() : values.front();
    MechanismCurve::Line line{names[s], {}, {}};
    for (std::size_t layer = 0; layer < values.size(); ++layer) {
      line.x.push_back(static_cast<double>(layer));
      line.y.push_back(std::log10(std::max(values[layer] / one, 1e-300)));
    }
    curve.lines.push_back(std::move(line));
  }
  return curve;
}

MechanismResult run_residual_highway(const MechanismInput& in, const MechanismValues& values, Detail) {
  const Index d = values.whole("width"), layers = values.whole("layers");
  const double spread = std::sqrt(values.number("gain") / static_cast<double>(d));
  Random random(values.seed());
  const Vector input = residual_highway_drawn(d, random), direction = residual_highway_drawn(d, random);
  std::vector<Eigen::MatrixXd> weights;
  for (Index layer = 0; layer < layers; ++layer) {
    check(in);
    Eigen::MatrixXd w(d, d);
    for (double& value : w.reshaped()) value = spread * static_cast<double>(random.normal());
    weights.push_back(std::move(w));
  }
  std::vector<Depths> all;
  for (const Stack stack : {plain, residual, pre_norm, post_norm}) {
    check(in);
    all.push_back(through(stack, weights, input, direction));
  }
  MechanismResult result;
  result.curves.push_back(chart(said("Gradient at each depth, against that of the output"), "log₁₀", all, true));
  result.curves.push_back(chart(said("Signal at each depth, against the input"), "log₁₀", all, false));
  const auto arrives = [&](Stack stack) {
    const Depths& of = nth(all, stack);
    const double arrived = of.gradient.front() / of.gradient.back();
    return arrived >= 1000 && arrived < 1e7 ? fmt::format("× {:.0f}", arrived) : "× " + text(arrived);
  };
  result.facts = {
      {said("ReLU keeps"), say("{:.1f} % of the squares", 100 * all[plain].halved),
       said("Σ relu(z)² ÷ Σ z² over the layers of the plain stack; ½ is expected")},
      {said("ReLU sets to 0"), say("{:.1f} % of the numbers", 100 * all[plain].zeros), said("the same; ½ is expected")},
      {said("Expected, plain"), "× " + text(std::pow(values.number("gain") / 2, static_cast<double>(layers) / 2)),
       said("√(g/2) a layer")}};
  for (const Stack stack : {plain, residual, pre_norm, post_norm})
    result.facts.push_back({say("Gradient at the bottom, {}", nth(names, stack)), arrives(stack),
                            said("‖gradient by the input‖ ÷ ‖gradient by the output‖")});
  return result;
}

}  // namespace

Mechanism make_residual_highway() {
  Mechanism m;
  m.id = "residual-highway";
  m.title = to_say("The residual highway: gradients through a deep stack");
  m.name = to_say("Residual highway");
  m.group = to_say("Memory and blocks");
  m.source = "He et al. 2016";
  m.formula = to_say("x ← f(x)   against   x ← x + f(x),  f(x) = relu(W x)");
  m.meaning = to_say(
      "A ReLU halves the squares of what passes it, so dozens of layers in a row leave no gradient at the bottom. "
      "Adding the input back gives the gradient a way past every layer; norms keep its size in hand.");
  m.keywords =
      "residual connection skip connection vanishing gradient exploding gradient ResNet ReLU halves layer norm "
      "pre-norm "
      "post-norm depth add & norm highway identity";
  m.parameters = {whole_parameter("layers", to_say("Layers"), to_say("Of the stack."), 2, 64, 24),
                  whole_parameter("width", to_say("Width d"), to_say("Of the stream."), 16, 256, 128, true),
                  number_parameter("gain", to_say("Gain g"),
                                   to_say("W ~ N(0, g/d); 2 makes up for ReLU's half (He 2015)."), 0.1, 4, 1),
                  seed_parameter()};
  m.run = run_residual_highway;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say(
        "Of the gradient at the output arrives at the bottom: plain {}, residual {}, pre-norm {}, post-norm "
        "{}. Random weights, nothing trained; g = 2 rescues the plain stack, and makes the residual one "
        "grow.",
        nth(r.facts, 3).value, nth(r.facts, 4).value, nth(r.facts, 5).value, nth(r.facts, 6).value);
  };
  return m;
}

}  // namespace headscope::mechanism
