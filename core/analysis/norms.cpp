#include "core/analysis/norms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/weights.h"
#include "core/tensor/gap.h"

namespace headscope {

namespace {
constexpr std::size_t most_numbers = 64;

Tensor divided_by_sums(const Tensor& rows) {
  Tensor out = Tensor::zeros(rows.shape());
  for (Index i = 0; i < rows.dim(0); ++i) {
    double sum = 0;
    for (Index j = 0; j < rows.dim(1); ++j) sum += static_cast<double>(rows.at(i, j));
    if (sum == 0) continue;
    for (Index j = 0; j < rows.dim(1); ++j)
      out.ref(i, j) = static_cast<float>(static_cast<double>(rows.at(i, j)) / sum);
  }
  return out;
}
}  // namespace

std::string_view title(NormMethod method) {
  constexpr std::string_view titles[] = {to_say("Sum, per sequence"), to_say("Sum, per feature"), "LayerNorm",
                                         "RMSNorm", "BatchNorm"};
  return nth(titles, method);
}

std::string_view formula(NormMethod method) {
  constexpr std::string_view formulas[] = {
      to_say("x ÷ Σ of the row"), to_say("x ÷ Σ of the column"), to_say("(x − mean) ÷ √(var + ε), per row"),
      to_say("x ÷ √(mean x² + ε), per row"), to_say("(x − mean) ÷ √(var + ε), per column")};
  return nth(formulas, method);
}

bool per_column(NormMethod method) {
  return method == NormMethod::sum_column || method == NormMethod::batch_norm;
}

Tensor normalise(Backend& backend, const Tensor& rows, NormMethod method, double epsilon) {
  // Across the batch is within the sequence of the matrix on its side.
  if (per_column(method))
    return normalise(backend, rows.transpose(0, 1).packed(),
                     method == NormMethod::batch_norm ? NormMethod::layer_norm : NormMethod::sum_row, epsilon)
        .transpose(0, 1)
        .packed();
  const Tensor gain = Tensor::full({rows.dim(1)}, 1.0f), bias = Tensor::zeros({rows.dim(1)});
  if (method == NormMethod::layer_norm) return backend.layer_norm(rows, gain, bias, epsilon);
  if (method == NormMethod::rms_norm) return backend.rms_norm(rows, gain, epsilon);
  return divided_by_sums(rows);
}

LineStatistics statistics(std::span<const float> line) {
  LineStatistics out;
  double squares = 0;
  for (const float v : line)
    out.sum += static_cast<double>(v), squares += static_cast<double>(v) * static_cast<double>(v);
  const auto n = static_cast<double>(std::max<std::size_t>(line.size(), 1));
  out.mean = out.sum / n;
  for (const float v : line) out.variance += std::pow(static_cast<double>(v) - out.mean, 2) / n;
  out.rms = std::sqrt(squares / n);
  return out;
}

OrderKept order_kept(const Tensor& before, const Tensor& after) {
  OrderKept out;
  for (Index i = 0; i < before.dim(0); ++i)
    for (Index a = 0; a < before.dim(1); ++a)
      for (Index b = a + 1; b < before.dim(1); ++b) {
        const float was = before.at(i, a) - before.at(i, b), is = after.at(i, a) - after.at(i, b);
        out.pairs += was != 0;
        out.turned += (was < 0 && is > 0) || (was > 0 && is < 0);
      }
  return out;
}

std::vector<float> parse_row(std::string_view text, const std::string& where) {
  std::vector<float> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(" ,;\t", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" ,;\t", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    float value = 0;
    const auto [stopped, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || stopped != word.data() + word.size() || !std::isfinite(value))
      throw Error(where, "numbers with spaces between them, such as 4 6 0 0", fmt::format("\"{}\"", word));
    out.push_back(value);
    at = end;
  }
  if (out.empty() || out.size() > most_numbers)
    throw Error(where, fmt::format("1 to {} numbers", most_numbers), std::to_string(out.size()));
  return out;
}

Tensor matrix_of_rows(std::span<const std::vector<float>> rows, const std::string& where) {
  if (rows.empty()) throw Error(where, "at least one row", "none");
  const auto width = static_cast<Index>(rows[0].size());
  Tensor out = Tensor::uninitialized({static_cast<Index>(rows.size()), width});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size())
      throw Error(where, fmt::format("{} numbers in every row, as in the first", width),
                  std::to_string(rows[i].size()));
    for (Index j = 0; j < width; ++j) out.ref(static_cast<Index>(i), j) = nth(rows[i], j);
  }
  return out;
}

