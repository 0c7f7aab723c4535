#include "core/attention/mechanisms/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/after_state.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// Output rows by their state: read(t, S, z) after every token.
template <class Read>
void accumulate(const MechanismInput& in, const Kernel& kernel, Read read) {
  const Index r = kernel.key.dim(1), d_v = in.d_v();
  Tensor s = Tensor::zeros({r, d_v}), z = Tensor::zeros({r});
  for (Index t = 0; t < in.m(); ++t) {
    if (t % 256 == 0) check(in);
    const float* const v = &const_cast<Tensor&>(in.v).ref(t, 0);
    for (Index c = 0; c < r; ++c) {
      const float phi = kernel.key.at(t, c);
      z.ref(c) += phi;
      float* const row = &s.ref(c, 0);
      for (Index e = 0; e < d_v; ++e) row[e] += phi * v[e];
    }
    read(t, s, z);
  }
}

/// φ(q)ᵀ S (÷ φ(q)ᵀ z) into row i of `out`.
void read_state(const Kernel& kernel, Index i, const Tensor& s, const Tensor& z, Tensor& out) {
  float* const row = &out.ref(i, 0);
  double sum = 0;
  for (Index c = 0; c < s.dim(0); ++c) {
    const float phi = kernel.query.at(i, c);
    sum += static_cast<double>(phi) * static_cast<double>(z.at(c));
    const float* const state = s.data() + c * s.dim(1);
    for (Index e = 0; e < s.dim(1); ++e) row[e] += phi * state[e];
  }
  if (kernel.norm != Kernel::Norm::sum) return;
  const float factor = std::abs(sum) < smallest_sum ? 0.0f : static_cast<float>(1 / sum);
  for (Index e = 0; e < s.dim(1); ++e) row[e] *= factor;
}

std::string sum_formula(Kernel::Norm norm) {
  return norm == Kernel::Norm::sum   ? said("each row ÷ its sum")
         : norm == Kernel::Norm::rms ? said("each row ÷ rms of its output")
                                     : said("as they are");
}

}  // namespace

