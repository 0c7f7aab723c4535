// A Llama of 1.1 billion parameters in BF16 (TinyLlama's shape, random weights), written to a temporary folder: how
// long it takes to open, how much memory it holds, what a token costs beside reading the weights once; and a pass over
// many tokens beside one with the same weights in float32 (of fewer layers, or these would not fit a small machine);
// the same of a GPT-2 of 124 million, whose matrices lie by rows. One token and 16 in BF16, Q8_0 and float32 beside
// what the machine allows; tokens in each block type beside the same numbers in float32, and how many of its numbers
// one core multiplies.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/analysis/speed_bounds.h"
#include "core/base/file.h"
#include "core/base/median.h"
#include "core/base/memory.h"
#include "core/base/random.h"
#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "core/model/model.h"
#include "core/model/weights.h"
#include "tests/bench/timing.h"
#include "tests/support/random_tensor.h"
#include "tests/support/stored_copy.h"

namespace {

using namespace headscope;
using bench::seconds;
namespace fs = std::filesystem;

ModelConfig tiny_llama(int layers) {
  ModelConfig c;
  c.name = "random";
  c.family = "llama";
  c.dims = {layers, 32, 4, 64, 2048, 5632, 32000};
  c.context = 2048;
  c.position = PositionKind::rotary;
  c.norm = NormKind::rms_norm;
  c.activation = Activation::silu;
  c.gated_mlp = true;
  c.norm_epsilon = 1e-5;
  c.tied_embeddings = false;
  return c;
}

ModelConfig small_gpt2() {
  ModelConfig c;
  c.name = "random";
  c.family = "gpt2";
  c.dims = {12, 12, 12, 64, 768, 3072, 50257};
  c.context = 1024;
  return c;
}

/// The names and shapes that a family's reader asks for.
class Asked final : public WeightSource {
 public:
  mutable std::map<std::string, Shape> shapes;
  std::string where() const override { return "nowhere"; }
  std::vector<std::string> names() const override { return {}; }
  bool contains(const std::string&) const override { return true; }
  std::string dtype(const std::string&) const override { return "BF16"; }
  Tensor take(const std::string& name, const Shape& shape) const override {
    shapes.emplace(name, shape);
    return Tensor::borrow(Stored::bf16, reinterpret_cast<const std::byte*>(this), shape, nullptr);  // never read
  }
};

/// Numbers of a period that no width divides: speed does not depend on what they say.
class Folder {
 public:
  explicit Folder(const ModelConfig& config)
      : path_(fs::temp_directory_path() / ("headscope-bench-" + std::to_string(::getpid()))) {
    Random random(1);
    std::vector<std::uint16_t> numbers(1'000'003);
    for (std::uint16_t& number : numbers)
      number = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(0.02f * random.normal()) >> 16);
    const Asked asked;
    (void)read_weights(asked, config);
    SafetensorsWriter writer;
    for (const auto& [name, shape] : asked.shapes) {
      std::vector<std::int64_t> extents;
      for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
      writer.add(name, DType::bf16, extents,
                 [&numbers, count = static_cast<std::size_t>(shape.size())](std::ostream& out) {
                   for (std::size_t done = 0; done < count;) {
                     const std::size_t some = std::min(numbers.size(), count - done);
                     out.write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(2 * some));
                     done += some;
                   }
                 });
    }
    fs::create_directories(path_);
    write_file_atomically(path_ / "config.json", write_config(config));
    writer.write(path_ / "model.safetensors");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }
  double bytes() const { return static_cast<double>(fs::file_size(path_ / "model.safetensors")); }

 private:
  fs::path path_;
};

/// Every matrix that a token is multiplied with.
std::vector<Tensor> matrices(const Model& model) {
  std::vector<Tensor> all{model.weights().unembedding};
  for (int layer = 0; layer < model.config().dims.layers; ++layer)
    for (int m = 0; m < weight_matrix_count; ++m)
      all.push_back(model.projection(layer, static_cast<WeightMatrix>(m)).weight);
  return all;
}

/// Reads every byte of these matrices once, with all threads.
void read_once(const std::vector<Tensor>& all, ThreadPool& pool) {
  for (const Tensor& matrix : all) {
    const std::size_t words = matrix.bytes() / 8, tasks = static_cast<std::size_t>(4 * pool.threads());
    const auto* const from = reinterpret_cast<const std::uint64_t*>(matrix.stored());
    pool.parallel(static_cast<int>(tasks), [&](int task, int) {
      const std::size_t begin = words * static_cast<std::size_t>(task) / tasks,
                        end = words * static_cast<std::size_t>(task + 1) / tasks;
      std::uint64_t sum = std::accumulate(from + begin, from + end, std::uint64_t{0});
      benchmark::DoNotOptimize(sum);
    });
  }
}

