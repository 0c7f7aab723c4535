// A forward pass with every map and metric recorded, beside the sum of its bare matrix products in the same run.
// Machines differ and are shared, so the counter that matters is `ratio`: pass ÷ floor, each the median of interleaved
// runs; and `of_bound`: pass ÷ what the machine allows (core/analysis/speed_bounds.h).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "core/analysis/speed_bounds.h"
#include "core/base/file.h"
#include "core/base/median.h"
#include "core/edits/temperature_edit.h"
#include "core/edits/weight_edit.h"
#include "core/generate/generation.h"
#include "core/run/pass_memory.h"
#include "core/trace/capture.h"
#include "core/trace/row_kernels.h"
#include "tests/bench/random_model.h"
#include "tests/bench/timing.h"

namespace {

using namespace headscope;

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
  const BareProducts work = model.bare_products(backend(), n, n);
  SpeedBounds bounds(backend().pool(), work.bytes);
  for (auto _ : state) {
    ForwardResult result;
    pass.push_back(seconds([&] { result = model.forward(ctx, tokens, nullptr, maps); }));
    benchmark::DoNotOptimize(result.logits.data());
    state.SetIterationTime(pass.back());
    floor.push_back(seconds([&] { model.bare_products(backend(), n, n); }));
    bounds.measure();
  }
  state.counters["bound_ms"] = 1e3 * bounds.seconds(work);
  state.counters["of_bound"] = median(pass) / bounds.seconds(work);
  state.counters["pass_ms"] = 1e3 * median(pass);
  state.counters["floor_ms"] = 1e3 * median(floor);
  state.counters["ratio"] = median(pass) / median(floor);
}

const std::shared_ptr<const Model>& shared_gpt2_124m() {
  static const std::shared_ptr<const Model> model = bench::random_gpt2(12, 12, 768, 50257, 1024, backend());
  return model;
}
const Model& gpt2_124m() {
  return *shared_gpt2_124m();
}

const std::shared_ptr<const Model>& shared_tiny() {
  static const std::shared_ptr<const Model> model = bench::random_gpt2(4, 4, 128, 1024, 1024, backend());
  return model;
}
const Model& tiny() {
  return *shared_tiny();
}

/// A token behind so many others (and up to 64 more) whose keys and values are known, every head's row of weights
/// recorded.
void next_token(benchmark::State& state, const std::shared_ptr<const Model>& model) {
  const Ctx ctx{backend()};
  Generator generator({model, nullptr}, {}, true, 1000);
  const auto before = static_cast<std::size_t>(state.range(0));
  std::vector<std::int32_t> text;
  for (std::size_t i = 0; i < before; ++i) text.push_back(static_cast<std::int32_t>(i * 7919 % 1000));
  const auto next = [&] { text.push_back(generator.step(ctx, text, 0, {.settings = {.temperature = 0}})->token); };
  next();
  const BareProducts work = model->bare_products(backend(), 1, 1);
  SpeedBounds bounds(backend().pool(), work.bytes);
  std::vector<double> token;
  for (auto _ : state) {
    if (text.size() > before + 64) text.resize(before + 1);
    token.push_back(seconds(next));
    state.SetIterationTime(token.back());
    bounds.measure();
  }
  state.counters["token_ms"] = 1e3 * median(token);
  state.counters["bound_ms"] = 1e3 * bounds.seconds(work);
  state.counters["of_bound"] = median(token) / bounds.seconds(work);
}
void next_token_124m(benchmark::State& state) {
  next_token(state, shared_gpt2_124m());
}
void next_token_tiny(benchmark::State& state) {
  next_token(state, shared_tiny());
}

/// Traces of a model, each one edit away from the last, as the window asks for them: maps and what comes next (the
/// answer), then the logits of every position, for the losses (all of it); beside the whole pass with the same edits.
void edited_beside_whole(benchmark::State& state, const LoadedModel& loaded, RunRequest request,
                         const std::function<Intervention(int)>& edit) {
  const Ctx ctx{backend()};
  PassMemory memory;
  std::vector<double> answer, all, whole;
  int count = 0;
  request.capture.all_logits = false;
  run(loaded, request, ctx, memory);
  for (auto _ : state) {
    request.edits = {edit(count++)};
    request.capture.all_logits = false;
    std::shared_ptr<const Trace> trace;
    answer.push_back(seconds([&] { trace = run(loaded, request, ctx, memory); }));
    state.SetIterationTime(answer.back());
    all.push_back(answer.back() + seconds([&] { with_all_logits(loaded, request, trace, ctx, memory); }));
    request.capture.all_logits = true;
    whole.push_back(seconds([&] { run(loaded, request, ctx); }));
  }
  state.counters["answer_ms"] = 1e3 * median(answer);
  state.counters["whole_ms"] = 1e3 * median(whole);
  state.counters["ratio"] = median(answer) / median(whole);
  state.counters["all_ratio"] = median(all) / median(whole);
}

