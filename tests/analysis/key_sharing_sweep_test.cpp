// Every row of the sweep is one whole run with that row's edit; what its latents lose is told by another decomposition.

#include "core/analysis/key_sharing_sweep.h"

#include <doctest/doctest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "core/edits/latent_keys_edit.h"
#include "core/edits/share_keys_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/model/weights.h"
#include "tests/support/jacobi.h"
#include "tests/support/paths.h"

namespace headscope::key_sharing_sweep_test {

using doctest::Approx;
using testing::jacobi;
using testing::reference;

namespace {

struct Bench {
  explicit Bench(const char* name) : loaded(load_model(reference(name), backend)) {
    request.model = reference(name);
    request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};
    request.edits = {{{0, 0}, SetTemperature{2}}};  // what is edited already stays
  }
  std::shared_ptr<const Trace> whole(std::vector<Intervention> edits) {
    RunRequest edited = request;
    edited.edits.insert(edited.edits.end(), edits.begin(), edits.end());
    return run(loaded, edited, ctx);
  }
  std::shared_ptr<const KeySharing> swept(int ranks) {
    KeySharingSweep sweep(loaded, request, ranks);
    while (!sweep.finished()) sweep.step(ctx);
    CHECK(sweep.done() == sweep.total());
    CHECK(sweep.share() == Approx(1));
    return sweep.result();
  }
  /// [W_K W_V] of a layer, the key heads side by side.
  Tensor keys_and_values(int layer) {
    const ModelDims& dims = loaded.model->config().dims;
    const BlockWeights block = loaded.model->weights().blocks[static_cast<std::size_t>(layer)];
    Tensor all = Tensor::zeros({dims.d_model, 2 * dims.kv_heads * dims.d_head});
    Index column = 0;
    for (Tensor HeadWeights::*part : {&HeadWeights::k, &HeadWeights::v})
      for (int kv = 0; kv < dims.kv_heads; ++kv) {
        const Tensor& own = block.heads[static_cast<std::size_t>(kv * dims.heads / dims.kv_heads)].*part;
        for (Index c = 0; c < dims.d_head; ++c, ++column)
          for (Index row = 0; row < dims.d_model; ++row) all.ref(row, column) = own.at(row, c);
      }
    return all;
  }
  Backend backend{1};
  Ctx ctx{backend};
  LoadedModel loaded;
  RunRequest request;
};

}  // namespace

TEST_CASE(
    "the rows are every number of groups, then ranks halving from the full one, with what each keeps of a token") {
  using Row = std::tuple<bool, int, double>;
  const auto rows = [](const char* name, int ranks) {
    std::vector<Row> out;
    const auto result = Bench(name).swept(ranks);
    for (const auto& entry : result->entries) out.push_back({entry.latent, entry.number, entry.kept});
    return out;
  };
  // Four key heads of 8 numbers in 32 dimensions: K and V of a token are 64 numbers, and cannot have a rank above 32.
  CHECK(rows("gpt2-random", 8) == std::vector<Row>{{false, 4, 64},
                                                   {false, 2, 32},
                                                   {false, 1, 16},
                                                   {true, 32, 32},
                                                   {true, 16, 16},
                                                   {true, 8, 8},
                                                   {true, 4, 4},
                                                   {true, 2, 2},
                                                   {true, 1, 1}});
  CHECK(rows("llama-gqa", 2) == std::vector<Row>{{false, 2, 32}, {false, 1, 16}, {true, 32, 32}, {true, 16, 16}});
}

TEST_CASE("each row is a run with that edit in every layer") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Bench bench(name);
    const auto result = bench.swept(4);
    const auto before = bench.whole({});
    CHECK(result->before.loss == mean_loss(*before));
    CHECK(result->before.kl == Approx(0));
    for (const auto& entry : result->entries) {
      CAPTURE(entry.latent);
      CAPTURE(entry.number);
      const auto after = bench.whole(
          {{{}, entry.latent ? EditAction(LatentKeys{entry.number}) : EditAction(ShareKeys{entry.number})}});
      CHECK(entry.outcome.loss == mean_loss(*after));
      CHECK(entry.outcome.kl == next_token_change(*before, *after, 1).kl);
    }
    CHECK(result->entries[0].outcome.loss == Approx(mean_loss(*before)).epsilon(1e-6));  // nothing is shared yet
    CHECK(result->entries.back().outcome.kl > 1e-4);
  }
}

TEST_CASE("what a latent loses is what the singular values it leaves out weigh, the mean of the layers") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Bench bench(name);
    const int layers = bench.loaded.model->config().dims.layers;
    int latents = 0;
    const auto result = bench.swept(8);
    for (const auto& entry : result->entries) {
      CAPTURE(entry.number);
      double expected = 0;
      for (int layer = 0; entry.latent && layer < layers; ++layer) {
        const auto values = jacobi(bench.keys_and_values(layer)).values;
        double left_out = 0, all = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          all += values[i] * values[i];
          if (static_cast<int>(i) >= entry.number) left_out += values[i] * values[i];
        }
        expected += std::sqrt(left_out / all) / layers;
      }
      CHECK(entry.weight_error == Approx(expected).epsilon(1e-4).scale(0.01));
      latents += entry.latent;
    }
    CHECK(latents == 6);
  }
}

}  // namespace headscope::key_sharing_sweep_test
