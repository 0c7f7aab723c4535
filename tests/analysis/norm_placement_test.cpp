#include "core/analysis/norm_placement.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/edits/intervention_tap.h"
#include "core/metrics/next_token.h"
#include "core/train/gradients.h"
#include "tests/analysis/subjects.h"

namespace headscope::norm_placement_test {

using testing::ReadSubject;

namespace {
/// The norm by its definition, in double.
std::vector<double> norm_by_hand(const ModelConfig& config, const NormWeights& weights, const std::vector<double>& x) {
  const bool centred = config.norm == NormKind::layer_norm;
  const auto n = static_cast<double>(x.size());
  double mean = 0, square = 0;
  for (const double v : x) mean += centred ? v / n : 0;
  for (const double v : x) square += (v - mean) * (v - mean) / n;
  std::vector<double> out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<Index>(i);
    const double bias = centred ? static_cast<double>(weights.bias.at(at)) : 0;
    out.push_back((x[i] - mean) / std::sqrt(square + config.norm_epsilon) * static_cast<double>(weights.gain.at(at)) +
                  bias);
  }
  return out;
}

std::vector<double> sum(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

void same(const Tensor& seen, Index row, const std::vector<double>& expected) {
  for (std::size_t j = 0; j < expected.size(); ++j)
    CHECK(static_cast<double>(seen.at(row, static_cast<Index>(j))) ==
          doctest::Approx(expected[j]).epsilon(1e-4).scale(1));
}

double loss_of(const Model& model, const Ctx& ctx, const std::vector<std::int32_t>& ids) {
  const Tensor logits = model.forward(ctx, ids).logits;
  double sum = 0;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i)
    sum += next_token_loss(logits.select(0, static_cast<Index>(i)), ids[i + 1]);
  return sum / static_cast<double>(ids.size() - 1);
}

/// Adds a tensor to the embedding.
class Push final : public Tap {
 public:
  Push(const Tensor& by, double size) : by_(by), size_(size) {}
  bool wants(Site site) const override { return site.kind == SiteKind::embed; }
  Tensor at(Site, const Tensor& value) override {
    Tensor out = value.copy();
    for (std::size_t i = 0; i < out.values().size(); ++i)
      out.mutable_values()[i] += static_cast<float>(size_ * static_cast<double>(by_.values()[i]));
    return out;
  }

 private:
  const Tensor& by_;
  double size_;
};
}  // namespace

TEST_CASE("post norm: each norm stands behind its sum, by the definition, in both families") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    const ReadSubject s(folder, {5, 9, 5, 30, 9, 5, 17, 2}, {parse_intervention("*: post norm", "edit")});
    const ModelConfig& config = s.model().config();
    for (int layer = 0; layer < s.dims().layers; ++layer) {
      const BlockWeights& block = s.weights.blocks[static_cast<std::size_t>(layer)];
      for (Index i = 0; i < 8; ++i) {
        using testing::row;
        const auto x = row(s.site(SiteKind::resid_pre, layer), i);
        CHECK(row(s.site(SiteKind::ln1_normalized, layer), i) == x);  // attention reads the stream itself
        const auto mid = norm_by_hand(config, block.ln1, sum(x, row(s.site(SiteKind::attn_out, layer), i)));
        same(s.site(SiteKind::resid_mid, layer), i, mid);
        CHECK(row(s.site(SiteKind::ln2_normalized, layer), i) == row(s.site(SiteKind::resid_mid, layer), i));
        const auto post =
            norm_by_hand(config, block.ln2,
                         sum(row(s.site(SiteKind::resid_mid, layer), i), row(s.site(SiteKind::mlp_out, layer), i)));
        same(s.site(SiteKind::resid_post, layer), i, post);
      }
    }
  }
}

TEST_CASE("post norm reaches the layer and the rows that it names") {
  const ReadSubject plain("gpt2-random"),
      s("gpt2-random", {5, 9, 5, 30, 9, 5, 17, 2}, {parse_intervention("1.*@2..4: post norm", "edit")});
  using testing::row;
  for (Index i = 0; i < 8; ++i) {
    CHECK(row(s.site(SiteKind::resid_post, 0), i) == row(plain.site(SiteKind::resid_post, 0), i));
    const bool moved = row(s.site(SiteKind::ln1_normalized, 1), i) == row(s.site(SiteKind::resid_pre, 1), i);
    CHECK(moved == (i >= 2 && i <= 4));
  }
  CHECK(row(s.site(SiteKind::resid_post, 1), 0) == row(plain.site(SiteKind::resid_post, 1), 0));
  CHECK(row(s.site(SiteKind::resid_post, 1), 3) != row(plain.site(SiteKind::resid_post, 1), 3));
  CHECK_THROWS_AS(parse_intervention("1.0: post norm", "edit"), Error);
}

TEST_CASE("gradients flow through norms that were moved") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const std::vector<std::int32_t> ids = s.trace->ids();
    Backend backend{2};
    EditScene scene{s.dims(), ids, {}, &s.model(), 0, &backend};
    const std::vector<Intervention> edits{parse_intervention("*: post norm", "edit")};
    InterventionTap moved(edits, scene);
    const InputGradients g =
        input_gradients(s.model(), {.backend = backend, .tap = &moved}, ids, {.kind = GradientOf::Kind::loss});
    const Tensor direction = g.embedding.packed();
    double square = 0;
    for (const float v : direction.values()) square += static_cast<double>(v) * static_cast<double>(v);
    REQUIRE(square > 0);
    const double step = 2e-3 / std::sqrt(square);
    const auto at = [&](double size) {
      Push push(direction, size);
      InterventionTap again(edits, scene);
      TapChain chain({&push, &again});
      return loss_of(s.model(), {.backend = backend, .tap = &chain}, ids);
    };
    // Along its own gradient the loss rises by the gradient's squared length.
    CHECK((at(step) - at(-step)) / (2 * step) == doctest::Approx(square).epsilon(0.02));
  }
}

