// Every place where a tap can listen: it fires, with the shape that the table promises, and what a tap puts there is
// used.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/model.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::sites_test {

using testing::largest_difference;

namespace {

const std::vector<std::int32_t> tokens{5, 17, 3, 17, 5, 40, 8};

/// "(query, head, d_head)" → extents for this model and text.
Shape shape_of(std::string_view text, const ModelDims& d, Index n) {
  const std::map<std::string, Index> extents{{"query", n},
                                             {"key", n},
                                             {"head", d.heads},
                                             {"kv_head", d.kv_heads},
                                             {"d_head", d.d_head},
                                             {"d_model", d.d_model},
                                             {"d_mlp", d.d_mlp},
                                             {"vocab", d.vocab},
                                             {"expert", d.experts},
                                             {"d_value", d.value_width()},
                                             {"q_latent", d.q_latent},
                                             {"kv_latent", d.kv_latent},
                                             {"d_inner", d.d_inner},
                                             {"d_layer", d.d_layer},
                                             {"lane", d.lanes},
                                             {"group", d.state_groups},
                                             {"d_state", d.d_state}};
  std::vector<Index> found;
  std::string word;
  for (const char c : text) {
    if (c == '_' || (c >= 'a' && c <= 'z')) {
      word += c;
    } else if (!word.empty()) {
      REQUIRE_MESSAGE(extents.contains(word), "unknown extent ", word);
      found.push_back(extents.at(word));
      word.clear();
    }
  }
  return Shape(std::span<const Index>(found));
}

/// Looks at every site, but at what single heads add in one layer alone, or in none.
class HeadsOf final : public Tap {
 public:
  explicit HeadsOf(int layer) : layer_(layer) {}
  bool wants(Site site) const override { return site.kind != SiteKind::result || site.layer == layer_; }
  Tensor at(Site, const Tensor& value) override { return value; }

 private:
  int layer_;
};

/// Counts what fires, and changes the value at one site: scaled and shifted, so that no norm can undo it.
class Probe final : public Tap {
 public:
  explicit Probe(std::optional<Site> edit = {}) : edit_(edit) {}
  bool wants(Site) const override { return true; }
  Tensor at(Site site, const Tensor& value) override {
    ++fired[site];
    shapes[site] = value.shape();
    if (site != edit_) return value;
    Tensor other = value.copy();
    Index i = 0;
    for (float& v : other.mutable_values())
      if (std::isfinite(v)) v = v * 0.5f + 0.01f * static_cast<float>(++i % 7);
    return other;
  }
  std::map<Site, int> fired;
  std::map<Site, Shape> shapes;

 private:
  std::optional<Site> edit_;
};

}  // namespace

TEST_CASE(
    "every declared site of every family fires once per layer with its shape, and an edit there changes the logits") {
  std::vector<std::string> folders{"gpt2-random", "gpt2-untied-erf", "llama-gqa", "llama-rope3"};
  for (const auto& entry : std::filesystem::directory_iterator(testing::reference("families")))
    folders.push_back("families/" + entry.path().filename().string());
  for (const std::string& folder : folders) {
    CAPTURE(folder);
    Backend backend(2);
    const auto model = Model::load(testing::reference(folder), backend);
    const ModelDims& d = model->config().dims;
    const Tensor plain = model->forward({backend}, tokens).logits;

    // Who looks changes nothing. `result` adds the heads of a layer up one by one: the same sum in another order, which
    // six layers together may carry farther than the bound.
    for (int layer = -1; layer < d.layers; ++layer) {
      HeadsOf heads(layer);
      const Tensor watched = model->forward({backend, &heads}, tokens).logits;
      CHECK(largest_difference(plain, watched) < (layer < 0 ? 1e-30 : 1e-5));
    }
    Probe probe;
    model->forward({backend, &probe}, tokens);

    std::size_t declared = 0;
    for (const SiteKind kind : model->sites()) {
      for (int layer = info(kind).per_layer ? 0 : -1; layer < (info(kind).per_layer ? d.layers : 0); ++layer) {
        const Site site{kind, layer};
        CAPTURE(name(site));
        if (!model->fires(site)) continue;  // of layers of which some have experts, attend, or have no MLP
        ++declared;
        CHECK(probe.fired[site] == 1);
        ModelDims there =
            layer < 0
                ? d
                : d.of_layer(layer);  // embeddings, and what the unembedding reads, have a width of their own in a few
        if (of_embeddings(kind)) there.d_model = model->config().sum_width();
        if (kind == SiteKind::final_normalized) there.d_model = there.out_width();
        CHECK(probe.shapes[site].str() == shape_of(info(kind).shape, there, static_cast<Index>(tokens.size())).str());
        Probe edit(site);
        CHECK(largest_difference(plain, model->forward({backend, &edit}, tokens).logits) > 1e-4);
      }
    }
    CHECK(probe.fired.size() == declared);
  }
}

