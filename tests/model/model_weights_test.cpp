// The weights that a model hands out are those it multiplies with.

#include <doctest/doctest.h>

#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "core/model/weights.h"
#include "tests/analysis/subjects.h"

namespace headscope::model_weights_test {

using testing::ReadSubject;

TEST_CASE("weights by head give the pass's own q, k, v and output") {
  for (const char* folder : {"gpt2-random", "gpt2-untied-erf", "llama-gqa", "llama-bias"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const ModelDims& d = s.dims();
    for (int layer = 0; layer < d.layers; ++layer) {
      const BlockWeights& block = s.weights.blocks[static_cast<std::size_t>(layer)];
      for (const Index position : {Index{0}, Index{6}}) {
        const auto x = testing::row(s.site(SiteKind::ln1_normalized, layer), position);
        std::vector<double> written(static_cast<std::size_t>(d.d_model), 0);
        for (int head = 0; head < d.heads; ++head) {
          const HeadWeights& w = block.heads[static_cast<std::size_t>(head)];
          const int group = head * d.kv_heads / d.heads;
          const auto q = testing::times(x, w.q, w.q_bias), k = testing::times(x, w.k, w.k_bias),
                     v = testing::times(x, w.v, w.v_bias);
          for (Index i = 0; i < d.d_head; ++i) {
            const auto at = static_cast<std::size_t>(i);
            CHECK(q[at] == doctest::Approx(s.site(SiteKind::q, layer).at(position, head, i)).epsilon(1e-4).scale(1));
            CHECK(k[at] == doctest::Approx(s.site(SiteKind::k, layer).at(position, group, i)).epsilon(1e-4).scale(1));
            CHECK(v[at] == doctest::Approx(s.site(SiteKind::v, layer).at(position, group, i)).epsilon(1e-4).scale(1));
          }
          const auto part = testing::times(testing::row(s.site(SiteKind::z, layer).select(0, position), head), w.o);
          for (std::size_t i = 0; i < part.size(); ++i) written[i] += part[i];
        }
        for (Index i = 0; i < d.d_model; ++i) {
          const double bias = block.o_bias.defined() ? static_cast<double>(block.o_bias.at(i)) : 0;
          CHECK(written[static_cast<std::size_t>(i)] + bias ==
                doctest::Approx(s.site(SiteKind::attn_out, layer).at(position, i)).epsilon(1e-4).scale(1));
        }
      }
    }
    const auto last = testing::row(s.site(SiteKind::final_normalized), 7);
    const auto logits = testing::times(last, s.weights.unembedding);
    for (std::size_t t = 0; t < logits.size(); t += 7)
      CHECK(logits[t] == doctest::Approx(s.trace->logits.at(7, static_cast<Index>(t))).epsilon(1e-4).scale(1));
  }
}

TEST_CASE("weights of a model in training are found in joined matrices too") {
  Backend backend(1);
  const auto folder = testing::reference("gpt2-random");
  const ModelConfig config = load_config(folder);
  const SafetensorsFile file = SafetensorsFile::open(folder);
  const auto fixed = Model::load(folder, backend);
  const auto changing =
      Model::build(config, read_weights(file, config), "test", backend, Model::Weights::changing)->weights();
  const ModelWeights usual = fixed->weights();
  for (std::size_t head = 0; head < 4; ++head) {
    const HeadWeights &a = usual.blocks[1].heads[head], &b = changing.blocks[1].heads[head];
    for (Index i = 0; i < 32; i += 5)
      for (Index j = 0; j < 8; ++j) {
        CHECK(a.q.at(i, j) == b.q.at(i, j));
        CHECK(a.k.at(i, j) == b.k.at(i, j));
        CHECK(a.v.at(i, j) == b.v.at(i, j));
        CHECK(a.v_bias.at(j) == b.v_bias.at(j));
      }
  }
}

}  // namespace headscope::model_weights_test
