#include "core/generate/generation_cost.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace headscope {

namespace {
constexpr int repeats = 5;
constexpr double enough_ms = 250;  // slow passes scatter less and are not waited for again

template <class Work>
double shortest_ms(Work work) {
  double best = std::numeric_limits<double>::infinity(), all = 0;
  for (int i = 0; i < repeats && all < enough_ms; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const double taken = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, taken);
    all += taken;
  }
  return best;
}
}  // namespace

std::vector<GenerationCost> measure_generation(const Model& model, std::span<const std::int32_t> ids, int points,
                                               const Ctx& ctx) {
  std::vector<GenerationCost> costs;
  const auto longest = static_cast<int>(ids.size());
  if (longest < 2) return costs;
  const Ctx quiet{ctx.backend, nullptr, ctx.stop, nullptr};
  KvCache cache(model.config().dims, longest);
  for (int i = 0; i < points; ++i) {
    const int length = points < 2 ? longest : 2 + (longest - 2) * i / (points - 1);
    if (!costs.empty() && costs.back().length == length) continue;
    const auto prefix = ids.first(static_cast<std::size_t>(length));
    GenerationCost cost{length, 0, 0, cache_bytes(model.config().dims, length)};
    if (cache.length() == 0 || !model.continues(cache, length)) {  // also where longer texts turn keys otherwise
      cache.truncate(0);
      model.forward(quiet, prefix, &cache, {}, false);
      cache.truncate(length - 1);
    } else if (cache.length() < length - 1) {
      model.forward(quiet,
                    prefix.subspan(static_cast<std::size_t>(cache.length()))
                        .first(static_cast<std::size_t>(length - 1 - cache.length())),
                    &cache, {}, false);
    }
    cost.cached_ms = shortest_ms([&] {
      cache.truncate(length - 1);
      model.forward(quiet, prefix.last(1), &cache, {}, false);
    });
    cost.panel_bytes = cache.panel_bytes();
    cost.recomputed_ms = shortest_ms([&] { model.forward(quiet, prefix, nullptr, {}, false); });
    costs.push_back(cost);
    if (ctx.progress) *ctx.progress = static_cast<float>(i + 1) / static_cast<float>(points);
  }
  return costs;
}

}  // namespace headscope
