// What a card does with the work that docs/performance.md lists, each number the median of several runs that wait for
// the result. A program of its own: where there is no card it says so and ends with 77.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/attention/softmax_attention.h"
#include "core/base/random.h"
#include "core/cuda/cuda_backend.h"
#include "core/model/model.h"
#include "core/train/learner.h"
#include "tests/bench/random_model.h"
#include "tests/bench/timing.h"

namespace headscope::bench {
namespace {

double median_ms(int runs, const std::function<void()>& work) {
  work();
  work();
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(1000 * seconds(work));
  std::ranges::sort(times);
  return times[times.size() / 2];
}

std::vector<std::int32_t> text(Index n, int vocab) {
  std::vector<std::int32_t> out;
  for (Index i = 0; i < n; ++i) out.push_back(static_cast<std::int32_t>(i * 7919 % vocab));
  return out;
}

void say(const char* what, double value, const char* unit) {
  std::printf("%-78s %10.4g %s\n", what, value, unit);
  std::fflush(stdout);
}

/// The place of the largest: by its value, which is found several numbers at a time.
std::int32_t largest(std::span<const float> logits) {
  constexpr std::size_t lanes = 16;
  float most[lanes];
  std::fill_n(most, lanes, logits[0]);
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) most[k] = logits[i + k] > most[k] ? logits[i + k] : most[k];
  for (; i < logits.size(); ++i) most[0] = std::max(most[0], logits[i]);
  return static_cast<std::int32_t>(std::ranges::find(logits, *std::max_element(most, most + lanes)) - logits.begin());
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const Tensor x = a.packed(), y = b.packed();
  double most = 0;
  for (Index i = 0; i < x.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(x.data()[i]) - static_cast<double>(y.data()[i])));
  return most;
}

/// GPT-2 of 124 million parameters.
void gpt2(bool parity) {
  constexpr int vocab = 50257;
  const std::vector<std::int32_t> tokens = text(1024, vocab);
  const TokenLinks links = TokenLinks::of(tokens);
  Tensor expected;
  if (parity) {
    Backend here;
    expected = random_gpt2(12, 12, 768, vocab, 1024, here)
                   ->forward({here}, tokens, nullptr, {MapStorage::none, nullptr, nullptr}, false)
                   .logits;
  }
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    const auto card = make_cuda_backend(0, 0, precision);
    std::printf("\n%s\n", card->name().c_str());
    const auto model = random_gpt2(12, 12, 768, vocab, 1024, *card);
    const auto pass = [&](MapStorage storage, bool look) {
      const ForwardResult result = model->forward({*card}, tokens, nullptr, {storage, &links, nullptr}, false);
      float sum = result.logits.at(0, 0);
      if (look)
        for (const AttentionMap& map : result.maps) sum += map.weight(5, 3);
    };
    if (parity) {
      const Tensor got = model->forward({*card}, tokens, nullptr, {MapStorage::none, nullptr, nullptr}, false).logits;
      say("largest difference from the processor's logits", largest_difference(expected, got), "");
    }
    say("124M, 1,024 tokens: logits of the last", median_ms(15, [&] { pass(MapStorage::none, false); }), "ms");
    say("  the same with 144 factored maps and their statistics",
        median_ms(15, [&] { pass(MapStorage::factored, false); }), "ms");
    say("  the same with 144 dense maps, copied out", median_ms(9, [&] { pass(MapStorage::dense, true); }), "ms");
    say("124M, 16 tokens",
        median_ms(15,
                  [&] {
                    model->forward({*card}, std::span(tokens).first(16), nullptr,
                                   {MapStorage::factored, &links, nullptr}, false);
                  }),
        "ms");
    for (const MapStorage storage : {MapStorage::none, MapStorage::factored}) {
      constexpr int generated = 200;
      const double ms = median_ms(3, [&] {
        KvCache cache(model->config().dims, 1024);
        model->forward({*card}, std::span(tokens).first(512), &cache, {MapStorage::none, nullptr, nullptr}, false);
        std::int32_t next = 3;
        for (int i = 0; i < generated; ++i) {
          const ForwardResult result =
              model->forward({*card}, std::span(&next, 1), &cache, {storage, nullptr, nullptr}, false);
          next = largest(result.logits.values());
        }
      });
      const double start = median_ms(3, [&] {
        KvCache cache(model->config().dims, 1024);
        model->forward({*card}, std::span(tokens).first(512), &cache, {MapStorage::none, nullptr, nullptr}, false);
      });
      say(storage == MapStorage::none ? "124M, generation behind 512 tokens" : "  the same with every map captured",
          1000 * generated / (ms - start), "tokens/s");
    }
  }
}