TEST_CASE("the comparison holds both runs of the same weights") {
  ReadSubject s("gpt2-random");
  const NormPlacement found = compare_norm_placement(s.loaded, s.request, s.ctx());
  CHECK(found.pre.loss == doctest::Approx(mean_loss(*s.trace)));
  RunRequest moved = s.request;
  moved.edits.push_back(parse_intervention("*: post norm", "edit"));
  CHECK(found.post.loss == doctest::Approx(mean_loss(*run(s.loaded, moved, s.ctx()))));
  CHECK(found.kl.size() == 8);
  for (const double kl : found.kl) CHECK(kl >= 0);
  CHECK(found.kl[3] > 0);
}

TEST_CASE("random stacks: the stream grows with the norm before, and has its own length with the norm behind") {
  Backend backend{2};
  const Ctx ctx{.backend = backend};
  const RandomStacks found = random_stacks({.layers = 10, .width = 32, .heads = 4, .mlp = 128, .tokens = 24}, ctx);
  REQUIRE(found.pre.residual.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    if (i > 0) CHECK(found.pre.residual[i] > 0.9 * found.pre.residual[i - 1]);
    CHECK(found.post.residual[i] == doctest::Approx(std::sqrt(32.0)).epsilon(1e-3));  // gain 1, bias 0
  }
  CHECK(found.pre.residual.back() > 2 * found.pre.residual.front());
  // Xiong et al. 2020: the gradient of the last block's matrix is larger with the norm behind than before.
  CHECK(found.post.weight_gradient.back() > 1.5 * found.pre.weight_gradient.back());
  const RandomStacks again = random_stacks(found.stack, ctx);
  CHECK(again.pre.weight_gradient == found.pre.weight_gradient);
  CHECK(again.post.loss == found.post.loss);
  CHECK_THROWS_AS(random_stacks({.width = 30, .heads = 4}, ctx), Error);
  CHECK_THROWS_AS(random_stacks({.layers = 0}, ctx), Error);
  // 64 · (4 · 1024² + 2 · 1024 · 8192) + 2 · 1024 parameters.
  CHECK_THROWS_WITH_AS(random_stacks({.layers = 64, .width = 1024, .heads = 1, .mlp = 8192, .vocabulary = 2}, ctx),
                       doctest::Contains("1342 million"), Error);
  const RandomStack least{.layers = 1, .width = 2, .heads = 1, .mlp = 1, .tokens = 2, .vocabulary = 2};
  CHECK_NOTHROW(random_stacks(least, ctx));
}

TEST_CASE("what a random stack may be: the ends of every range are within, and what lies beyond is named") {
  Backend backend{1};
  const Ctx ctx{.backend = backend};
  const RandomStack least{.layers = 1, .width = 2, .heads = 1, .mlp = 1, .tokens = 2, .vocabulary = 2};
  const auto of = [&](auto change) {
    RandomStack stack = least;
    change(stack);
    try {
      random_stacks(stack, ctx);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(of([](RandomStack& s) { s.layers = 64; }).empty());
  CHECK(of([](RandomStack& s) { s.width = 1024; }).empty());
  CHECK(of([](RandomStack& s) { s.width = 4, s.heads = 4; }).empty());
  CHECK(of([](RandomStack& s) { s.mlp = 8192; }).empty());
  CHECK(of([](RandomStack& s) { s.tokens = 512; }).empty());
  CHECK(of([](RandomStack& s) { s.vocabulary = 65536; }).empty());
  const auto refused = [&](auto change, const char* expected, const char* found) {
    const std::string said = of(change);
    CAPTURE(said);
    CHECK(said.find(expected) != std::string::npos);
    CHECK(said.find(found) != std::string::npos);
  };
  refused([](RandomStack& s) { s.layers = 65; }, "1 to 64 layers", "65");
  refused([](RandomStack& s) { s.width = 1; }, "a width of 2 to 1024", "1");
  refused([](RandomStack& s) { s.width = 1025; }, "a width of 2 to 1024", "1025");
  refused([](RandomStack& s) { s.heads = 0; }, "divides the width 2", "0");
  refused([](RandomStack& s) { s.mlp = 0; }, "an MLP of 1 to 8192", "0");
  refused([](RandomStack& s) { s.mlp = 8193; }, "an MLP of 1 to 8192", "8193");
  refused([](RandomStack& s) { s.tokens = 1; }, "2 to 512 tokens", "1");
  refused([](RandomStack& s) { s.tokens = 513; }, "2 to 512 tokens", "513");
  refused([](RandomStack& s) { s.vocabulary = 1; }, "a vocabulary of 2 to 65536", "1");
  refused([](RandomStack& s) { s.vocabulary = 65537; }, "a vocabulary of 2 to 65536", "65537");
  // 16 · (4 · 1024² + 2 · 1024 · 512) + 1024 · 16,000 = 100.3 million; of both parts neither alone is too much.
  refused([](RandomStack& s) { s.layers = 16, s.width = 1024, s.mlp = 512, s.vocabulary = 16000; },
          "at most 100 million parameters", "100 million");
}

}  // namespace headscope::norm_placement_test