/// Matrices of small random numbers of one kind, and gains of 1.
class RandomWeights final : public WeightSource {
 public:
  /// `floats`: the same numbers as float32.
  explicit RandomWeights(Stored kind, bool floats = false) : kind_(kind), floats_(floats) {
    Random random(1);
    Tensor few = Tensor::uninitialized({256, 3907});  // whole blocks, a period that no width divides
    for (float& number : few.mutable_values()) number = 0.02f * random.normal();
    period_ = testing::stored_copy(kind, few.reshape({3907, 256}));
  }
  std::string where() const override { return "random numbers"; }
  std::vector<std::string> names() const override { return {}; }
  bool contains(const std::string&) const override { return true; }
  std::string dtype(const std::string&) const override { return "as asked"; }
  Tensor take(const std::string&, const Shape& shape) const override {
    if (shape.rank() < 2) return Tensor::full(shape, 1.0f);
    Tensor out = Tensor::uninitialized(kind_, shape);
    for (std::size_t done = 0, all = out.bytes(), some = period_.bytes(); done < all; done += some)
      std::memcpy(out.mutable_stored() + done, period_.stored(), std::min(some, all - done));
    return floats_ ? out.copy() : out;
  }

 private:
  Stored kind_;
  bool floats_;
  Tensor period_;
};

double highest_memory() {
  return static_cast<double>(memory_entry(read_input("/proc/self/status", 1 << 20), "VmHWM"));
}

std::vector<std::int32_t> tokens(int n) {
  std::vector<std::int32_t> all;
  for (int i = 0; i < n; ++i) all.push_back(i * 7919 % 32000);
  return all;
}

void llama_1b_bf16(benchmark::State& state) {
  Backend backend;
  const Folder folder(tiny_llama(22));
  const Ctx ctx{backend};
  for (auto _ : state) {
    Model::load(folder.path(), backend);          // now the file is in the system's cache
    std::ofstream("/proc/self/clear_refs") << 5;  // the highest so far is forgotten
    std::shared_ptr<const Model> model;
    const double opened = seconds([&] { model = Model::load(folder.path(), backend); });
    KvCache cache(model->config().dims, 256);
    model->forward(ctx, tokens(16), &cache, {}, false);
    const std::vector<Tensor> all = matrices(*model);
    std::vector<double> token, reading;
    for (int i = 0; i < 20; ++i) {
      reading.push_back(seconds([&] { read_once(all, backend.pool()); }));
      token.push_back(seconds([&] { model->forward(ctx, tokens(1), &cache, {}, false); }));
    }
    state.SetIterationTime(opened);
    state.counters["open_s"] = opened;
    state.counters["peak_by_file"] = highest_memory() / folder.bytes();
    state.counters["tokens_per_s"] = 1 / median(token);
    state.counters["token_by_reading"] = median(token) / median(reading);
    state.counters["read_GB_per_s"] =
        std::accumulate(all.begin(), all.end(), 0.0,
                        [](double sum, const Tensor& t) { return sum + static_cast<double>(t.bytes()); }) /
        median(reading) * 1e-9;
  }
}

/// So many tokens behind 16 others, and the logits of the last: beside its bytes ÷ bandwidth or, if that is more, its
/// operations ÷ what registers take.
void beside_bound(benchmark::State& state, Stored kind) {
  Backend backend;
  const ModelConfig config = tiny_llama(4);
  const auto model = Model::build(config, read_weights(RandomWeights(kind), config), "random numbers", backend);
  const Ctx ctx{backend};
  const auto n = static_cast<int>(state.range(0));
  KvCache cache(config.dims, 64);
  model->forward(ctx, tokens(16), &cache, {}, false);
  const BareProducts work = model->bare_products(backend, n, 1);
  SpeedBounds bounds(backend.pool(), work.bytes);
  std::vector<double> took;
  for (auto _ : state) {
    cache.truncate(16);
    took.push_back(seconds([&] { model->forward(ctx, tokens(n), &cache, {}, false); }));
    state.SetIterationTime(took.back());
    bounds.measure();
  }
  state.counters["ms"] = 1e3 * median(took);
  state.counters["bound_ms"] = 1e3 * bounds.seconds(work);
  state.counters["of_bound"] = median(took) / bounds.seconds(work);
  state.counters["weights_MB"] = 1e-6 * work.bytes;
  state.SetLabel(bounds.by_memory(work) ? "memory" : "arithmetic");
}

/// A pass over so many tokens, beside the same numbers in float32 and beside reading the bytes of the matrices once, in
/// turns.
void blocks_beside_floats(benchmark::State& state, Stored kind) {
  Backend backend;
  const ModelConfig config = tiny_llama(4);
  const auto model = [&](bool floats) {
    return Model::build(config, read_weights(RandomWeights(kind, floats), config), "random numbers", backend);
  };
  const auto stored = model(false), floats = model(true);
  const Ctx ctx{backend};
  const auto text = tokens(static_cast<int>(state.range(0)));
  const std::vector<Tensor> all = matrices(*stored);
  std::vector<double> own, other, reading;
  for (auto _ : state) {
    own.push_back(seconds([&] { stored->forward(ctx, text, nullptr, {}, false); }));
    other.push_back(seconds([&] { floats->forward(ctx, text, nullptr, {}, false); }));
    reading.push_back(seconds([&] { read_once(all, backend.pool()); }));
    state.SetIterationTime(own.back());
  }
  state.counters["stored_ms"] = 1e3 * median(own);
  state.counters["floats_ms"] = 1e3 * median(other);
  state.counters["ratio"] = median(own) / median(other);
  state.counters["by_reading"] = median(own) / median(reading);
}