MechanismResult kernel_attention(const MechanismInput& in, const Kernel& kernel, Detail detail) {
  check(in);
  const Tensor similarity = product_t(kernel.query, kernel.key);  // (n, m)
  auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  MechanismResult result;
  result.kind = MapKind::effective;
  result.weights = similarity.copy();
  hide(hidden, result.weights);
  Tensor sums = Tensor::zeros({in.n(), 1});
  Index negative = 0, empty = 0;
  for (Index i = 0; i < in.n(); ++i) {
    double sum = 0;
    for (Index j = 0; j < in.m(); ++j) {
      sum += static_cast<double>(result.weights.at(i, j));
      negative += result.weights.at(i, j) < 0;
    }
    sums.ref(i, 0) = static_cast<float>(sum);
    if (kernel.norm != Kernel::Norm::sum) continue;
    empty += std::abs(sum) < smallest_sum && in.rule->keys(i, in.m()).size() > 0;
    const float factor = std::abs(sum) < smallest_sum ? 0.0f : static_cast<float>(1 / sum);
    for (Index j = 0; j < in.m(); ++j) result.weights.ref(i, j) *= factor;
  }
  if (empty > 0)
    result.facts.push_back({said("Rows without weight"), say("{} of {}", empty, in.n()),
                            said("φ(q)·φ(k) of all keys that the query sees is below 10⁻³⁰: too small for float32")});
  result.output = product(result.weights, in.v);
  std::vector<float> factors;
  if (kernel.norm == Kernel::Norm::rms) {
    result.output = rms_rows(result.output, &factors);
    for (Index i = 0; i < in.n(); ++i)
      for (Index j = 0; j < in.m(); ++j) result.weights.ref(i, j) *= nth(factors, i);
  }
  if (negative > 0) {
    const auto seen = static_cast<double>(hidden.empty() ? in.n() * in.m() : std::ranges::count(hidden, 0));
    result.facts.push_back({said("Negative similarities"),
                            fmt::format("{:.1f} %", 100 * static_cast<double>(negative) / seen),
                            said("φ(q)·φ(k) below 0, among the cells that the mask leaves")});
  }
  if (detail != Detail::steps) return result;
  add_inputs(result.steps, in);
  result.steps.push_back({.id = "phi-q",
                          .title = "φ(Q)",
                          .formula = kernel.formula,
                          .value = kernel.query,
                          .columns = MechanismAxis::other});
  result.steps.push_back({.id = "phi-k",
                          .title = "φ(K)",
                          .formula = kernel.formula,
                          .value = kernel.key,
                          .rows = MechanismAxis::key,
                          .columns = MechanismAxis::other});
  // What the method really builds, once every key was seen.
  const Tensor state = product(kernel.key.transpose(0, 1), in.v);
  result.steps.push_back({.id = "state",
                          .title = "S = φ(K)ᵀ V",
                          .formula = said("Σ φ(k) vᵀ over all keys"),
                          .value = state,
                          .rows = MechanismAxis::other,
                          .columns = MechanismAxis::dimension,
                          .explain = explain_product(kernel.key.transpose(0, 1), in.v)});
  result.steps.push_back({.id = "similarity",
                          .title = "φ(Q) φ(K)ᵀ",
                          .formula = said("for looking at; the method never builds it"),
                          .value = similarity,
                          .masked = hidden,
                          .explain = explain_product_t(kernel.query, kernel.key)});
  if (kernel.norm == Kernel::Norm::sum)
    result.steps.push_back({.id = "sums",
                            .title = "φ(q)·z",
                            .formula = said("Σ of the row"),
                            .value = sums,
                            .columns = MechanismAxis::other});
  result.steps.push_back({.id = "weights",
                          .title = said("Effective weights"),
                          .formula = sum_formula(kernel.norm),
                          .value = result.weights,
                          .range = negative > 0 ? MechanismStep::Range::signed_values : MechanismStep::Range::positive,
                          .masked = std::move(hidden),
                          .explain = [similarity, sums, norm = kernel.norm, w = result.weights](Index i, Index j) {
                            return norm == Kernel::Norm::sum ? text(similarity.at(i, j)) + " ÷ " + text(sums.at(i, 0)) +
                                                                   " = " + text(w.at(i, j))
                                                             : text(w.at(i, j));
                          }});
  result.steps.push_back(output_step(result.weights, in.v, result.output,
                                     kernel.norm == Kernel::Norm::rms ? said("φ(Q) S, each row ÷ its rms") : "φ(Q) S"));
  return result;
}

/// The causal form by chunks, as it is run in practice (Hua et al., Transformer Quality in Linear Time, 2022): matrix
/// products inside a chunk and with the state before it. V carries a column of ones, whose output is the sum.
Tensor chunked(const MechanismInput& in, const Kernel& kernel) {
  constexpr Index chunk = 64;
  const Index d_v = in.d_v();
  Tensor v = Tensor::full({in.m(), d_v + 1}, 1.0f), state = Tensor::zeros({kernel.key.dim(1), d_v + 1});
  for (Index i = 0; i < in.m(); ++i) std::copy_n(&const_cast<Tensor&>(in.v).ref(i, 0), d_v, &v.ref(i, 0));
  Tensor out = Tensor::zeros({in.n(), d_v});
  for (Index begin = 0; begin < in.n(); begin += chunk) {
    check(in);
    const Index end = std::min(begin + chunk, in.n());
    const Tensor q = kernel.query.slice(0, begin, end), k = kernel.key.slice(0, begin, end),
                 own = v.slice(0, begin, end);
    Tensor tile = product_t(q, k);
    for (Index i = 0; i < end - begin; ++i) std::fill(&tile.ref(i, 0) + i + 1, &tile.ref(i, 0) + (end - begin), 0.0f);
    const Tensor inside = product(tile, own), before = product(q, state), added = product(k.transpose(0, 1), own);
    for (Index i = begin; i < end; ++i) {
      const double sum =
          static_cast<double>(inside.at(i - begin, d_v)) + static_cast<double>(before.at(i - begin, d_v));
      const float factor = kernel.norm != Kernel::Norm::sum ? 1.0f
                           : std::abs(sum) < smallest_sum   ? 0.0f
                                                            : static_cast<float>(1 / sum);
      for (Index c = 0; c < d_v; ++c) out.ref(i, c) = factor * (inside.at(i - begin, c) + before.at(i - begin, c));
    }
    const auto sums = state.mutable_values();
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += added.values()[c];
  }
  return out;
}