/// What single ops take: to queue, and until they are done.
void single_ops() {
  const auto card = make_cuda_backend(0, 0, Precision::f32), coarse = make_cuda_backend(0, 0, Precision::tf32);
  std::printf("\n%-70s %12s %12s\n", "one op, of many in a row", "queued, us", "done, us");
  const auto op = [&](const std::string& name, Backend& backend, const std::function<Tensor()>& run) {
    const int runs = name.starts_with("attention") ? 40 : 300;
    Tensor last = run();
    for (int i = 0; i < 3; ++i) last = run();  // both buffers are there
    backend.finish();
    double queued = 0;
    const double done = seconds([&] {
      queued = seconds([&] {
        for (int i = 0; i < runs; ++i) last = run();
      });
      backend.finish();
    });
    std::printf("%-70s %12.2f %12.2f\n", name.c_str(), 1e6 * queued / runs, 1e6 * done / runs);
    std::fflush(stdout);
  };
  for (const Index n : {1, 1024}) {
    const Tensor x = card->resident(Tensor::full({n, 768}, 0.5f)), gain = card->resident(Tensor::full({768}, 1.0f)),
                 wide = card->resident(Tensor::full({n, 3072}, 0.5f));
    const std::string rows = fmt::format(", {} rows", n);
    op("add" + rows, *card, [&] { return card->add(x, x); });
    op("norm" + rows, *card, [&] { return card->layer_norm(x, gain, gain, 1e-5); });
    op("gelu of 3,072" + rows, *card, [&] { return card->activate(Backend::Unary::gelu_tanh, wide); });
    op("look through" + rows, *card, [&] {
      card->look_through(x);
      return x;
    });
    card->not_finite();
    for (const auto& [name, backend] : {std::pair("f32", card.get()), std::pair("tf32", coarse.get())})
      for (const auto& [in, out] : {std::pair<Index, Index>(768, 2304), {768, 768}, {768, 3072}, {3072, 768}}) {
        const Linear w = backend->linear_weights({Tensor::full({in, out}, 0.01f)}, {Tensor::full({out}, 0.1f)});
        const Tensor& from = in == 768 ? x : wide;
        op(fmt::format("product ({}, {}) {}{}", in, out, name, rows), *backend,
           [&] { return backend->linear(from, w); });
      }
    for (const auto& [name, backend] : {std::pair("f32", card.get()), std::pair("tf32", coarse.get())})
      for (const MapStorage storage : {MapStorage::none, MapStorage::factored, MapStorage::dense}) {
        AttentionInput in;
        in.q = card->resident(Tensor::full({n, 12, 64}, 0.5f));
        in.k = in.v = card->resident(Tensor::full({1024, 12, 64}, 0.5f));
        in.scale = 0.125f;
        in.rule = causal_rule();
        in.offset = 1024 - n;
        in.storage = storage;
        op(fmt::format("attention to 1,024 keys, 12 heads of 64, {}, maps {}{}", name,
                       name_in(map_storage_names, storage), rows),
           *backend, [&] { return softmax_attention(in, *backend, nullptr, {}).z; });
      }
  }
}

void long_text() {
  constexpr int vocab = 1000, n = 32768;
  const std::vector<std::int32_t> tokens = text(n, vocab);
  const TokenLinks links = TokenLinks::of(tokens);
  for (const Precision precision : {Precision::f32, Precision::tf32}) {
    const auto card = make_cuda_backend(0, 0, precision);
    const auto model = random_gpt2(4, 8, 512, vocab, n, *card);
    say(fmt::format("32,768 tokens, 4 layers × 8 heads, all maps factored, {}", name_in(precision_names, precision))
            .c_str(),
        median_ms(3,
                  [&] {
                    model->forward({*card}, tokens, nullptr, {MapStorage::factored, &links, nullptr}, false);
                  }),
        "ms");
  }
}

/// Steps of the tiny models' training, 16 texts of 64 tokens.
void training() {
  Batch batch{16, 64, {}, {}};
  Random random(3);
  for (int i = 0; i < 16 * 64; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(random.below(1024)));
    batch.targets.push_back(static_cast<std::int32_t>(random.below(1024)));
  }
  for (const char* const family : {"gpt2", "llama"}) {
    ModelConfig c;
    c.name = "bench";
    c.family = family;
    c.dims = {.layers = 4, .heads = 4, .kv_heads = 4, .d_head = 32, .d_model = 128, .d_mlp = 512, .vocab = 1024};
    c.context = batch.length;
    if (c.family == "llama") {
      c.norm = NormKind::rms_norm;
      c.position = PositionKind::rotary;
      c.activation = Activation::silu;
      c.gated_mlp = true;
      c.bias = BiasSet::none();
    }
    const auto step_ms = [&](Backend& backend, int runs) {
      Learner learner(c, {}, 1, backend);
      for (int i = 0; i < 3; ++i) learner.step(batch);  // buffers and algorithms are there
      return median_ms(runs, [&] { learner.step(batch); });
    };
    Backend here(2);
    const double processor = step_ms(here, 9);
    say(fmt::format("training {}, 4 layers of 128, 1,024 tokens a step: two threads", family).c_str(), processor, "ms");
    for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
      const auto card = make_cuda_backend(2, 0, precision);
      const double ms = step_ms(*card, 101);
      const std::string name = std::string("  the card, ") + std::string(name_in(precision_names, precision));
      say(name.c_str(), ms, "ms");
      say((name + ": tokens").c_str(), 1000 * 16 * 64 / ms, "per s");
      say((name + ": times as quick").c_str(), processor / ms, "");
    }
  }
}

}  // namespace
}  // namespace headscope::bench

/// Words choose parts: devices, ops, gpt2, parity (with the processor's pass), long, train. None: all.
int main(int argc, char** argv) {
  using namespace headscope;
  if (const std::string why = why_no_cuda(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  const std::set<std::string> words(argv + 1, argv + argc);
  const auto asked = [&](const char* word) { return words.empty() || words.contains(word); };
  std::printf("%s\n", cuda_versions().c_str());
  for (const CudaDevice& device : cuda_devices())
    std::printf("cuda:%d %s, compute capability %d.%d\n", device.index, device.name.c_str(), device.major,
                device.minor);
  if (asked("ops")) bench::single_ops();
  if (asked("gpt2") || asked("parity")) bench::gpt2(asked("parity"));
  if (asked("long")) bench::long_text();
  if (asked("train")) bench::training();
}
