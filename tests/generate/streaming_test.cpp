// One pass under a mask against a stream that evicts, token by token; slices by hand.

#include "core/generate/streaming.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/attention/rotary.h"
#include "core/base/error.h"
#include "core/base/half.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::streaming_test {

using testing::reference;

namespace {

const std::vector<std::int32_t> text = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3};

/// What is left in the cache when token `query` is read: the first `sinks`, and up to `recent` with itself.
class Evicting final : public AttentionRule {
 public:
  Evicting(Index sinks, Index recent) : sinks_(sinks), recent_(recent) {}
  KeyRange keys(Index query, Index) const override { return {0, query + 1}; }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Index key = first_key + static_cast<Index>(i);
      if (key >= sinks_ && key <= query - recent_) scores[i] = -INFINITY;
    }
  }
  std::string describe() const override { return "evicting"; }

 private:
  Index sinks_, recent_;
};

/// One token after another. Of a rotary model the sinks walk along behind the window: their keys are turned to where
/// they stand as seen from a query that keeps its own position. ALiBi takes from them what it takes at the window's
/// end.
struct Stream final : Tap {
  const ModelConfig& config;
  std::shared_ptr<const AttentionRule> rule;
  Index sinks, window;                           // 0 sinks: nothing walks
  Index now = 0;                                 // the token that is read
  std::map<int, std::vector<Tensor>> sink_keys;  // by layer, before rotation: (1, kv_head, d_head) each
  Tensor query;                                  // turned

  Stream(const ModelConfig& c, Index n_sinks, Index recent)
      : config(c), rule(std::make_shared<Evicting>(n_sinks, recent)), sinks(n_sinks), window(n_sinks + recent) {}
  HeadRule head_rule(HeadId, HeadRule usual) const override {
    usual.rule = rule;
    return usual;
  }
  bool wants(Site site) const override {
    return (config.position == PositionKind::rotary || config.position == PositionKind::alibi) && sinks > 0 &&
           (site.kind == SiteKind::k || site.kind == SiteKind::rot_q || site.kind == SiteKind::attn_scores);
  }
  Tensor at(Site site, const Tensor& value) override {
    if (site.kind == SiteKind::k && now < sinks) sink_keys[site.layer].push_back(value.copy());
    if (site.kind == SiteKind::rot_q) query = value;
    if (site.kind != SiteKind::attn_scores || now < window) return value;
    Tensor scores = value.copy();
    if (config.position == PositionKind::alibi) {
      for (Index head = 0; head < scores.dim(0); ++head)
        for (Index j = 0; j < sinks; ++j)
          scores.ref(head, 0, j) += static_cast<float>(alibi(head, j, now) - alibi(head, j, window - 1));
      return scores;
    }
    const auto theta = rotary_frequencies(config.rotary, config.dims.d_head);
    for (Index head = 0; head < scores.dim(0); ++head)
      for (Index j = 0; j < sinks; ++j) {
        const Tensor key = sink_keys[site.layer][static_cast<std::size_t>(j)]
                               .select(1, head / (config.dims.heads / config.dims.kv_heads))
                               .select(0, 0)
                               .packed();
        std::vector<double> plain(key.values().begin(), key.values().end());
        const auto turned = rotated(plain, static_cast<double>(j + now - (window - 1)), theta);
        double dot = 0;
        for (std::size_t c = 0; c < turned.size(); ++c)
          dot += static_cast<double>(query.at(0, head, static_cast<Index>(c))) * turned[c];
        scores.ref(head, 0, j) = static_cast<float>(dot / std::sqrt(config.dims.d_head));
      }
    return scores;
  }
  /// What a key's score loses as seen from a query. Falcon rounds slope ÷ unit, the key's position and their product to
  /// bfloat16; in a row only differences count, here from what the query's own position gives.
  double alibi(Index head, Index key, Index query) const {
    const double slope = config.alibi_slopes[static_cast<std::size_t>(head)], unit = config.alibi_unit;
    const auto of = [&](Index position) {
      const auto rounded = [](double x) { return static_cast<double>(rounded_to_bfloat(static_cast<float>(x))); };
      return unit > 0 ? unit * rounded(rounded(slope / unit) * rounded(static_cast<double>(position)))
                      : slope * static_cast<double>(position);
    };
    return of(query) - of(key);
  }
};

std::vector<double> streamed(const LoadedModel& model, Backend& backend, Index sinks, Index recent,
                             const std::vector<std::int32_t>& text = headscope::streaming_test::text) {
  Stream tap(model.model->config(), sinks, recent);
  Ctx ctx{backend, &tap};
  if (static_cast<int>(text.size()) > model.model->config().context) ctx.context = static_cast<int>(text.size());
  KvCache cache(model.model->config().dims, static_cast<int>(text.size()));
  std::vector<double> losses;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    tap.now = static_cast<Index>(i);
    const auto logits = model.model->forward(ctx, std::span(text).subspan(i, 1), &cache).logits;
    losses.push_back(next_token_loss(logits.select(0, 0), text[i + 1]));
  }
  return losses;
}