Tensor kernel_output(const MechanismInput& in, const Kernel& kernel) {
  Tensor out;
  if (in.n() == in.m() && is_causal(*in.rule, in.n(), in.m())) {
    out = chunked(in, kernel);
  } else if (is_full(*in.rule, in.n(), in.m())) {
    out = product(kernel.query, product(kernel.key.transpose(0, 1), in.v));
    if (kernel.norm == Kernel::Norm::sum) {
      const Tensor ones = Tensor::full({in.m(), 1}, 1.0f);
      const Tensor sums = product(kernel.query, product(kernel.key.transpose(0, 1), ones));
      for (Index i = 0; i < in.n(); ++i)
        for (Index c = 0; c < in.d_v(); ++c)
          out.ref(i, c) =
              std::abs(static_cast<double>(sums.at(i, 0))) < smallest_sum ? 0 : out.at(i, c) / sums.at(i, 0);
    }
  } else {
    return kernel_attention(in, kernel, Detail::output).output;
  }
  return kernel.norm == Kernel::Norm::rms ? rms_rows(out) : out;
}

Recurrence kernel_recurrence(const MechanismInput& in, const Kernel& kernel) {
  need_causal(in, "in recurrent form");
  Recurrence result;
  result.update = "Sₜ = Sₜ₋₁ + φ(kₜ) vₜᵀ";
  result.readout = "oₜ = φ(qₜ)ᵀ Sₜ";
  result.last_column_is_z = kernel.norm == Kernel::Norm::sum;
  if (result.last_column_is_z) {
    result.update += ",  zₜ = zₜ₋₁ + φ(kₜ)";
    result.readout += " ÷ φ(qₜ)ᵀ zₜ";
  }
  if (kernel.norm == Kernel::Norm::rms) result.readout += said(", ÷ its rms");
  result.output = Tensor::zeros({in.n(), in.d_v()});
  accumulate(in, kernel, [&](Index t, const Tensor& s, const Tensor& z) {
    read_state(kernel, t, s, z, result.output);
    Tensor kept = Tensor::zeros({s.dim(0), s.dim(1) + (result.last_column_is_z ? 1 : 0)});
    for (Index c = 0; c < s.dim(0); ++c) {
      std::copy_n(s.data() + c * s.dim(1), s.dim(1), &kept.ref(c, 0));
      if (result.last_column_is_z) kept.ref(c, s.dim(1)) = z.at(c);
    }
    result.states.push_back(std::move(kept));
  });
  if (kernel.norm == Kernel::Norm::rms) result.output = rms_rows(result.output);
  return result;
}

MechanismCost kernel_cost(const MechanismShape& s, Index r, double map_multiply_adds) {
  const auto n = static_cast<double>(s.n), features = static_cast<double>(r), d_v = static_cast<double>(s.d_v);
  return {2 * n * features * d_v + map_multiply_adds, features * (d_v + 1) * 4, 0,
          4 * n * static_cast<double>(s.d + s.d_v) * 2};
}

std::vector<ShapeChip> kernel_chips(const MechanismShape& s, Index r, Kernel::Norm norm) {
  using Role = ShapeChip::Role;
  std::vector<ShapeChip> chips{chip(Role::query, "Q", s.rows(), s.d), chip(Role::query, "φ(Q)", s.rows(), r),
                               chip(Role::value, "φ(K)ᵀ V", r, s.d_v, "·")};
  if (norm != Kernel::Norm::none)
    chips.push_back({Role::plain, norm == Kernel::Norm::sum ? "÷ φ(Q)·Σφ(k)" : said("÷ rms of the row"), "→"});
  chips.push_back(chip(Role::output, "O", s.rows(), s.d_v));
  chips.push_back({Role::remark, say("never builds {}×{}", s.rows(), s.n), ""});
  return chips;
}

}  // namespace headscope::mechanism
