// Every family against `transformers` in float64: tests/reference/families, made by make_families.py, and by
// make_transformer_lens.py in NumPy. Tiny models with unusual settings; each has a switch that others do not.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/io/safetensors.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/parameter_parts.h"
#include "core/train/gradients.h"
#include "tests/model/parity.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::families_test {

using namespace testing;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(reference("families"))) all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

struct Case {
  fs::path folder;
  Subject subject;
  SafetensorsFile expected;
  std::vector<std::int32_t> ids;
  explicit Case(const fs::path& at)
      : folder(at),
        subject(at),
        expected(SafetensorsFile::open(at / "expected.safetensors")),
        ids(expected.entry("tokens").items<std::int32_t>()) {}
  const Model& model() const { return *subject.loaded.model; }
  const ModelConfig& config() const { return model().config(); }
};

/// Runs `check` for every folder, or for those whose name the variable HEADSCOPE_FAMILY holds.
template <class Check>
void for_each_family(Check&& check) {
  const char* const only = std::getenv("HEADSCOPE_FAMILY");
  for (const fs::path& folder : folders()) {
    const std::string family = folder.filename().string();
    if (only && family != only) continue;
    CAPTURE(family);
    check(Case(folder));
  }
}

}  // namespace

TEST_CASE("every pattern, stream and logit of every family is what transformers says in float64") {
  for_each_family([](const Case& c) {
    double pattern = 0, logits = 0;
    for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
      const auto trace = c.subject.trace(c.ids, storage, storage == MapStorage::dense);
      for (const auto& [label, entry] : c.expected.tensors()) {
        const std::optional<Site> site = parse_site(label);
        if (!site || site->kind == SiteKind::logits) continue;
        CAPTURE(label);
        const Tensor truth = c.expected.tensor(label);
        if (site->kind == SiteKind::pattern) {
          for (int head = 0; head < trace->model.dims.heads_of(site->layer); ++head) {
            const double gap = absolute(trace->map({site->layer, head}).to_dense(), truth.select(0, head));
            CHECK(gap < map_tolerance);
            pattern = std::max(pattern, gap);
          }
        } else if (storage == MapStorage::dense) {
          CHECK(relative(trace->sites.at(*site), truth) < 1e-5);
        }
      }
      const double gap = absolute(trace->logits, c.expected.tensor("logits"));
      CHECK(gap < 1e-4);
      logits = std::max(logits, gap);
    }
    MESSAGE(c.folder.filename().string(), ": pattern ", pattern, ", logits ", logits);
  });
}

TEST_CASE("the greedy continuation of every family through the cache is that of transformers without one") {
  for_each_family([](const Case& c) {
    if (!c.config().causal) return;
    const auto expected = c.expected.entry("greedy").items<std::int32_t>();
    CHECK(c.subject.greedy(c.ids, static_cast<int>(expected.size())) == expected);
  });
}

TEST_CASE("a text in two passes, and two texts in one, give the logits of one pass in every family") {
  for_each_family([](const Case& c) {
    const Ctx ctx{*c.subject.backend};
    const Tensor truth = c.expected.tensor("logits");
    const std::span<const std::int32_t> all(c.ids);
    const auto n = static_cast<Index>(c.ids.size()), cut = Index{7};
    KvCache cache(c.config().dims, static_cast<int>(n));
    if (c.config().causal) {
      const Tensor first = c.model().forward(ctx, all.first(7), &cache).logits;
      const Tensor rest = c.model().forward(ctx, all.subspan(7), &cache).logits;
      CHECK(absolute(first, truth.slice(0, 0, cut)) < 1e-4);
      CHECK(absolute(rest, truth.slice(0, cut, n)) < 1e-4);
    } else {
      CHECK_THROWS_WITH_AS(c.model().forward(ctx, all.first(7), &cache), doctest::Contains("sees the later ones"),
                           Error);
    }
    std::vector<std::int32_t> two(c.ids.begin(), c.ids.begin() + 7);
    two.insert(two.end(), c.ids.begin(), c.ids.end());
    const std::vector<Index> lengths{cut, n};
    const Tensor batched = c.model().forward(ctx, two, nullptr, {}, true, {}, lengths).logits;
    const Tensor alone = c.config().causal ? truth.slice(0, 0, cut) : c.model().forward(ctx, all.first(7)).logits;
    CHECK(absolute(batched.slice(0, 0, cut), alone) < 1e-4);
    CHECK(absolute(batched.slice(0, cut, cut + n), truth) < 1e-4);
  });
}

