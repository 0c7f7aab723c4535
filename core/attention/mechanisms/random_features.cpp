#include "core/attention/mechanisms/random_features.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

double dot(const Tensor& x, Index a, Index b) {
  double sum = 0;
  for (Index c = 0; c < x.dim(1); ++c) sum += static_cast<double>(x.at(a, c)) * static_cast<double>(x.at(b, c));
  return sum;
}

void scale_row(Tensor& x, Index row, double factor) {
  for (Index c = 0; c < x.dim(1); ++c) x.ref(row, c) = static_cast<float>(factor * static_cast<double>(x.at(row, c)));
}

}  // namespace

Tensor directions(Index features, Index d, bool orthogonal, std::uint64_t seed) {
  Tensor w = gaussian(features, d, seed);
  if (!orthogonal) return w;
  const Tensor lengths = gaussian(features, d, seed + 0x9E3779B9u);
  std::vector<double> squares;  // of the rows that are done
  for (Index i = 0; i < features; ++i) {
    const Index block = i / d * d;
    for (int pass = 0; pass < 2; ++pass)  // twice: once loses digits where rows are nearly parallel
      for (Index j = block; j < i; ++j) {
        const double share = dot(w, i, j) / squares[static_cast<std::size_t>(j)];
        for (Index c = 0; c < d; ++c) w.ref(i, c) -= static_cast<float>(share * static_cast<double>(w.at(j, c)));
      }
    scale_row(w, i, 1 / std::sqrt(std::max(dot(w, i, i), 1e-30)));
    squares.push_back(std::max(dot(w, i, i), 1e-30));
  }
  for (Index i = 0; i < features; ++i) scale_row(w, i, std::sqrt(dot(lengths, i, i)));
  return w;
}

std::vector<MechanismParameter> random_feature_parameters() {
  return {
      whole_parameter("features", to_say("Random features"), to_say("The error falls with their root."), 4, 4096, 64,
                      true),
      toggle_parameter("orthogonal", to_say("Orthogonal"), to_say("Directions at right angles: less variance."), true),
      seed_parameter(to_say("of the directions"))};
}

namespace {

/// Mean over the visible cells of |w − w_softmax| with so many features.
double error_with(const MechanismInput& in, const Tensor& exact, double seen, MechanismValues values, double features,
                  std::uint64_t seed, const Mechanism& mechanism) {
  values.set("features", features);
  values.set("seed", static_cast<double>(seed));
  const Tensor w = mechanism.run(in, values, Detail::weights).weights;
  double sum = 0;
  for (std::size_t c = 0; c < w.values().size(); ++c)
    sum += std::abs(static_cast<double>(w.values()[c]) - static_cast<double>(exact.values()[c]));
  return sum / std::max(seen, 1.0);
}

/// The same input with queries and keys drawn from N(0, 1).
MechanismInput drawn_like(const MechanismInput& in, std::uint64_t seed) {
  MechanismInput out = in;
  out.q = gaussian(in.n(), in.d(), seed + 1'000'001);
  out.k = gaussian(in.m(), in.d(), seed + 1'000'002);
  return out;
}

}  // namespace

MechanismCurve error_curve(const MechanismInput& whole, const MechanismValues& values, const Mechanism& mechanism) {
  const MechanismInput in = first_tokens(whole, curve_tokens);
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  const auto seen = static_cast<double>(hidden.empty() ? in.n() * in.m() : std::ranges::count(hidden, 0));
  MechanismCurve curve{
      say("Error over the number of features{}: mean, and least … most of {} seeds",
          whole.n() > in.n() || whole.m() > in.m() ? say(", first {} tokens", curve_tokens) : "", curve_seeds),
      said("features"),
      said("mean |w − softmax|"),
      {},
      true,
      {}};
  curve.from_zero = true;
  const auto line_of = [&](const MechanismInput& of, std::string label) {
    const Tensor exact = softmax_reference(of).weights;
    MechanismCurve::Line line{std::move(label), {}, {}};
    for (double features = 4; features <= 1024; features *= 2) {
      check(in);
      double sum = 0, least = std::numeric_limits<double>::infinity(), most = 0;
      for (std::uint64_t seed = 0; seed < curve_seeds; ++seed) {
        const double error = error_with(of, exact, seen, values, features, values.seed() + seed, mechanism);
        sum += error, least = std::min(least, error), most = std::max(most, error);
      }
      line.x.push_back(features);
      line.y.push_back(sum / static_cast<double>(curve_seeds));
      line.least.push_back(least), line.most.push_back(most);
    }
    return line;
  };
  curve.lines = {line_of(in, said("this input")), line_of(drawn_like(in, values.seed()), said("drawn, spread 1"))};
  curve.marker = {values.number("features"), error_with(in, softmax_reference(in).weights, seen, values,
                                                        values.number("features"), values.seed(), mechanism)};
  return curve;
}

}  // namespace headscope::mechanism
