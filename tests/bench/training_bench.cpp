// A training step (forward, backward, AdamW) with attention maps recorded, beside the bare matrix products of the same
// step: forward, gradient of the input and gradient of the weights. `ratio` is step ÷ products, each the median of
// interleaved runs; `tokens_per_second` is of the step.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "core/base/median.h"
#include "core/base/random.h"
#include "core/tensor/products.h"
#include "core/train/learner.h"
#include "tests/bench/timing.h"

namespace {

using namespace headscope;

using bench::seconds;

ModelConfig shape() {
  ModelConfig c;
  c.name = "bench";
  c.family = "gpt2";
  c.dims = {.layers = 4, .heads = 4, .kv_heads = 4, .d_head = 32, .d_model = 128, .d_mlp = 512, .vocab = 1024};
  c.context = 64;
  return c;
}

/// Every product with a weight matrix in one step over `rows` positions, attention's own left out.
class BareProducts {
 public:
  BareProducts(const ModelDims& d, Index rows) {
    for (int layer = 0; layer < d.layers; ++layer) {
      add(rows, d.d_model, 3 * Index{d.d_model});
      add(rows, d.d_model, d.d_model);
      add(rows, d.d_model, d.d_mlp);
      add(rows, d.d_mlp, d.d_model);
    }
    add(rows, d.d_model, d.vocab);
  }
  void run(ThreadPool& pool) const {
    for (const Shapes& s : all_) {
      const Product forward{s.x, s.w, {}, s.y};
      multiply(std::span(&forward, 1), pool);
    }
    for (const Shapes& s : all_) {
      const Product backward[] = {{s.y, s.w.transpose(0, 1), {}, s.dx}, {s.x.transpose(0, 1), s.y, {}, s.dw}};
      multiply(backward, pool);
    }
  }

 private:
  struct Shapes {
    Tensor x, w, y, dx, dw;
  };
  void add(Index rows, Index in, Index out) {
    const auto made = [](Index a, Index b) { return Tensor::full({a, b}, 0.01f); };
    all_.push_back({made(rows, in), made(in, out), made(rows, out), made(rows, in), made(in, out)});
  }
  std::vector<Shapes> all_;
};

/// Argument: whose maps are built: −2 nobody's, −1 all texts', else that text's.
void training_step(benchmark::State& state) {
  static Backend backend;
  const int text = static_cast<int>(state.range(0));
  const ModelConfig config = shape();
  const Batch batch = [&] {
    Batch made{16, 64, {}, {}};
    Random random(3);
    for (int i = 0; i < 16 * 64; ++i) {
      made.tokens.push_back(static_cast<std::int32_t>(random.below(1024)));
      made.targets.push_back(static_cast<std::int32_t>(random.below(1024)));
    }
    return made;
  }();
  Learner learner(config, {}, 1, backend);
  const BareProducts products(config.dims, 16 * 64);
  MapRequest maps;
  if (text >= -1) {
    maps.storage = MapStorage::dense;
    maps.text = text;
  }
  for (int i = 0; i < 5; ++i) learner.step(batch, {}, maps);
  std::vector<double> step, floor;
  for (auto _ : state) {
    step.push_back(seconds([&] { learner.step(batch, {}, maps); }));
    state.SetIterationTime(step.back());
    floor.push_back(seconds([&] { products.run(backend.pool()); }));
  }
  state.counters["tokens_per_second"] = 16 * 64 / median(step);
  state.counters["step_ms"] = 1e3 * median(step);
  state.counters["floor_ms"] = 1e3 * median(floor);
  state.counters["ratio"] = median(step) / median(floor);
}

BENCHMARK(training_step)->Arg(-2)->Arg(0)->Arg(-1)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1);

}  // namespace
