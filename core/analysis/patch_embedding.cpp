#include "core/analysis/patch_embedding.h"

#include <algorithm>
#include <cmath>

#include "core/analysis/logit_lens.h"
#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
const VisionConfig& need_vision(const Model& model, const char* what) {
  if (!model.config().vision)
    throw Error(what, "a model of pictures", model.config().name, "this one reads texts, which have no patches");
  return *model.config().vision;
}
}  // namespace

Tensor position_similarity(const Model& model) {
  const VisionConfig& v = need_vision(model, "positions of patches");
  const Tensor table = model.weights().position_embedding;  // (position, d_model)
  if (!table.defined())
    throw Error("positions of patches", "a model with a table of positions", model.info().name,
                v.place_biases ? "its scores gain a number for each way from patch to patch"
                               : "its queries and keys are turned by row and column");
  const Index n = v.patches(), width = table.dim(1);
  const auto product = [&](Index i, Index j) {
    double sum = 0;
    for (Index k = 0; k < width; ++k)
      sum += static_cast<double>(table.at(v.leading + i, k)) * static_cast<double>(table.at(v.leading + j, k));
    return sum;
  };
  Tensor out = Tensor::uninitialized({n, n});
  std::vector<double> norms;
  for (Index i = 0; i < n; ++i) norms.push_back(std::sqrt(product(i, i)));
  for (Index i = 0; i < n; ++i)
    for (Index j = i; j < n; ++j) {
      const double size = nth(norms, i) * nth(norms, j);
      out.ref(i, j) = out.ref(j, i) = static_cast<float>(size > 0 ? product(i, j) / size : 0);
    }
  return out;
}

GridSimilarity grid_similarity(const Tensor& similarity, const VisionConfig& v) {
  struct Mean {
    double sum = 0, count = 0;
    void add(double x) { sum += x, ++count; }
    double value() const { return count > 0 ? sum / count : std::nan(""); }
  } row, column, neighbours, others;
  const Index width = v.columns();
  for (Index i = 0; i < similarity.dim(0); ++i)
    for (Index j = 0; j < similarity.dim(1); ++j) {
      if (i == j) continue;
      const Index down = std::abs(i / width - j / width), across = std::abs(i % width - j % width);
      const auto value = static_cast<double>(similarity.at(i, j));
      if (down == 0) row.add(value);
      if (across == 0) column.add(value);
      if (down + across == 1) neighbours.add(value);
      if (down > 0 && across > 0) others.add(value);
    }
  return {row.value(), column.value(), neighbours.value(), others.value()};
}

std::vector<AskedPatch> ask_patches(const Model& model, const Ctx& ctx, const Trace& trace, std::int32_t word) {
  const VisionConfig& v = need_vision(model, "a word asked of patches");
  const LogitLens lens = logit_lens(model, ctx, trace, follow(trace, word), 1);
  const Index last = std::ssize(lens.stages) - 1;
  std::vector<AskedPatch> out;
  double largest = -infinity, sum = 0;
  for (Index patch = 0; patch < v.patches(); ++patch) {
    const Index at = v.leading + patch;
    out.push_back({at, static_cast<double>(lens.followed_logit.at(last, at)), 0, lens.rank(last, at)});
    largest = std::max(largest, out.back().score);
  }
  for (AskedPatch& each : out) sum += each.weight = std::exp(each.score - largest);
  for (AskedPatch& each : out) each.weight /= sum;
  return out;
}

std::vector<PatchToken> patch_tokens(const Model& model, const Trace& trace) {
  const VisionConfig& v = need_vision(model, "patches");
  if (!trace.patches.defined())
    throw Error("patches", "a run of a picture", "a trace without what the model was given");
  const Tensor& embedded = need(trace, {SiteKind::embed});
  std::vector<PatchToken> out;
  const auto count = static_cast<double>(v.patch_numbers());
  for (Index patch = 0; patch < v.patches(); ++patch) {
    PatchToken& token = out.emplace_back();
    token.position = v.leading + patch;
    token.row = patch / v.columns();
    token.column = patch % v.columns();
    double square = 0, size = 0;
    for (Index i = 0; i < v.patch_numbers(); ++i) token.mean += static_cast<double>(trace.patches.at(patch, i)) / count;
    for (Index i = 0; i < v.patch_numbers(); ++i)
      square += std::pow(static_cast<double>(trace.patches.at(patch, i)) - token.mean, 2) / count;
    for (Index i = 0; i < embedded.dim(1); ++i)
      size += std::pow(static_cast<double>(embedded.at(token.position, i)), 2);
    token.deviation = std::sqrt(square);
    token.embedded = std::sqrt(size);
  }
  return out;
}

MassOnPatches mass_on_patches(const Trace& trace, HeadId head, Index query, const std::vector<Index>& patches) {
  if (!trace.picture) throw Error("mass on patches", "a run of a picture", "a text");
  const AttentionMap& map = trace.map(head);
  MassOnPatches out;
  for (const Index patch : patches) out.mass += static_cast<double>(map.weight(query, trace.picture->leading + patch));
  out.chance = static_cast<double>(patches.size()) / static_cast<double>(map.n_key());
  return out;
}

}  // namespace headscope
