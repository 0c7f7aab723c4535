#include "core/attention/mechanisms/random_features.h"

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/softmax.h"

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
  for (Index i = 0; i < features; ++i) {
    const Index block = i / d * d;
    for (int pass = 0; pass < 2; ++pass)  // twice: once loses digits where rows are nearly parallel
      for (Index j = block; j < i; ++j) {
        const double share = dot(w, i, j) / std::max(dot(w, j, j), 1e-30);
        for (Index c = 0; c < d; ++c) w.ref(i, c) -= static_cast<float>(share * static_cast<double>(w.at(j, c)));
      }
    scale_row(w, i, 1 / std::sqrt(std::max(dot(w, i, i), 1e-30)));
  }
  for (Index i = 0; i < features; ++i) scale_row(w, i, std::sqrt(dot(lengths, i, i)));
  return w;
}

std::vector<MechanismParameter> random_feature_parameters() {
  return {whole_parameter("features", "Random features", "The error falls with their root.", 4, 4096, 64, true),
          toggle_parameter("orthogonal", "Orthogonal", "Directions at right angles: less variance.", true),
          seed_parameter("of the directions")};
}

MechanismCurve error_curve(const MechanismInput& in, const MechanismValues& values, const Mechanism& mechanism) {
  const Tensor exact = softmax_reference(in).weights;
  MechanismCurve curve{"Error over the number of features", "features", "mean |w − softmax|", {{"", {}, {}}}, true, {}};
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  const auto seen = static_cast<double>(hidden.empty() ? in.n() * in.m() : std::ranges::count(hidden, 0));
  const auto error_of = [&](double features) {
    MechanismValues with = values;
    with.set("features", features);
    const Tensor w = mechanism.run(in, with, Detail::weights).weights;
    double sum = 0;
    for (std::size_t c = 0; c < w.values().size(); ++c)
      sum += std::abs(static_cast<double>(w.values()[c]) - static_cast<double>(exact.values()[c]));
    return sum / std::max(seen, 1.0);
  };
  for (double features = 4; features <= 1024; features *= 2) {
    check(in);
    curve.lines[0].x.push_back(features);
    curve.lines[0].y.push_back(error_of(features));
  }
  curve.marker = {values.number("features"), error_of(values.number("features"))};
  return curve;
}

}  // namespace headscope::mechanism
