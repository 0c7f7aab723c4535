// The forward pass against real trained models and float64 results that others computed. Skipped, visibly, where the
// reference set does not stand beside the project.

#include <doctest/doctest.h>

#include <string>

#include "core/base/error.h"
#include "core/io/npz.h"
#include "core/metrics/metric.h"
#include "core/metrics/next_token.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"
#include "tests/support/worst.h"

namespace headscope::parity_shared_test {

using namespace testing;

namespace {

namespace fs = std::filesystem;

std::vector<std::int32_t> ids_of(const NpzFile& capture, const std::string& name) {
  const std::vector<std::int64_t> wide = capture.integers(name);
  return {wide.begin(), wide.end()};
}

/// Our metric beside the captures' name for it.
constexpr std::pair<const char*, const char*> metric_names[] = {
    {"entropy", "entropy"},
    {"sink", "sink"},
    {"previous_token", "prev_token"},
    {"self_attention", "self_attn"},
    {"mean_distance", "mean_distance"},
    {"duplicate_token", "duplicate_token"},
    {"prefix_matching", "prefix_matching"},
};

void check_maps(const Trace& trace, const NpzFile& capture) {
  Worst worst;
  if (capture.contains("attn")) {
    const Tensor truth = capture.tensor("attn");
    for (int layer = 0; layer < trace.model.dims.layers; ++layer) {
      for (int head = 0; head < trace.model.dims.heads; ++head) {
        worst.add(absolute(trace.map({layer, head}).to_dense(), truth.select(0, layer).select(0, head)));
      }
    }
  } else {
    const Tensor truth = capture.tensor("attn_sel");
    const std::vector<std::int64_t> which = capture.integers("attn_sel_heads");
    for (Index i = 0; i < truth.dim(0); ++i) {
      const auto at = static_cast<std::size_t>(2 * i);
      const AttentionMap& map = trace.map({static_cast<int>(which[at]), static_cast<int>(which[at + 1])});
      worst.add(absolute(map.to_dense(), truth.select(0, i)));
    }
  }
  INFO("largest difference of a weight: " << worst.value());
  CHECK(worst.value() <= map_tolerance);
}

void check_metrics(const Trace& trace, const NpzFile& capture) {
  for (const auto& [ours, theirs] : metric_names) {
    if (!capture.contains(theirs)) continue;
    CAPTURE(ours);
    const Tensor truth = capture.tensor(theirs);
    const std::vector<double> found = evaluate(metric(ours), trace);
    REQUIRE(static_cast<Index>(found.size()) == truth.size());
    for (std::size_t head = 0; head < found.size(); ++head) {
      CAPTURE(head);
      const double expected = static_cast<double>(truth.values()[head]);
      if (std::isnan(expected)) {
        CHECK(std::isnan(found[head]));
        continue;
      }
      // A distance in tokens sums hundreds of weights times hundreds of tokens: relative, the rest absolute.
      CHECK(std::abs(found[head] - expected) <= map_tolerance * std::max(1.0, std::abs(expected)));
    }
  }
}

void check_residuals(const Trace& trace, const NpzFile& capture) {
  const Tensor truth = capture.tensor("resid");
  std::vector<std::int64_t> rows;
  if (capture.contains("resid_pos")) {
    rows = capture.integers("resid_pos");
  } else {
    for (Index row = 0; row < truth.dim(1); ++row) rows.push_back(row);
  }
  for (Index depth = 0; depth < truth.dim(0); ++depth) {
    const Site site =
        depth == 0 ? Site{SiteKind::resid_pre, 0} : Site{SiteKind::resid_post, static_cast<int>(depth) - 1};
    const Tensor& found = trace.sites.at(site);
    Worst worst;
    double scale = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (Index column = 0; column < truth.dim(2); ++column) {
        const double expected = static_cast<double>(truth.at(depth, static_cast<Index>(i), column));
        worst.add(std::abs(static_cast<double>(found.at(rows[i], column)) - expected));
        scale = std::max(scale, std::abs(expected));
      }
    }
    CAPTURE(depth);
    CHECK(worst.value() <= 1e-5 * scale);
  }
}

void check_predictions(const Subject& subject, const Trace& trace, const NpzFile& capture,
                       const std::vector<std::int32_t>& ids) {
  const Tensor last = trace.logits.select(0, trace.logits.dim(0) - 1);
  const double off = relative(last, capture.tensor("logits_last"));
  INFO("logits differ by " << off << " of the largest");
  CHECK(off <= relative_tolerance);

  const std::vector<std::int32_t> order = ids_of(capture, "top10_ids");
  const Tensor probabilities = capture.tensor("top10_probs");
  const std::vector<NextToken> top = top_next(trace, static_cast<int>(order.size()));
  REQUIRE(top.size() == order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    CHECK(top[rank].id == order[rank]);
    CHECK(std::abs(top[rank].probability - static_cast<double>(probabilities.at(static_cast<Index>(rank)))) <= 1e-5);
  }
  if (capture.contains("nll")) {
    const Tensor truth = capture.tensor("nll");
    const std::vector<double> losses = token_losses(trace);
    REQUIRE(losses.size() == ids.size() - 1);
    REQUIRE(static_cast<Index>(losses.size()) == truth.size());
    Worst worst;
    if (ids.size() == 1) worst.add(0);  // nothing follows that could be predicted
    for (Index i = 0; i < truth.size(); ++i) {
      const double expected = static_cast<double>(truth.at(i));
      worst.add(std::abs(losses[static_cast<std::size_t>(i)] - expected) / std::max(1.0, expected));
    }
    INFO("losses differ by " << worst.value());
    CHECK(worst.value() <= loss_tolerance);
  }
  if (capture.contains("greedy")) {
    const std::vector<std::int32_t> expected = ids_of(capture, "greedy");
    CHECK(subject.greedy(ids, static_cast<int>(expected.size())) == expected);
  }
}

/// (layer, head, query, d) of the captures against (query, kv_head, d) of the site.
void check_heads(const Trace& trace, SiteKind kind, const Tensor& truth) {
  CAPTURE(info(kind).pattern);
  for (int layer = 0; layer < trace.model.dims.layers; ++layer) {
    const Tensor& found = trace.sites.at({kind, layer});
    const Index group = truth.dim(1) / found.dim(1);
    const Tensor expected = truth.select(0, layer);
    const double scale = largest(expected.packed().values());
    for (Index head = 0; head < truth.dim(1); ++head) {
      CHECK(absolute(found.select(1, head / group), expected.select(0, head)) <= 1e-5 * scale);
    }
  }
}

void check_stages(const Trace& trace, const NpzFile& stages) {
  const bool rotary = trace.sites.count({SiteKind::rot_q, 0}) > 0;
  check_heads(trace, rotary ? SiteKind::rot_q : SiteKind::q, stages.tensor("q"));
  check_heads(trace, rotary ? SiteKind::rot_k : SiteKind::k, stages.tensor("k"));
  check_heads(trace, SiteKind::v, stages.tensor("v"));
  check_heads(trace, SiteKind::z, stages.tensor("z"));
  const std::pair<SiteKind, const char*> whole[] = {{SiteKind::ln1_normalized, "norm1"},
                                                    {SiteKind::attn_out, "attn_out"},
                                                    {SiteKind::mlp_post, "mlp_act"},
                                                    {SiteKind::mlp_out, "mlp_out"}};
  for (const auto& [kind, label] : whole) {
    CAPTURE(label);
    const Tensor truth = stages.tensor(label);
    for (int layer = 0; layer < trace.model.dims.layers; ++layer) {
      CHECK(relative(trace.sites.at({kind, layer}), truth.select(0, layer)) <= 1e-5);
    }
  }
  // Scores are stored unmasked there; ours hold −∞ where a query may not look.
  const Tensor scores = stages.tensor("scores");
  const double scale = largest(scores.values());
  for (int layer = 0; layer < trace.model.dims.layers; ++layer) {
    const Tensor& found = trace.sites.at({SiteKind::attn_scores, layer});
    Worst worst;
    for (Index head = 0; head < found.dim(0); ++head) {
      for (Index query = 0; query < found.dim(1); ++query) {
        for (Index key = 0; key <= query; ++key) {
          const double expected = static_cast<double>(scores.select(0, layer).at(head, query, key));
          worst.add(std::abs(static_cast<double>(found.at(head, query, key)) - expected));
        }
      }
    }
    CHECK(worst.value() <= 1e-5 * scale);
  }
}

void check_model(const fs::path& folder, const fs::path& captures) {
  const Subject subject(folder);
  int texts = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(captures)) {
    const std::string label = file.path().filename().string();
    if (file.path().extension() != ".npz") continue;
    CAPTURE(label);
    const NpzFile capture = NpzFile::open(file.path());
    const std::vector<std::int32_t> ids = ids_of(capture, "ids");
    const auto trace = subject.trace(ids, MapStorage::dense, true);
    ++texts;
    if (label.ends_with(".stages.npz")) {
      check_stages(*trace, capture);
      continue;
    }
    check_maps(*trace, capture);
    check_maps(*subject.trace(ids, MapStorage::factored, false), capture);
    check_metrics(*trace, capture);
    check_residuals(*trace, capture);
    check_predictions(subject, *trace, capture, ids);
  }
  CHECK(texts >= 7);
}

}  // namespace

TEST_CASE("gpt2-byte-d96 agrees with float64 in every map, logit, loss, metric and stage") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/gpt2-byte-d96");
  HEADSCOPE_NEEDS_SHARED(captures, "captures/gpt2-byte-d96");
  check_model(*folder, *captures);
}

TEST_CASE("gpt2-bpe-d64 agrees with float64 in every map, logit, loss, metric and stage") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/gpt2-bpe-d64");
  HEADSCOPE_NEEDS_SHARED(captures, "captures/gpt2-bpe-d64");
  check_model(*folder, *captures);
}

TEST_CASE("stories260k agrees with float64 in every map, logit, loss, metric and stage") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/stories260k");
  HEADSCOPE_NEEDS_SHARED(captures, "captures/stories260k");
  check_model(*folder, *captures);
}

TEST_CASE("gpt-nano-sort agrees with float64 in every map, logit, loss, metric and stage") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/gpt-nano-sort");
  HEADSCOPE_NEEDS_SHARED(captures, "captures/gpt-nano-sort");
  check_model(*folder, *captures);
}

}  // namespace headscope::parity_shared_test
