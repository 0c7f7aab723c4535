// Tiles of a map of 32,768 tokens with 64 numbers a head, computed from its factors: the weights themselves, pooled
// ones, and all that a zoom out needs. `peak` is the arithmetic of the products alone over the time.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>

#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "core/trace/map_pyramid.h"

namespace headscope::bench {
namespace {

constexpr Index tokens = 32768, depth = 64;

AttentionMap long_map() {
  Random random(7);
  Tensor rows[2];
  for (Tensor& each : rows) {
    each = Tensor::uninitialized({tokens, depth});
    for (float& value : each.mutable_values()) value = random.normal();
  }
  auto stats = std::make_shared<HeadStats>();
  stats->log_sum_exp.assign(static_cast<std::size_t>(tokens), 10.9);
  return AttentionMap::factored({}, rows[0], rows[1], 0.125f, causal_rule(), stats);
}

void products(benchmark::State& state, double weights) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(depth) * weights, benchmark::Counter::kIsIterationInvariantRate);
}

/// 1024 × 1024 cells of a bin, on one thread.
void tile_of_cells(benchmark::State& state) {
  const AttentionMap map = long_map();
  const Index bin = state.range(0), side = std::min<Index>(1024 * bin, tokens / 2);
  for (auto _ : state) benchmark::DoNotOptimize(map.pooled({tokens - side, tokens}, {0, side}, bin));
  products(state, static_cast<double>(side * side));
}
BENCHMARK(tile_of_cells)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond)->UseRealTime();

/// A tile of the level that is kept whole, 1024 × 1024 weights: the piece of work after which a job may stop.
void leaf(benchmark::State& state) {
  const AttentionMap map = long_map();
  for (auto _ : state) benchmark::DoNotOptimize(map.pooled({tokens - 1024, tokens}, {4096, 5120}, 8));
  products(state, 1024.0 * 1024.0);
}
BENCHMARK(leaf)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The whole map, bin 64, with all levels between, on all threads.
void whole_map(benchmark::State& state) {
  const AttentionMap map = long_map();
  ThreadPool pool;
  for (auto _ : state) {
    MapPyramid pyramid(map);
    pyramid.refine(
        {6, {0, pyramid.rows(6)}, {0, pyramid.columns(6)}}, [] { return true; }, &pool);
    benchmark::DoNotOptimize(pyramid.bytes());
  }
  products(state, 0.5 * static_cast<double>(tokens) * static_cast<double>(tokens));
}
BENCHMARK(whole_map)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace headscope::bench
