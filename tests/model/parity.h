#pragma once
// What the two parity tests share: one traced run of a model folder on given ids, and differences with numbers.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/model/model.h"
#include "core/run/run_request.h"
#include "core/trace/trace.h"

namespace headscope::testing {

inline constexpr double map_tolerance = 1e-5;       ///< absolute: of attention weights and metrics
inline constexpr double relative_tolerance = 1e-4;  ///< of logits, relative to the largest
inline constexpr double loss_tolerance = 3e-5;  ///< absolute, or relative above 1 nat: a loss is a difference of logits

/// A model folder and its backend, kept together for several runs.
struct Subject {
  std::unique_ptr<Backend> backend = std::make_unique<Backend>(2);
  LoadedModel loaded;

  explicit Subject(const std::filesystem::path& folder, std::unique_ptr<Backend> other = nullptr) {
    if (other) backend = std::move(other);
    loaded.model = Model::load(folder, *backend);
  }

  /// Every site of the model and dense maps, or no sites and factored maps.
  std::shared_ptr<const Trace> trace(const std::vector<std::int32_t>& ids, MapStorage maps, bool sites) const {
    RunRequest request;
    request.ids = ids;
    request.capture.maps = maps;
    if (sites) {
      for (const SiteKind kind : loaded.model->sites()) request.capture.sites.insert(kind);
    }
    return run(loaded, request, Ctx{*backend});
  }

  /// The greedy continuation through the cache: one pass over the text, then one per token.
  std::vector<std::int32_t> greedy(std::span<const std::int32_t> ids, int steps) const {
    const Ctx ctx{*backend};
    KvCache cache(loaded.model->config().dims, static_cast<int>(ids.size()) + steps);
    std::vector<std::int32_t> chosen, text(ids.begin(), ids.end());
    Tensor logits = loaded.model->forward(ctx, ids, &cache, {}, false).logits;
    while (true) {
      const std::span<const float> row = logits.values();
      chosen.push_back(static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
      if (static_cast<int>(chosen.size()) == steps) return chosen;
      text.push_back(chosen.back());
      std::span<const std::int32_t> more = std::span(text).last(1);
      if (!loaded.model->continues(cache, static_cast<Index>(text.size()))) cache.truncate(0), more = text;
      logits = loaded.model->forward(ctx, more, &cache, {}, false).logits;
    }
  }
};

/// Largest |found − expected|; masked cells (−∞) and absent values (NaN) must agree, else +∞.
inline double difference(std::span<const float> found, std::span<const float> expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
    if (std::isfinite(b) && std::isfinite(a)) {
      worst = std::max(worst, std::abs(a - b));
    } else if (!(std::isnan(a) && std::isnan(b)) && a != b) {
      return std::numeric_limits<double>::infinity();
    }
  }
  return worst;
}

inline double largest(std::span<const float> values) {
  double most = 0;
  for (const float value : values) {
    if (std::isfinite(value)) most = std::max(most, std::abs(static_cast<double>(value)));
  }
  return most;
}

/// difference() over the largest expected value: for tensors whose scale is the model's own.
inline double relative(const Tensor& found, const Tensor& expected) {
  if (found.shape() != expected.shape()) return std::numeric_limits<double>::infinity();
  const Tensor a = found.packed(), b = expected.packed();
  return difference(a.values(), b.values()) / std::max(1e-30, largest(b.values()));
}

inline double absolute(const Tensor& found, const Tensor& expected) {
  if (found.shape() != expected.shape()) return std::numeric_limits<double>::infinity();
  const Tensor a = found.packed(), b = expected.packed();
  return difference(a.values(), b.values());
}

}  // namespace headscope::testing