std::set<SiteKind> model_norm_sites(const Model& model) {
  const ModelConfig& c = model.config();
  std::set<SiteKind> sites{SiteKind::resid_pre, SiteKind::resid_post};
  if (model.fires({SiteKind::final_normalized})) sites.insert(SiteKind::final_normalized);
  add_inputs(c, sites);
  if (c.dims.has_mid()) sites.insert(SiteKind::resid_mid);
  return sites;
}

ModelNorm read_model_norm(const Model& model, Backend& backend, const Trace& trace, WhichNorm which, int layer) {
  const ModelConfig& config = model.config();
  if (which != WhichNorm::last && (layer < 0 || layer >= config.dims.layers))
    throw Error("norm: layer", fmt::format("a layer from 0 to {}", config.dims.layers - 1), std::to_string(layer));
  if (config.norms_sums())
    throw Error("norm", "a model with norms before attention or MLP, or behind its last block", config.name,
                "its norms stand behind sums, x ← norm(x + part), and make the stream itself: \"residual\" (Residual "
                "stream in the window) tells its length behind each");
  if (which == WhichNorm::before_mlp && !config.dims.has_mlp(layer))
    throw Error("norm", "the norm before attention, or the last",
                config.dims.d_mlp == 0 ? "one before an MLP, which this model does not have"
                                       : fmt::format("one before an MLP, which layer {} does not have", layer));
  if (which == WhichNorm::last && (!config.last_norm() || config.head_layer))
    throw Error("norm", "a model whose last norm reads the stream that leaves its blocks", config.name,
                config.last_norm() ? "a layer of its own stands between them; norms before attention are read"
                                   : "no norm stands behind the last block; norms before attention are read");
  if (which != WhichNorm::last && !config.norms_before(layer))
    throw Error("norm", "the last norm", "one before attention or the MLP",
                config.dims.normed_behind.empty()
                    ? config.name + " has norms behind them only"
                    : fmt::format("layer {} of {} has norms behind them only", layer, config.name));
  if (which == WhichNorm::before_mlp && config.shared_norm)
    throw Error("norm", "the norm before attention, or the last", "one before the MLP",
                config.name + "'s attention and MLP read the same norm");
  const ModelWeights weights = model.weights();
  ModelNorm out;
  switch (which) {
    case WhichNorm::before_attention:
      out.before_site = {SiteKind::resid_pre, config.entered(layer)};
      out.after_site = {SiteKind::ln1_normalized, layer};
      out.weights = nth(weights.blocks, layer).ln1;
      break;
    case WhichNorm::before_mlp:
      out.before_site = {config.dims.parallel ? SiteKind::resid_pre : SiteKind::resid_mid, layer};
      out.after_site = {SiteKind::ln2_normalized, layer};
      out.weights = nth(weights.blocks, layer).ln2;
      break;
    case WhichNorm::last:
      out.before_site = {SiteKind::resid_post, config.dims.layers - 1};
      out.after_site = {SiteKind::final_normalized};
      out.weights = weights.final_norm;
      break;
  }
  out.before = need(trace, out.before_site).packed();
  out.after = need(trace, out.after_site).packed();
  if (out.weights.kind == NormKind::none)
    throw Error("norm", "a norm", "none here", config.name + " reads the stream there as it is");
  out.method = out.weights.kind == NormKind::layer_norm ? NormMethod::layer_norm : NormMethod::rms_norm;
  out.epsilon = config.norm_epsilon;
  out.bare = normalise(backend, out.before, out.method, out.epsilon);
  out.again = normalized(config, out.weights, backend, out.before);
  out.difference = greatest_gap(out.again, out.after);
  return out;
}

}  // namespace headscope