TEST_CASE("keys that layers lend: what an edit leaves at the lender is what the others find, theirs stays their own") {
  /// Shifts one site, and keeps all keys and values.
  struct Shift final : Tap {
    Site site;
    std::map<Site, Tensor> seen;
    explicit Shift(Site at) : site(at) {}
    bool wants(Site) const override { return true; }
    Tensor at(Site where, const Tensor& value) override {
      Tensor out = value;
      if (where == site) {
        out = value.copy();
        for (float& v : out.mutable_values()) v += 0.5f;
      }
      return seen[where] = out;
    }
  };
  Backend backend(1);
  const auto model = Model::load(testing::reference("families/gemma4_text"), backend);
  const ModelConfig& c = model->config();
  REQUIRE(c.kv_layers == std::vector<int>{0, 1, 2, 1, 1, 2});
  const auto same = [](const Tensor& a, const Tensor& b) { return largest_difference(a, b) == 0; };
  for (const SiteKind kind : {SiteKind::k, SiteKind::k_normed, SiteKind::rot_k, SiteKind::v_unnormed, SiteKind::v}) {
    CAPTURE(name(Site{kind, 1}));
    Shift none({SiteKind::k, 99}), lender({kind, 1}), reader({kind, 3});
    for (Shift* each : {&none, &lender, &reader}) model->forward({backend, each}, tokens);
    const SiteKind met = kind == SiteKind::v || kind == SiteKind::v_unnormed ? SiteKind::v : SiteKind::rot_k;
    CHECK(!same(lender.seen.at({met, 1}), none.seen.at({met, 1})));
    for (const int layer : {3, 4}) CHECK(same(lender.seen.at({met, layer}), lender.seen.at({met, 1})));
    CHECK(same(reader.seen.at({met, 1}), none.seen.at({met, 1})));
    CHECK(!same(reader.seen.at({met, 3}), none.seen.at({met, 3})));
    CHECK(same(reader.seen.at({met, 4}), none.seen.at({met, 1})));
  }
  // What an edit of a reader leaves is normalised and turned as the lender's is.
  Shift reader({SiteKind::k, 3}), lender({SiteKind::k, 1});
  for (Shift* each : {&reader, &lender}) model->forward({backend, each}, tokens);
  CHECK(largest_difference(reader.seen.at({SiteKind::rot_k, 3}), lender.seen.at({SiteKind::rot_k, 1})) < 1e-5);
}

TEST_CASE("a pass that is looked at everywhere gives the bits of one that nobody looks at") {
  struct Style final : Tap {
    // The sum of what each head adds is another sum than the product of all.
    bool wants(Site site) const override { return site.kind != SiteKind::result; }
    Tensor at(Site, const Tensor& value) override { return value; }
  } style;
  const auto same = [](const Tensor& a, const Tensor& b) { return std::ranges::equal(a.values(), b.values()); };
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Backend backend(2);
    const auto model = Model::load(testing::reference(name), backend);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < std::min(model->config().context, 40); ++i) ids.push_back(i * 5 % 17);
    REQUIRE(ids.size() >= 16);
    const MapRequest maps{MapStorage::dense, nullptr, nullptr};
    const ForwardResult alone = model->forward({backend}, ids, nullptr, maps),
                        seen = model->forward({backend, &style}, ids, nullptr, maps);
    CHECK(same(alone.logits, seen.logits));
    REQUIRE(alone.maps.size() == seen.maps.size());
    for (std::size_t i = 0; i < alone.maps.size(); ++i)
      for (Index q = 0; q < static_cast<Index>(ids.size()); ++q)
        for (Index k = 0; k <= q; ++k) REQUIRE(alone.maps[i].weight(q, k) == seen.maps[i].weight(q, k));
  }
}