void check_equal(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("losses of a stream are those of a cache that evicts") {
  for (const char* name : {"gpt2-random", "llama-gqa", "llama-rope3", "families/mpt", "families/falcon-alibi"}) {
    CAPTURE(name);
    Backend backend(1);
    const LoadedModel model = load_model(reference(name), backend);
    const Ctx ctx{backend};
    const StreamingSettings settings{6, 2};
    const auto losses = [&](CachePolicy policy) { return streaming_losses(model, text, policy, settings, ctx); };
    check_equal(losses(CachePolicy::whole), streamed(model, backend, 0, 1000));
    check_equal(losses(CachePolicy::window), streamed(model, backend, 0, 6));
    check_equal(losses(CachePolicy::sinks), streamed(model, backend, 2, 4));
    // Nothing is evicted before the window is full: tokens 0 … 5 are read alike.
    for (std::size_t i = 0; i < 6; ++i)
      for (const CachePolicy policy : {CachePolicy::window, CachePolicy::sinks, CachePolicy::recompute})
        CHECK(losses(policy)[i] == doctest::Approx(losses(CachePolicy::whole)[i]).epsilon(1e-5));
    CHECK(std::abs(losses(CachePolicy::window)[12] - losses(CachePolicy::whole)[12]) > 1e-6);
    // Positions are counted in the cache where a model tells them as queries meet keys; else they are the text's.
    RunRequest masked;
    masked.ids = text;
    masked.add_bos = false;
    masked.edits = {parse_intervention("*: mask sink 2 window 4", "test")};
    const auto of_text = token_losses(*run(model, masked, ctx)), of_cache = losses(CachePolicy::sinks);
    const bool counted = model.model->config().position != PositionKind::learned;
    double moved = 0;
    for (std::size_t i = 0; i < of_text.size(); ++i) {
      if (i < 6 || !counted) CHECK(of_cache[i] == doctest::Approx(of_text[i]).epsilon(1e-9));
      moved = std::max(moved, std::abs(of_cache[i] - of_text[i]));
    }
    CHECK((moved > 1e-4) == counted);

    // Recomputed: the prediction of token 13 comes from tokens 7 … 12 alone.
    const auto recomputed = losses(CachePolicy::recompute);
    REQUIRE(recomputed.size() == text.size() - 1);
    RunRequest slice;
    slice.ids = {3, 5, 8, 9, 7, 9};
    slice.add_bos = false;
    const auto trace = run(model, slice, ctx);
    CHECK(recomputed[12] == doctest::Approx(next_token_loss(trace->logits.select(0, 5), 3)).epsilon(1e-5));
  }
}

TEST_CASE("a model whose positions know no last one reads on past its context, with rotations and with ALiBi") {
  for (const char* name : {"llama-gqa", "families/mpt", "families/falcon-alibi"}) {
    CAPTURE(name);
    Backend backend(1);
    const LoadedModel model = load_model(reference(name), backend);
    REQUIRE_FALSE(model.model->config().ends_at_context());
    std::vector<std::int32_t> longer;
    while (static_cast<int>(longer.size()) < model.model->config().context + 7)
      longer.push_back(text[longer.size() * 5 % 13] + static_cast<std::int32_t>(longer.size() % 3));
    const auto losses = [&](CachePolicy policy) {
      return streaming_losses(model, longer, policy, {6, 2}, Ctx{backend});
    };
    check_equal(losses(CachePolicy::whole), streamed(model, backend, 0, 1000, longer));
    check_equal(losses(CachePolicy::window), streamed(model, backend, 0, 6, longer));
    check_equal(losses(CachePolicy::sinks), streamed(model, backend, 2, 4, longer));
  }
}

TEST_CASE("a window without room for the sinks, or a text too short or too long, is refused") {
  Backend backend(1);
  const LoadedModel model = load_model(reference("gpt2-random"), backend);
  const Ctx ctx{backend};
  CHECK_THROWS_AS(streaming_losses(model, text, CachePolicy::sinks, {4, 4}, ctx), Error);
  CHECK_THROWS_AS(streaming_losses(model, text, CachePolicy::sinks, {4, 0}, ctx), Error);
  CHECK_THROWS_AS(streaming_losses(model, std::span(text).first(1), CachePolicy::whole, {}, ctx), Error);
  const std::vector<std::int32_t> many(static_cast<std::size_t>(model.model->config().context) + 1, 1);
  CHECK_THROWS_AS(streaming_losses(model, many, CachePolicy::whole, {}, ctx), Error);
  // Scores that depend on where query and key stand, not on their distance alone.
  for (const char* folder : {"families/hunyuan_v1_dense", "families/ministral3"}) {
    const LoadedModel other = load_model(reference(folder), backend);
    CHECK_THROWS_WITH_AS(streaming_losses(other, text, CachePolicy::sinks, {4, 1}, ctx),
                         doctest::Contains("whose rotation tells distances"), Error);
  }
  // Families whose layers lend keys have layers with a window, which are refused.
  for (const char* folder : {"families/gemma4", "families/gemma4_text", "families/gemma4_unified_text"}) {
    const LoadedModel other = load_model(reference(folder), backend);
    CHECK_THROWS_WITH_AS(streaming_losses(other, text, CachePolicy::sinks, {4, 1}, ctx),
                         doctest::Contains("whose layers see the whole text"), Error);
  }
}

}  // namespace headscope::streaming_test
