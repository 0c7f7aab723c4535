// What the reading tools say of every family: right, or a sentence why there is nothing to say.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "core/analysis/circuits.h"
#include "core/analysis/composition.h"
#include "core/analysis/feed_forward.h"
#include "core/analysis/logit_attribution.h"
#include "core/analysis/logit_lens.h"
#include "core/analysis/norms.h"
#include "core/analysis/residual_stream.h"
#include "core/analysis/token_path.h"
#include "core/base/error.h"
#include "core/trace/layer_kinds.h"
#include "tests/analysis/subjects.h"

namespace headscope::families_reading_test {

using namespace testing;

namespace {
template <class Check>
void for_each_family(Check&& check) {
  for (const auto& entry : std::filesystem::directory_iterator(reference("families"))) {
    const std::string family = entry.path().filename().string();
    CAPTURE(family);
    ReadSubject subject("families/" + family);
    check(subject, subject.model().config());
  }
}
}  // namespace

TEST_CASE("direct logit attribution adds up to the logit in every family, or says why it cannot") {
  for_each_family([](ReadSubject& s, const ModelConfig& c) {
    const AttributionOf of{.position = 5, .token = 11};
    if (c.norm_place != NormPlace::before || c.logit_cap > 0 || c.head_layer) {
      CHECK_THROWS_AS(logit_attribution(s.model(), *s.trace, of), Error);
      return;
    }
    const LogitAttribution found = logit_attribution(s.model(), *s.trace, of);
    CHECK(found.sum() == doctest::Approx(found.logit).epsilon(1e-4).scale(0.1));
    CHECK(found.value(AttributionPart::Kind::remainder) == 0);
    if (c.dims.d_mlp == 0) {
      CHECK_THROWS_WITH_AS(read_feed_forward(s.model(), s.backend, *s.trace, 1, of, 4, 3),
                           doctest::Contains(c.dims.any_attends() ? "attention alone" : "a state alone"), Error);
      return;
    }
    if (!c.dims.has_mlp(1)) {
      CHECK_THROWS_WITH_AS(read_feed_forward(s.model(), s.backend, *s.trace, 1, of, 4, 3),
                           doctest::Contains("layer 1, which has none"), Error);
      return;
    }
    if (c.experts.at(1)) {
      CHECK_THROWS_WITH_AS(read_feed_forward(s.model(), s.backend, *s.trace, 1, of, 4, 3), doctest::Contains("experts"),
                           Error);
      return;
    }
    const FeedForward mlp = read_feed_forward(s.model(), s.backend, *s.trace, 1, of, 4, 3);
    CHECK(mlp.logit == doctest::Approx(found.value(AttributionPart::Kind::mlp, 1)).epsilon(1e-3).scale(0.1));
  });
}

TEST_CASE("lens, stream and path follow the streams that a family has") {
  for_each_family([](ReadSubject& s, const ModelConfig& c) {
    const LogitLens lens = logit_lens(s.model(), s.ctx(), *s.trace, {}, 3);
    const auto layers = static_cast<std::size_t>(c.dims.layers);
    const auto bare = static_cast<std::size_t>(std::ranges::count(c.dims.bare, true));
    const std::size_t further =
        layers * ((c.dims.d_layer > 0 ? 1 : 0) + (c.dims.stream_scales ? 1 : 0)) + (c.dims.convolves_first ? 1 : 0);
    CHECK(lens.stages.size() == 1 + (c.dims.has_mid() ? 2 : 1) * layers - bare + further);
    const Index last = static_cast<Index>(s.trace->tokens.size()) - 1;
    const std::size_t at = (lens.stages.size() - 1) * s.trace->tokens.size() + static_cast<std::size_t>(last);
    const NextToken& top = lens.top[at * static_cast<std::size_t>(lens.kept)];
    CHECK(top.logit == doctest::Approx(s.trace->logits.at(last, top.id)).epsilon(1e-4));

    const ResidualStream stream = read_residual_stream(*s.trace);
    CHECK(stream.stages.size() == lens.stages.size());
    CHECK(stream.parts.size() == (c.dims.d_mlp > 0 ? 2 : 1) * layers - bare + further);
    for (Index stage = 1; stage < static_cast<Index>(stream.stages.size()); ++stage) {
      const std::vector<std::size_t> parts = stream.parts_of(stage);
      CHECK(parts.size() == (c.dims.parallel ? 2 : 1));
      for (const std::size_t part : parts) CHECK(stream.parts[part].layer == nth(stream.stages, stage).site.layer);
    }
    // What is added takes one stream to the next.
    for (int layer = 0; layer < c.dims.layers && !c.norms_sums(); ++layer) {
      const Tensor &pre = s.site(SiteKind::resid_pre, layer), &post = s.site(SiteKind::resid_post, layer);
      const auto sum = [&](Index d) {
        return pre.at(3, d) + s.site(SiteKind::attn_out, layer).at(3, d) +
               (c.dims.has_mlp(layer) ? s.site(SiteKind::mlp_out, layer).at(3, d) : 0.0f) +
               (c.dims.d_layer > 0 ? s.site(SiteKind::layer_out, layer).at(3, d) : 0.0f);
      };
      const float scale = c.dims.stream_scales ? post.at(3, 0) / sum(0) : 1.0f;
      if (c.dims.stream_scales) CHECK((scale > 0.5f && scale < 1.5f));
      for (Index d = 0; d < c.dims.d_model; ++d)
        CHECK(post.at(3, d) == doctest::Approx(scale * sum(d)).scale(1).epsilon(1e-5));
    }
    const TokenPath path = read_token_path(s.model(), *s.trace, 4, 3);
    CHECK(path.answers.size() == 3);
    for (const PathStage& stage : path.stages) CHECK((stage.site.kind != SiteKind::resid_mid || c.dims.has_mid()));
  });
}

TEST_CASE("norms, circuits and composition of every family, or a sentence") {
  for_each_family([](ReadSubject& s, const ModelConfig& c) {
    const auto norm = [&](WhichNorm which, int layer = 1) {
      return read_model_norm(s.model(), s.backend, *s.trace, which, layer).difference;
    };
    if (c.norm == NormKind::none) {
      CHECK_THROWS_AS(norm(WhichNorm::last, 0), Error);
      return;
    }
    if (c.head_layer || !c.last_norm())
      CHECK_THROWS_AS(norm(WhichNorm::last, 0), Error);
    else
      CHECK(norm(WhichNorm::last, 0) < 1e-5);
    if (!c.norms_before(1))
      CHECK_THROWS_AS(norm(WhichNorm::before_attention), Error);
    else
      CHECK(norm(WhichNorm::before_attention) < 1e-5);
    if (!c.norms_before(1) || c.shared_norm || !c.dims.has_mlp(1))
      CHECK_THROWS_AS(norm(WhichNorm::before_mlp), Error);
    else
      CHECK(norm(WhichNorm::before_mlp) < 1e-5);

    if (c.dims.state_space()) {
      const std::vector<std::int32_t> any{5};
      CHECK_THROWS_WITH_AS(token_circuits(s.model(), s.backend, {{0, 0}, 0}, any), doctest::Contains("with attention"),
                           Error);
      CHECK_THROWS_WITH_AS(head_composition(s.model(), s.ctx(), 4, 1), doctest::Contains("with attention"), Error);
      return;
    }
    if (!c.dims.attends(0)) {  // of the heads that attend there is the same to say, of the others nothing
      const std::vector<std::int32_t> any{5};
      CHECK_THROWS_WITH_AS(token_circuits(s.model(), s.backend, {{0, 0}, 0}, any), doctest::Contains("layer 0"), Error);
      const auto attending = std::ranges::count(c.dims.mixers, Mixer::attention);
      const int layer = static_cast<int>(std::ranges::find(c.dims.mixers, Mixer::attention) - c.dims.mixers.begin());
      if (c.output_gate)
        CHECK_THROWS_WITH_AS(token_circuits(s.model(), s.backend, {{layer, 0}, 0}, any), doctest::Contains("gate"),
                             Error);
      else if (c.norm_place != NormPlace::before)
        CHECK_THROWS_WITH_AS(token_circuits(s.model(), s.backend, {{layer, 0}, 0}, any),
                             doctest::Contains("norm behind attention"), Error);
      else
        CHECK(token_circuits(s.model(), s.backend, {{layer, 0}, 0}, any).qk.dim(0) == 1);
      if (c.qk_norm != QkNorm::none || c.norm_place != NormPlace::before)
        CHECK_THROWS_AS(head_composition(s.model(), s.ctx(), 4, 1), Error);
      else
        CHECK(head_composition(s.model(), s.ctx(), 4, 1).heads.size() ==
              static_cast<std::size_t>(attending * c.dims.heads));
      return;
    }
    const bool own_circuit = c.norm_place == NormPlace::before && c.clip_qkv == 0 && !c.head_layer && !c.z_norm;
    const std::vector<std::int32_t> tokens{5, 9};
    if (!own_circuit) {
      CHECK_THROWS_AS(token_circuits(s.model(), s.backend, {{0, 0}, 0}, tokens), Error);
      CHECK_THROWS_AS(copying_score(s.model(), s.backend, {0, 0}), Error);
    } else {
      CHECK(std::isnan(copying_score(s.model(), s.backend, {0, 0}).matching) ==
            (c.qk_norm != QkNorm::none || c.latent()));
      // Alone at the first place, without learned positions, a token's score with itself is the circuit's. A rotation
      // leaves it as it is.
      if (c.position != PositionKind::learned && c.score_cap == 0) {
        RunRequest one;
        one.ids = {9};
        one.capture.sites = {SiteKind::attn_scores};
        const auto trace = run(s.loaded, one, s.ctx());
        for (int head = 0; head < c.dims.heads; ++head) {
          const TokenCircuits found = token_circuits(s.model(), s.backend, {{0, head}, 0}, std::span(one.ids));
          CHECK(found.qk.at(0, 0) ==
                doctest::Approx(trace->sites.at({SiteKind::attn_scores, 0}).at(head, 0, 0)).epsilon(1e-4).scale(0.1));
        }
        // Two tokens: the second looks back by one.
        one.ids = {9, 5};
        const auto pair = run(s.loaded, one, s.ctx());
        if (c.position == PositionKind::rotary)
          for (int head = 0; head < c.dims.heads; ++head) {
            const TokenCircuits found = token_circuits(s.model(), s.backend, {{0, head}, 1}, std::span(one.ids));
            CHECK(found.qk.at(1, 0) ==
                  doctest::Approx(pair->sites.at({SiteKind::attn_scores, 0}).at(head, 1, 0)).epsilon(1e-4).scale(0.1));
          }
      }
    }
    CHECK(circuit_note(c).empty() != c.latent());
    if ((own_circuit || c.head_layer) && c.norm_place == NormPlace::before && c.qk_norm == QkNorm::none && !c.latent())
      CHECK(head_composition(s.model(), s.ctx(), 4, 1).heads.size() ==
            static_cast<std::size_t>(attending_layers(c.dims) * c.dims.heads));
    else
      CHECK_THROWS_AS(head_composition(s.model(), s.ctx(), 4, 1), Error);
  });
}

}  // namespace headscope::families_reading_test
