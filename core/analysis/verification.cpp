#include "core/analysis/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/io/safetensors.h"
#include "core/metrics/next_token.h"
#include "core/trace/hook_names.h"

namespace headscope {

namespace {

/// A NaN is worse than any number.
void take(Gap& worst, double difference, int head, Index query, Index key) {
  if (std::isnan(worst.value) || difference <= worst.value) return;
  worst.value = difference;
  worst.head = head;
  worst.query = query;
  worst.key = key;
}

Gap pattern_gap(const Trace& trace, int layer, const std::vector<plain::Table>& heads) {
  Gap worst{.bound = verify_bounds::pattern, .layer = layer, .stack = trace.model.stack};
  double largest = 1;  // of α of a state space, which may be any number
  for (std::size_t head = 0; !trace.model.dims.attends(layer) && head < heads.size(); ++head)
    for (const double weight : heads[head].values) largest = std::max(largest, std::abs(weight));
  worst.bound *= largest;
  std::vector<float> row;
  for (std::size_t head = 0; head < heads.size(); ++head) {
    const AttentionMap& map = trace.map({layer, static_cast<int>(head)});
    row.resize(static_cast<std::size_t>(map.n_key()));
    for (Index i = 0; i < heads[head].rows; ++i) {
      map.row(i, row);
      for (Index j = 0; j < heads[head].columns; ++j)
        take(worst, std::abs(static_cast<double>(nth(row, j)) - heads[head].at(i, j)), static_cast<int>(head), i, j);
    }
  }
  return worst;
}

Gap loss_gap(const Trace& trace, const plain::Table& logits) {
  Gap worst{.bound = verify_bounds::loss};
  const std::vector<double> found = token_losses(trace), truth = plain::losses(logits, trace.ids());
  for (std::size_t i = 0; i < truth.size(); ++i)
    take(worst, std::abs(found.at(i) - truth[i]) / std::max(1.0, truth[i]), -1, static_cast<Index>(i), -1);
  return worst;
}

plain::Table table_of(const Tensor& x) {
  plain::Table out(x.dim(0), x.dim(1));
  for (Index i = 0; i < out.rows; ++i)
    for (Index j = 0; j < out.columns; ++j) out.at(i, j) = static_cast<double>(x.at(i, j));
  return out;
}

/// A tensor of a batch of one text, without that axis.
Tensor unbatched(const Tensor& x, int rank) {
  return x.rank() == rank + 1 && x.dim(0) == 1 ? x.select(0, 0) : x;
}

std::vector<std::int32_t> read_ids(const TensorFile& file, int vocab) {
  const TensorEntry& entry = file.entry("tokens");
  std::vector<std::int64_t> shape = entry.shape;
  if (shape.size() == 2 && shape[0] == 1) shape.erase(shape.begin());  // a batch of one
  if (shape.size() != 1 || shape[0] < 1 || (entry.dtype != DType::i32 && entry.dtype != DType::i64))
    throw Error(file.path().string() + ": tokens", "a list of ids, I32 or I64",
                fmt::format("{} of rank {}", dtype_name(entry.dtype), entry.shape.size()));
  std::vector<std::int64_t> wide;
  if (entry.dtype == DType::i64)
    wide = entry.items<std::int64_t>();
  else
    for (const std::int32_t id : entry.items<std::int32_t>()) wide.push_back(id);
  for (const std::int64_t id : wide)
    if (id < 0 || id >= vocab)
      throw Error(file.path().string() + ": tokens", fmt::format("ids in [0, {}), as the model has them", vocab),
                  std::to_string(id));
  return {wide.begin(), wide.end()};
}

}  // namespace

bool Verification::agrees() const {
  return std::ranges::all_of(patterns, &Gap::agrees) && (!logits || logits->agrees()) && (!losses || losses->agrees());
}

Verification verify(const Trace& trace, const plain::Pass& witness) {
  Verification out;
  const auto look = [&](const Trace& part, const std::vector<std::vector<plain::Table>>& patterns) {
    for (std::size_t layer = 0; layer < patterns.size(); ++layer)
      if (!patterns[layer].empty()) out.patterns.push_back(pattern_gap(part, static_cast<int>(layer), patterns[layer]));
  };
  if (witness.encoder) look(*trace.encoder, witness.encoder->patterns);
  look(trace, witness.patterns);
  if (witness.encoder) look(*trace.cross, witness.cross_patterns);
  const plain::Table& truth = witness.logits;
  if (truth.rows == 0) return out;
  const auto [least, most] = std::ranges::minmax(truth.values);
  out.spread = most - least;
  out.logits = Gap{.bound = verify_bounds::logits * out.spread};
  const Index first = trace.logits.dim(0) - truth.rows;
  for (Index i = 0; i < truth.rows; ++i)
    for (Index j = 0; j < truth.columns; ++j)
      take(*out.logits, std::abs(static_cast<double>(trace.logits.at(first + i, j)) - truth.at(i, j)), -1, first + i,
           j);
  if (first == 0 && truth.rows > 1 && trace.model.objective == Objective::next_token)
    out.losses = loss_gap(trace, truth);
  return out;
}

ReferenceCapture read_reference(const std::filesystem::path& path, const ModelConfig& config) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  ReferenceCapture out{read_ids(file, config.dims.vocab), {}};
  const auto n = static_cast<Index>(out.ids.size());
  const auto refuse = [&](const std::string& name, const Shape& expected, const Tensor& found) {
    throw Error(path.string() + ": " + name, "shape " + expected.str() + ", as this model has it", found.shape().str());
  };
  bool any = false;
  for (int layer = 0; layer < config.dims.layers; ++layer) {
    auto& heads = out.values.patterns.emplace_back();
    const std::string name = headscope::name(Site{SiteKind::pattern, layer});  // bridges call it so too
    if (!file.contains(name)) continue;
    const Tensor maps = unbatched(file.tensor(name), 3);
    const int own = config.dims.heads_of(layer);
    if (const Shape expected{own, n, n}; maps.shape() != expected) refuse(name, expected, maps);
    for (int head = 0; head < own; ++head) heads.push_back(table_of(maps.select(0, head)));
    any = true;
  }
  for (const HookNames names : {HookNames::transformer_lens, HookNames::bridge}) {
    const std::string name = headscope::name(Site{SiteKind::logits}, names);
    if (!file.contains(name)) continue;
    const Tensor logits = unbatched(file.tensor(name), 2);
    const Shape all{n, config.dims.vocab};
    if (logits.shape() != all && logits.shape() != Shape{1, config.dims.vocab}) refuse(name, all, logits);
    out.values.logits = table_of(logits);
    any = true;
  }
  if (!any) throw Error(path.string(), "blocks.{i}.attn.hook_pattern or logits", "neither");
  return out;
}

}  // namespace headscope