RunRequest request_of(std::int64_t tokens, int vocab) {
  RunRequest request;
  for (int i = 0; i < static_cast<int>(tokens); ++i) request.ids.push_back(i * 7919 % vocab);
  return request;
}

Intervention warmer(int layer, int count) {
  return {{layer, 0}, SetTemperature{1 + 0.01 * (1 + count % 50)}};
}

/// Of the middle layer, blocks alone: with a vocabulary of 1,000 the logits cost next to nothing.
void edit_in_the_middle(benchmark::State& state) {
  static const auto model = bench::random_gpt2(12, 12, 768, 1000, 1024, backend());
  edited_beside_whole(state, {model, nullptr}, request_of(state.range(0), 1000), [](int i) { return warmer(6, i); });
}

/// The same with the whole vocabulary, whose logits an edit of all rows changes all.
void edit_in_the_middle_124m(benchmark::State& state) {
  static const LoadedModel loaded{shared_gpt2_124m(), nullptr};
  edited_beside_whole(state, loaded, request_of(state.range(0), 1000), [](int i) { return warmer(6, i); });
}

/// One weight in the middle of the text dragged, in the middle layer.
void weight_in_the_middle_124m(benchmark::State& state) {
  static const LoadedModel loaded{shared_gpt2_124m(), nullptr};
  const int query = static_cast<int>(state.range(0)) / 2;
  edited_beside_whole(state, loaded, request_of(state.range(0), 1000), [query](int i) {
    return Intervention{{6, 0}, SetWeight{query, 2, 0.01 * (1 + i % 90)}};
  });
}

/// The model that comes with the program on its own text, an edit in its first layer: nothing is spared.
void bundled_change(benchmark::State& state) {
  const std::filesystem::path root = HEADSCOPE_SOURCE_DIR;
  const LoadedModel loaded = load_model(root / "models/tiny-gpt2", backend());
  RunRequest request;
  request.model = root / "models/tiny-gpt2";
  request.text = read_file(root / "assets/examples/tiny-gpt2.txt", 1 << 20);
  edited_beside_whole(state, loaded, request, [](int i) { return warmer(0, i); });
}

/// 32,768 tokens, 4 layers of 8 heads, every map factored, beside the same arithmetic alone: the products, and the
/// exponentials of the softmax of numbers that stay in a cache.
void long_text(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0)), layers = 4, heads = 8;
  const auto model = bench::random_gpt2(layers, heads, 512, 1000, n, backend());
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(std::int64_t{i} * 7919 % 1000));
  const TokenLinks links = TokenLinks::of(tokens);
  const Ctx ctx{backend()};
  std::vector<double> pass, products, exponentials;
  for (auto _ : state) {
    pass.push_back(seconds([&] {
      model->forward(ctx, tokens, nullptr, {MapStorage::factored, &links, nullptr}, false);
    }));
    state.SetIterationTime(pass.back());
    products.push_back(seconds([&] { model->bare_products(backend(), n, 1); }));
    exponentials.push_back(seconds([&] {
      backend().pool().parallel(layers * heads, [&](int, int) {
        std::vector<float> row(1024);
        for (double done = 0; done < 0.5 * n * n; done += static_cast<double>(row.size())) {
          std::ranges::fill(row, -1.0f);
          benchmark::DoNotOptimize(row_kernels::exponentiate(row.data(), static_cast<Index>(row.size()), 0.0f).rest);
        }
      });
    }));
  }
  state.counters["pass_s"] = median(pass);
  state.counters["products_s"] = median(products);
  state.counters["exponentials_s"] = median(exponentials);
  state.counters["ratio"] = median(pass) / (median(products) + median(exponentials));
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

BENCHMARK(next_token_124m)->Arg(64)->Arg(512)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1);
BENCHMARK(next_token_tiny)->Arg(64)->Arg(512)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(bundled_change)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(edit_in_the_middle)->Arg(32)->Arg(64)->Arg(256)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(2);
BENCHMARK(edit_in_the_middle_124m)->Arg(32)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(2);
BENCHMARK(weight_in_the_middle_124m)->Arg(32)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(2);
BENCHMARK(long_text)->Arg(8192)->Arg(32768)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(1);
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