TEST_CASE("every family's parameters add up from its configuration alone, which is written as it is read") {
  for_each_family([](const Case& c) {
    CHECK(parameter_parts(c.config()).total() == c.model().info().parameters);
    const std::string written = write_config(c.config());
    const ConfigReader json = ConfigReader::parse(written, "written");
    const ModelConfig again = family(c.config().family, "written").read_config(json);
    CHECK(write_config([&] {
            ModelConfig named = again;
            named.family = c.config().family;
            return named;
          }()) == written);
    const ModelConfig& own = c.config();
    CHECK(again.windows == own.windows);
    CHECK(again.layer_rotary == own.layer_rotary);
    CHECK(again.rotary == own.rotary);
    CHECK(again.layer_turns == own.layer_turns);
    CHECK(again.alibi_slopes == own.alibi_slopes);
    CHECK(again.dims.kv_heads == own.dims.kv_heads);
    CHECK(again.dims.d_head == own.dims.d_head);
    CHECK(again.dims.d_mlp == own.dims.d_mlp);
    CHECK(again.dims.widths == own.dims.widths);
    CHECK(again.dims.d_layer == own.dims.d_layer);
    CHECK(again.dims.d_out == own.dims.d_out);
    CHECK(again.dims.mixers == own.dims.mixers);
    CHECK(again.dims.bare == own.dims.bare);
    CHECK(again.dims.convolves_first == own.dims.convolves_first);
    REQUIRE(again.convolution.has_value() == own.convolution.has_value());
    if (own.convolution) {
      CHECK(again.convolution->tokens == own.convolution->tokens);
      CHECK(again.convolution->groups == own.convolution->groups);
      CHECK(again.convolution->activation == own.convolution->activation);
    }
    CHECK(again.sink_layers == own.sink_layers);
    CHECK(again.value_scale == own.value_scale);
    CHECK(again.multipliers == own.multipliers);
    CHECK(again.attention_stream == own.attention_stream);
    CHECK(again.state_stream == own.state_stream);
    CHECK(again.mlp_stream == own.mlp_stream);
    CHECK(again.dims.paired == own.dims.paired);
    CHECK(again.dims.state_heads == own.dims.state_heads);
    CHECK(again.experts.capacity == own.experts.capacity);
    CHECK(again.layer_vocab == own.layer_vocab);
    CHECK(again.kv_layers == own.kv_layers);
    CHECK(again.values_are_keys == own.values_are_keys);
    CHECK(again.value_norm == own.value_norm);
    CHECK(again.dims.stream_scales == own.dims.stream_scales);
    CHECK(again.chunks == own.chunks);
    CHECK(again.unturned_growth == own.unturned_growth);
    CHECK(again.unturned_floor == own.unturned_floor);
    CHECK(again.qk_norm_turned == own.qk_norm_turned);
    CHECK(again.qk_norm_weights == own.qk_norm_weights);
    CHECK(again.experts.beside == own.experts.beside);
    CHECK(again.dims.value_width() == own.dims.value_width());
    CHECK(again.dims.kv_latent == own.dims.kv_latent);
    CHECK(again.dims.q_latent == own.dims.q_latent);
    CHECK(again.dims.parallel == own.dims.parallel);
    CHECK(again.shared_norm == own.shared_norm);
    CHECK(again.qk_norm == own.qk_norm);
    CHECK(again.score_scale.value_or(0) == doctest::Approx(own.score_scale.value_or(0)));
    CHECK(again.score_cap == own.score_cap);
    CHECK(again.logit_cap == own.logit_cap);
    CHECK(again.logit_scale == doctest::Approx(own.logit_scale));
    CHECK(again.clip_qkv == own.clip_qkv);
    CHECK(again.tied_embeddings == own.tied_embeddings);
    CHECK(again.bias.q == own.bias.q);
    CHECK(again.bias.k == own.bias.k);
    CHECK(again.bias.up == own.bias.up);
    CHECK(again.norm == own.norm);
    CHECK(again.norm_weights == own.norm_weights);
    CHECK(again.mlp_norm == own.mlp_norm);
    CHECK(again.mlp_norm_kind == own.mlp_norm_kind);
    CHECK(again.z_norm == own.z_norm);
    CHECK(again.final_rms == own.final_rms);
    CHECK(again.activation == own.activation);
    CHECK(again.learned_sinks == own.learned_sinks);
    CHECK(again.gate_limit == own.gate_limit);
    CHECK(again.gate_alpha == own.gate_alpha);
    CHECK(again.experts.count == own.experts.count);
    CHECK(again.experts.per_token == own.experts.per_token);
    CHECK(again.experts.width == own.experts.width);
    CHECK(again.experts.layers == own.experts.layers);
    CHECK(again.experts.score == own.experts.score);
    CHECK(again.experts.correction == own.experts.correction);
    CHECK(again.dims.normed_behind == own.dims.normed_behind);
    CHECK(again.dims.d_inner == own.dims.d_inner);
    CHECK(again.position == own.position);
    REQUIRE(again.state_space.has_value() == own.state_space.has_value());
    if (own.state_space) {
      CHECK(again.state_space->most_rate == own.state_space->most_rate);
      CHECK(again.state_space->norm_before_gate == own.state_space->norm_before_gate);
      CHECK(again.state_space->gated_norm == own.state_space->gated_norm);
      CHECK(again.state_space->steady == own.state_space->steady);
      CHECK(again.state_space->select_epsilon == own.state_space->select_epsilon);
    }
    CHECK(again.experts.renormalized == own.experts.renormalized);
    CHECK(again.experts.scale == own.experts.scale);
    CHECK(again.experts.groups == own.experts.groups);
    CHECK(again.experts.groups_kept == own.experts.groups_kept);
    CHECK(again.experts.shared_width == own.experts.shared_width);
    CHECK(again.experts.shared_gate == own.experts.shared_gate);
    CHECK(again.experts.score == own.experts.score);
    CHECK(again.text_family == own.text_family);
    CHECK(again.dims.experts == own.dims.experts);
    CHECK(again.causal == own.causal);
    CHECK(again.norm_place == own.norm_place);
    CHECK(again.position_offset == own.position_offset);
    CHECK(again.context == own.context);
    CHECK(again.segments == own.segments);
    CHECK(again.embedding_width == own.embedding_width);
    CHECK(again.narrow_sum() == own.narrow_sum());
    CHECK(again.layer_groups == own.layer_groups);
    CHECK(again.tasks == own.tasks);
    CHECK(again.has_buckets() == own.has_buckets());
    CHECK(again.first_norm == own.first_norm);
    CHECK(again.head_layer == own.head_layer);
    CHECK(again.head_activation == own.head_activation);
    CHECK(again.bias.head == own.bias.head);
    CHECK(again.bias.unembedding == own.bias.unembedding);
    CHECK(again.norm_epsilon == doctest::Approx(own.norm_epsilon));
  });
}

