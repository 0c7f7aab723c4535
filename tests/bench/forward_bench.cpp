// A forward pass with every map and metric recorded, beside the sum of its bare matrix products in the same run.
// Machines differ and are shared, so the counter that matters is `ratio`: pass ÷ floor, each the median of interleaved
// runs.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "core/engine/pass_memory.h"
#include "core/trace/capture.h"
#include "tests/bench/random_model.h"
#include "tests/bench/timing.h"

namespace {

using namespace headscope;

using bench::median;
using bench::seconds;

Backend& backend() {
  static Backend shared;
  return shared;
}

void forward(benchmark::State& state, const Model& model, MapStorage storage) {
  const int n = static_cast<int>(state.range(0));
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(i * 7919 % 1000);
  const TokenLinks links = TokenLinks::of(tokens);
  const MapRequest maps{storage, &links, nullptr};
  const Ctx ctx{backend()};
  std::vector<double> pass, floor;
  model.bare_products(backend(), n, n);
  for (auto _ : state) {
    ForwardResult result;
    pass.push_back(seconds([&] { result = model.forward(ctx, tokens, nullptr, maps); }));
    benchmark::DoNotOptimize(result.logits.data());
    state.SetIterationTime(pass.back());
    floor.push_back(seconds([&] { model.bare_products(backend(), n, n); }));
  }
  state.counters["pass_ms"] = 1e3 * median(pass);
  state.counters["floor_ms"] = 1e3 * median(floor);
  state.counters["ratio"] = median(pass) / median(floor);
}

const Model& gpt2_124m() {
  static const auto model = bench::random_gpt2(12, 12, 768, 50257, 1024, backend());
  return *model;
}

const Model& tiny() {
  static const auto model = bench::random_gpt2(4, 4, 128, 1024, 1024, backend());
  return *model;
}

/// An edit of the middle layer, traced from what the last pass left, beside the whole pass. The vocabulary is small,
/// since logits are always computed anew.
void edit_in_the_middle(benchmark::State& state) {
  static const auto model = bench::random_gpt2(12, 12, 768, 1000, 1024, backend());
  const LoadedModel loaded{model, nullptr};
  RunRequest request;
  for (int i = 0; i < static_cast<int>(state.range(0)); ++i) request.ids.push_back(i * 7919 % 1000);
  const Ctx ctx{backend()};
  PassMemory memory;
  run(loaded, request, ctx, memory);
  std::vector<double> edited, whole;
  double tau = 1;
  for (auto _ : state) {
    request.edits = {{{6, 0}, SetTemperature{tau *= 1.01}}};
    edited.push_back(seconds([&] { run(loaded, request, ctx, memory); }));
    state.SetIterationTime(edited.back());
    whole.push_back(seconds([&] { run(loaded, request, ctx); }));
  }
  state.counters["edited_ms"] = 1e3 * median(edited);
  state.counters["whole_ms"] = 1e3 * median(whole);
  state.counters["ratio"] = median(edited) / median(whole);
}

void gpt2_124m_factored(benchmark::State& state) {
  forward(state, gpt2_124m(), MapStorage::factored);
}
void gpt2_124m_dense(benchmark::State& state) {
  forward(state, gpt2_124m(), MapStorage::dense);
}
void tiny_dense(benchmark::State& state) {
  forward(state, tiny(), MapStorage::dense);
}

BENCHMARK(edit_in_the_middle)->Arg(64)->Arg(256)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(2);
BENCHMARK(tiny_dense)->Arg(16)->Arg(64)->Arg(256)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(gpt2_124m_dense)
    ->Arg(16)
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(2);
BENCHMARK(gpt2_124m_factored)->Arg(64)->Arg(256)->Arg(1024)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(2);

}  // namespace

BENCHMARK_MAIN();
