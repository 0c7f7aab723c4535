#include "core/analysis/residual_stream.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/analysis/subjects.h"

namespace headscope::residual_stream_test {

using testing::ReadSubject;

TEST_CASE("norms, what is added and its angle, by their definitions on three numbers") {
  Trace trace;
  trace.model.dims = {.layers = 1, .heads = 1, .kv_heads = 1, .d_head = 3, .d_model = 3, .d_mlp = 2, .vocab = 5};
  trace.tokens.resize(2);
  const auto put = [&](SiteKind kind, std::initializer_list<float> values) {
    trace.sites[{kind, 0}] = Tensor::from({2, 3}, std::vector<float>(values));
  };
  put(SiteKind::resid_pre, {3, 4, 0, 0, 0, 0});
  put(SiteKind::attn_out, {-3, 0, 0, 1, 2, 2});
  put(SiteKind::resid_mid, {0, 4, 0, 1, 2, 2});
  put(SiteKind::mlp_out, {0, 2, 0, 2, -1, 0});
  put(SiteKind::resid_post, {0, 6, 0, 3, 1, 2});
  const ResidualStream s = read_residual_stream(trace);
  REQUIRE(s.stages.size() == 3);
  CHECK(s.stages[1].name == "0 attn");
  CHECK(s.norm.at(0, 0) == 5);
  CHECK(s.norm.at(1, 1) == 3);
  CHECK(s.norm.at(2, 0) == 6);
  CHECK(ResidualStream::mean(s.norm, 0) == 2.5);
  CHECK(s.added.at(0, 0) == 3);
  CHECK(s.added.at(1, 1) == doctest::Approx(std::sqrt(5.0)));
  CHECK(s.cosine.at(0, 0) == doctest::Approx(-9.0 / 15));  // it takes away from what is there
  CHECK(std::isnan(s.cosine.at(0, 1)));                    // of nothing
  CHECK(ResidualStream::mean(s.cosine, 0) == doctest::Approx(-0.6));
  CHECK(s.cosine.at(1, 0) == doctest::Approx(1));
  CHECK(s.cosine.at(1, 1) == doctest::Approx(0).scale(1));
}

TEST_CASE("norms of successive stages obey the law of cosines, on every model") {
  for (const char* folder : {"gpt2-random", "llama-gqa", "llama-bias"}) {
    CAPTURE(folder);
    const ReadSubject s(folder);
    const ResidualStream r = read_residual_stream(*s.trace);
    CHECK(r.parts.size() == static_cast<std::size_t>(2 * s.dims().layers));
    CHECK(r.stages.size() == r.parts.size() + 1);
    for (Index p = 0; p < r.added.dim(0); ++p)
      for (Index i = 0; i < r.added.dim(1); ++i) {
        const auto x = static_cast<double>(r.norm.at(p, i)), f = static_cast<double>(r.added.at(p, i));
        const double next = std::sqrt(x * x + f * f + 2 * x * f * static_cast<double>(r.cosine.at(p, i)));
        CHECK(static_cast<double>(r.norm.at(p + 1, i)) == doctest::Approx(next).epsilon(1e-4));
      }
  }
}

TEST_CASE(
    "a convolution of what enters the first layer is a part of its own, between the MLP and the norm behind both") {
  using Kind = ResidualStream::Part::Kind;
  const ReadSubject s("families/deberta_v2-convolution");
  const ResidualStream r = read_residual_stream(*s.trace);
  const int layers = s.dims().layers;
  REQUIRE(r.parts.size() == static_cast<std::size_t>(2 * layers + 1));
  REQUIRE(r.stages.size() == r.parts.size() + 1);
  CHECK(r.stages[2].name == "0 mlp");
  CHECK(r.stages[2].site == Site{SiteKind::resid_late, 0});
  CHECK(r.stages[3].name == "0 convolution");
  CHECK(r.stages[3].site == Site{SiteKind::resid_post, 0});
  CHECK(r.stages[4].name == "1 attn");
  CHECK(r.parts[2].name == "0 convolution");
  CHECK(r.parts[2].kind == Kind::convolution);
  CHECK(r.parts[3].kind == Kind::attention);
  CHECK_FALSE(s.trace->sites.contains({SiteKind::resid_late, 1}));
  CHECK_FALSE(s.trace->sites.contains({SiteKind::layer_input, 0}));
  const Tensor &late = s.site(SiteKind::resid_late, 0), &out = s.site(SiteKind::layer_out, 0);
  for (Index i = 0; i < late.dim(0); ++i) {
    double product = 0, x = 0, f = 0;
    for (Index d = 0; d < late.dim(1); ++d) {
      const double a = static_cast<double>(late.at(i, d)), b = static_cast<double>(out.at(i, d));
      product += a * b, x += a * a, f += b * b;
    }
    CHECK(static_cast<double>(r.norm.at(2, i)) == doctest::Approx(std::sqrt(x)).epsilon(1e-5));
    CHECK(static_cast<double>(r.added.at(2, i)) == doctest::Approx(std::sqrt(f)).epsilon(1e-5));
    CHECK(static_cast<double>(r.cosine.at(2, i)) == doctest::Approx(product / std::sqrt(x * f)).epsilon(1e-4));
  }
}

TEST_CASE("a layer's own input and the scale of the stream are parts: all of them sum to the stream") {
  using Kind = ResidualStream::Part::Kind;
  for (const bool inputs : {true, false}) {
    CAPTURE(inputs);
    const ReadSubject s(inputs ? "families/gemma4_text" : "families/gemma4_unified_text");
    const ResidualStream r = read_residual_stream(*s.trace);
    const int layers = s.dims().layers, of_block = inputs ? 4 : 3;
    REQUIRE(r.parts.size() == static_cast<std::size_t>(of_block * layers));
    REQUIRE(r.stages.size() == r.parts.size() + 1);
    CHECK(r.stages[3].name == (inputs ? "0 input" : "0 scale"));
    CHECK(r.stages[2].name == "0 mlp");
    CHECK(r.stages.back().site == Site{SiteKind::resid_post, layers - 1});
    for (std::size_t p = 0; p < r.parts.size(); ++p) {
      CHECK(r.parts[p].name == r.stages[p + 1].name);
      CHECK(r.parts_of(static_cast<Index>(p) + 1) == std::vector<std::size_t>{p});
    }

    // Number by number, from the embedding on, with what every part is by its own definition.
    const Index last = static_cast<Index>(s.trace->tokens.size()) - 1, width = s.dims().d_model;
    std::vector<double> x(static_cast<std::size_t>(width));
    double product = 1;
    for (Index d = 0; d < width; ++d)
      x[static_cast<std::size_t>(d)] = static_cast<double>(s.site(SiteKind::resid_pre, 0).at(last, d));
    for (std::size_t p = 0; p < r.parts.size(); ++p) {
      const ResidualStream::Part& part = r.parts[p];
      CAPTURE(part.name);
      const double factor = part.kind == Kind::scale ? r.factor(p, last) : 1;
      product *= factor;
      double square = 0, added = 0;
      for (Index d = 0; d < width; ++d) {
        double& here = x[static_cast<std::size_t>(d)];
        const auto of = [&](SiteKind kind) { return static_cast<double>(s.site(kind, part.layer).at(last, d)); };
        const double f = part.kind == Kind::attention ? of(SiteKind::attn_out)
                         : part.kind == Kind::mlp     ? of(SiteKind::mlp_out)
                         : part.kind == Kind::input   ? of(SiteKind::layer_out)
                                                      : (factor - 1) * here;
        here += f, added += f * f;
        const Site site = r.stages[p + 1].site;
        CHECK(here == doctest::Approx(static_cast<double>(s.site(site.kind, site.layer).at(last, d))).scale(1));
        square += here * here;
      }
      const auto stage = static_cast<Index>(p) + 1;
      CHECK(static_cast<double>(r.norm.at(stage, last)) == doctest::Approx(std::sqrt(square)).epsilon(1e-4));
      CHECK(static_cast<double>(r.added.at(stage - 1, last)) == doctest::Approx(std::sqrt(added)).epsilon(1e-4));
      if (part.kind != Kind::scale) continue;
      CHECK(std::abs(factor - 1) > 1e-3);  // the reference model has a number of its own in each layer
      CHECK(static_cast<double>(r.cosine.at(stage - 1, last)) == doctest::Approx(factor > 1 ? 1 : -1).epsilon(1e-4));
      CHECK(r.factor(p, 0) == doctest::Approx(factor).epsilon(1e-4));  // the same at every position
    }
    CHECK(r.factors(last) == doctest::Approx(product).epsilon(1e-6));
  }
}

TEST_CASE("the parts of a block whose attention and MLP read the same stream lead to the same stage") {
  const ReadSubject s("families/gpt_neox");
  REQUIRE(s.dims().parallel);
  const ResidualStream r = read_residual_stream(*s.trace);
  CHECK(r.parts_of(1) == std::vector<std::size_t>{0, 1});
  CHECK(r.parts_of(2) == std::vector<std::size_t>{2, 3});
  CHECK(r.parts[3].name == "1 mlp");
  CHECK(r.stages[2].name == "1 block");
}

TEST_CASE("a site that was not recorded is named") {
  ReadSubject s("gpt2-random");
  Trace bare = *s.trace;
  bare.sites.erase({SiteKind::mlp_out, 1});
  try {
    (void)read_residual_stream(bare);
    FAIL("no error");
  } catch (const Error& wrong) {
    CHECK(wrong.where == "blocks.1.hook_mlp_out");
  }
}

}  // namespace headscope::residual_stream_test