/// One row times columns that stay in a cache, by one thread; numbers in a second of its own time.
void blocks_in_cache(benchmark::State& state) {
  constexpr Index depth = 2048;
  const Stored kind = testing::block_kinds[state.range(0)];
  const Tensor x = testing::random_tensor({1, depth}, 1),
               w = testing::stored_copy(kind, testing::random_tensor({256, depth}, 2)).transpose(0, 1);
  const Index columns = stored::whole_columns(kind, w.dim(1));
  std::vector<float> out(static_cast<std::size_t>(columns));
  for (auto _ : state) stored::multiply_columns(*w.lines(), x.data(), depth, columns, 256, nullptr, out.data(), 0);
  state.SetItemsProcessed(state.iterations() * depth * columns);
  for (const DTypeInfo& info : dtypes())
    if (info.stored == kind) state.SetLabel(std::string(info.name));
}

/// A pass over so many tokens, beside the same with float32 weights, in turns.
void beside_floats(benchmark::State& state, const ModelConfig& config) {
  const int n = static_cast<int>(state.range(0));
  Backend backend;
  const Folder folder(config);
  class Floats final : public WeightSource {
   public:
    explicit Floats(const TensorFile& file) : file_(file) {}
    std::string where() const override { return "floats"; }
    std::vector<std::string> names() const override { return {}; }
    bool contains(const std::string& name) const override { return file_.contains(name); }
    std::string dtype(const std::string&) const override { return "F32"; }
    Tensor take(const std::string& name, const Shape&) const override { return file_.tensor(name); }

   private:
    const TensorFile& file_;
  };
  const SafetensorsFile file = SafetensorsFile::open(folder.path());
  const auto stored = Model::load(folder.path(), backend);
  const auto floats = Model::build(config, read_weights(Floats(file), config), "floats", backend);
  const Ctx ctx{backend};
  const auto text = tokens(n);
  std::vector<double> own, other;
  floats->forward(ctx, text);
  for (auto _ : state) {
    own.push_back(seconds([&] { stored->forward(ctx, text); }));
    other.push_back(seconds([&] { floats->forward(ctx, text); }));
    state.SetIterationTime(own.back());
  }
  state.counters["stored_ms"] = 1e3 * median(own);
  state.counters["floats_ms"] = 1e3 * median(other);
  state.counters["ratio"] = median(own) / median(other);
}

void few_and_many(benchmark::internal::Benchmark* each) {
  each->Arg(1)->Arg(16)->Arg(64)->Arg(512)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(9);
}

}  // namespace

BENCHMARK(llama_1b_bf16)->Iterations(1)->UseManualTime()->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(beside_floats, llama_of_four_layers, tiny_llama(4))
    ->Arg(1)
    ->Arg(16)
    ->Arg(64)
    ->Arg(128)
    ->Arg(512)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(2);
BENCHMARK_CAPTURE(beside_floats, gpt2_by_rows, small_gpt2())
    ->Arg(1)
    ->Arg(16)
    ->Arg(64)
    ->Arg(512)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(2);
BENCHMARK_CAPTURE(beside_bound, bf16, Stored::bf16)
    ->Arg(1)
    ->Arg(16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(2);
BENCHMARK_CAPTURE(beside_bound, q8_0, Stored::q8_0)
    ->Arg(1)
    ->Arg(16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(2);
BENCHMARK_CAPTURE(beside_bound, f32, Stored::f32)
    ->Arg(1)
    ->Arg(16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(2);
BENCHMARK(blocks_in_cache)->DenseRange(0, std::size(testing::block_kinds) - 1);
BENCHMARK_CAPTURE(blocks_beside_floats, q8_0, Stored::q8_0)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q4_0, Stored::q4_0)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q4_1, Stored::q4_1)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q5_0, Stored::q5_0)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q5_1, Stored::q5_1)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q2_k, Stored::q2_k)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q3_k, Stored::q3_k)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q4_k, Stored::q4_k)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q5_k, Stored::q5_k)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, q6_k, Stored::q6_k)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq1_s, Stored::iq1_s)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq1_m, Stored::iq1_m)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq2_xxs, Stored::iq2_xxs)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq2_xs, Stored::iq2_xs)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq2_s, Stored::iq2_s)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq3_xxs, Stored::iq3_xxs)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq3_s, Stored::iq3_s)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq4_nl, Stored::iq4_nl)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, iq4_xs, Stored::iq4_xs)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, mxfp4, Stored::mxfp4)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, nvfp4, Stored::nvfp4)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, tq1_0, Stored::tq1_0)->Apply(few_and_many);
BENCHMARK_CAPTURE(blocks_beside_floats, tq2_0, Stored::tq2_0)->Apply(few_and_many);