TEST_CASE("a cached pass gives the logits and the maps of a whole one") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    Backend backend(2);
    const auto model = Model::load(testing::reference(folder), backend);
    const TokenLinks links = TokenLinks::of(tokens);
    const ForwardResult whole = model->forward({backend}, tokens, nullptr, {MapStorage::dense, &links, nullptr});
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      KvCache cache(model->config().dims, 16);
      const std::span<const std::int32_t> all(tokens);
      model->forward({backend}, all.first(3), &cache);
      CHECK(cache.length() == 3);
      const ForwardResult rest = model->forward({backend}, all.subspan(3), &cache, {storage, &links, nullptr});
      CHECK(cache.length() == 7);
      CHECK(largest_difference(whole.logits.slice(0, 3, 7), rest.logits) < 1e-5);
      for (std::size_t m = 0; m < whole.maps.size(); ++m)
        for (Index i = 0; i < 4; ++i)
          for (Index j = 0; j < 7; ++j)
            CHECK(std::abs(whole.maps[m].weight(i + 3, j) - rest.maps[m].weight(i, j)) < 1e-6);

      // Going back and on with other tokens must not change what the first maps say.
      const float before = rest.maps[0].weight(3, 5);
      cache.truncate(3);
      const std::vector<std::int32_t> other{9, 9, 9, 9};
      model->forward({backend}, other, &cache);
      CHECK(rest.maps[0].weight(3, 5) == before);
    }
  }
}

TEST_CASE("the last logits alone equal the last of all, and only chosen layers give maps") {
  Backend backend(1);
  const auto model = Model::load(testing::reference("llama-gqa"), backend);
  const std::set<int> layers{1};
  const ForwardResult all = model->forward({backend}, tokens);
  const ForwardResult last = model->forward({backend}, tokens, nullptr, {MapStorage::dense, nullptr, &layers}, false);
  REQUIRE(last.logits.shape() == Shape{1, all.logits.dim(1)});
  CHECK(largest_difference(all.logits.slice(0, 6, 7), last.logits) < 1e-6);
  REQUIRE(last.maps.size() == static_cast<std::size_t>(model->config().dims.heads));
  CHECK(last.maps[0].layer() == 1);
}

TEST_CASE("what a pass cannot run is refused with the numbers") {
  Backend backend(1);
  const auto model = Model::load(testing::reference("gpt2-random"), backend);
  const int context = model->config().context, vocab = model->config().dims.vocab;
  CHECK_THROWS_AS(model->forward({backend}, std::vector<std::int32_t>{}), Error);
  CHECK_THROWS_WITH_AS(model->forward({backend}, std::vector<std::int32_t>{1, vocab}),
                       doctest::Contains((std::to_string(vocab) + " at position 1").c_str()), Error);
  CHECK_THROWS_AS(model->forward({backend}, std::vector<std::int32_t>{1, -1}), Error);
  CHECK_THROWS_WITH_AS(model->forward({backend}, std::vector<std::int32_t>(static_cast<std::size_t>(context + 2), 1)),
                       doctest::Contains("2 too many"), Error);
  struct Blow final : Tap {
    int layer = 1;
    mutable std::vector<int> attended;
    bool wants(Site site) const override { return site == Site{SiteKind::mlp_out, layer}; }
    HeadRule head_rule(HeadId id, HeadRule usual) const override {
      attended.push_back(id.layer);
      return usual;
    }
    Tensor at(Site, const Tensor& value) override {
      Tensor other = value.copy();
      other.ref(2, 3) = std::nanf("");
      return other;
    }
  } blow;
  CHECK_THROWS_WITH_AS(
      model->forward({backend, &blow}, tokens),
      doctest::Contains("blocks.1.hook_resid_post: expected finite numbers, found nan at position 2, dimension 3"),
      Error);
  // Found before the next layer looks at it, also where that layer is not run.
  std::vector<std::int32_t> longer;  // whose rows are done together
  for (int i = 0; i < 24; ++i) longer.push_back(i % 7);
  blow.layer = 0;
  blow.attended.clear();
  const auto first = doctest::Contains("blocks.0.hook_resid_post: expected finite numbers, found nan at position 2");
  CHECK_THROWS_WITH_AS(model->forward({backend, &blow}, longer), first, Error);
  CHECK(std::ranges::count(blow.attended, 0) > 0);
  CHECK(std::ranges::count(blow.attended, 1) == 0);
  CHECK_THROWS_WITH_AS(model->forward({backend, &blow}, longer, nullptr, {}, true, {0, {}, 1}), first, Error);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(model->forward({backend, nullptr, stop.get_token()}, tokens), Cancelled);
}

}  // namespace headscope::sites_test