TEST_CASE("the gradient of a logit of every family with respect to embeddings and patterns, by moving them") {
  /// Adds to one element of one site.
  struct Nudge final : Tap {
    Site site;
    Index element;
    float by;
    Nudge(Site at, Index which, float much) : site(at), element(which), by(much) {}
    bool wants(Site other) const override { return other == site; }
    Tensor at(Site, const Tensor& value) override {
      Tensor changed = value.copy();
      changed.mutable_data()[element] += by;
      return changed;
    }
  };
  for_each_family([](const Case& c) {
    const GradientOf of{.kind = GradientOf::Kind::logit, .token = 7};
    const std::span<const std::int32_t> ids = std::span(c.ids).first(7);
    const auto n = static_cast<Index>(ids.size());
    const InputGradients g = input_gradients(c.model(), Ctx{.backend = *c.subject.backend}, ids, of);
    const bool bent = c.config().clip_qkv > 0 || c.config().activation == Activation::relu ||
                      c.config().activation == Activation::xielu ||  // which jumps by ε at 0
                      c.config().experts.anywhere() || c.config().gate_limit > 0;
    int asked = 0, kinks = 0;
    const auto slope = [&](Site site, Index element) {
      const auto moved = [&](float by) {
        Nudge nudge(site, element, by);
        return input_gradients(c.model(), Ctx{.backend = *c.subject.backend, .tap = &nudge}, ids, of).value;
      };
      // Central differences of two steps, without the error of the third order.
      const double near = (moved(4e-3f) - moved(-4e-3f)) / 8e-3, far = (moved(8e-3f) - moved(-8e-3f)) / 16e-3;
      ++asked;
      // Where a value is cut off, a ReLU turns, or a token goes to another expert between the steps, there is no slope
      // to compare with.
      const double here = bent ? moved(0) : 0, up = (moved(4e-3f) - here) / 4e-3, down = (here - moved(-4e-3f)) / 4e-3;
      if (bent && (std::abs(near - far) > 0.02 || std::abs(up - down) > 0.1)) {
        ++kinks;
        return std::numeric_limits<double>::quiet_NaN();
      }
      return (4 * near - far) / 3;
    };
    double largest = 0;
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < g.embedding.dim(1); j += 5) {
        const double expected = slope({SiteKind::embed}, i * g.embedding.dim(1) + j);
        if (std::isnan(expected)) continue;
        largest = std::max(largest, std::abs(expected));
        CHECK(g.embedding.at(i, j) == doctest::Approx(expected).epsilon(0.02).scale(0.5));
      }
    CHECK(largest > 0.01);
    for (int layer = 0; layer < c.config().dims.layers; ++layer)
      for (Index head = 0; head < c.config().dims.heads_of(layer); ++head) {
        const double expected = slope({SiteKind::pattern, layer}, (head * n + n - 1) * n + n - 2);
        if (std::isnan(expected)) continue;
        CHECK(g.patterns[static_cast<std::size_t>(layer)].at(head, n - 1, n - 2) ==
              doctest::Approx(expected).epsilon(0.02).scale(0.5));
      }
    CHECK(4 * kinks < asked);
  });
}

}  // namespace headscope::families_test
