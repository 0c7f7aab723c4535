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
