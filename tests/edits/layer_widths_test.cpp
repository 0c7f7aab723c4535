// Edits and readings of models whose layers differ: in key heads, in chunks, in norms of values.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/analysis/need.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/intervention.h"
#include "core/generate/streaming.h"
#include "core/run/run_request.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::layer_widths_test {

using namespace testing;

namespace {
std::shared_ptr<const Trace> with(const Subject& s, const std::string& edit, std::set<SiteKind> sites = {}) {
  RunRequest request;
  request.ids = {3, 17, 8, 21, 40, 3, 17, 9};
  request.capture.sites = std::move(sites);
  if (!edit.empty()) request.edits.push_back(parse_intervention(edit, "test"));
  return run(s.loaded, request, Ctx{*s.backend});
}
}  // namespace

TEST_CASE("positions of one head are changed where the layer has a key head for each, and refused where it has not") {
  const Subject s(reference("families/gemma4_text-moe"));  // four heads: two key heads with a window, else …
  const ModelDims& dims = s.loaded.model->config().dims;
  bool shared = false, own = false;
  for (int layer = 0; layer < dims.layers; ++layer) {
    const std::string edit = std::to_string(layer) + ".1: position none";
    const int keys = dims.widths_of(layer).kv_heads;
    if (keys == dims.heads) {
      own = true;
      CHECK(absolute(with(s, edit)->logits, with(s, "")->logits) > 1e-4);
    } else {
      shared = true;
      CHECK_THROWS_WITH_AS(with(s, edit), doctest::Contains(("share " + std::to_string(keys) + " key heads").c_str()),
                           Error);
    }
  }
  CHECK(shared);
  CHECK(own);
}

TEST_CASE("values of heads become their group's mean as their matrix makes them, before their norm") {
  const Subject s(reference("families/gemma4_text"));
  const auto before = with(s, "", {SiteKind::v_unnormed}), after = with(s, "0.*: share keys 1", {SiteKind::v});
  const Tensor made = need(*before, {SiteKind::v_unnormed, 0}), found = need(*after, {SiteKind::v, 0});
  const Index heads = made.dim(1), width = made.dim(2);
  REQUIRE(heads > 1);
  double worst = 0;
  for (Index t = 0; t < made.dim(0); ++t) {
    std::vector<double> mean(static_cast<std::size_t>(width));
    double square = 0;
    for (Index i = 0; i < width; ++i) {
      double& sum = mean[static_cast<std::size_t>(i)];
      for (Index h = 0; h < heads; ++h) sum += static_cast<double>(made.at(t, h, i)) / static_cast<double>(heads);
      square += sum * sum / static_cast<double>(width);
    }
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < width; ++i)
        worst = std::max(worst, std::abs(mean[static_cast<std::size_t>(i)] / std::sqrt(square + 1e-6) -
                                         static_cast<double>(found.at(t, h, i))));
  }
  CHECK(worst < 2e-6);
}

TEST_CASE("a cache of a model with chunks of its own is not counted again") {
  const std::filesystem::path from = reference("families/llama4_text-bare"), folder = scratch_dir("chunked");
  std::string config = read_file(from / "config.json");
  const std::string whole = "\"attention_chunk_size\": null";
  REQUIRE(config.find(whole) != std::string::npos);
  config.replace(config.find(whole), whole.size(), "\"attention_chunk_size\": 4");
  const std::string all = "\"full_attention\"";
  config.replace(config.find(all), all.size(), "\"chunked_attention\"");  // of the first layer
  write_file_atomically(folder / "config.json", config);
  std::filesystem::copy_file(from / "model.safetensors", folder / "model.safetensors");
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 24; ++i) ids.push_back(i * 7 % 43);
  const auto losses = [&](const std::filesystem::path& model) {
    const Subject s(model);
    return streaming_losses(s.loaded, ids, CachePolicy::sinks, {.window = 16, .sinks = 2}, Ctx{*s.backend});
  };
  CHECK(losses(from).size() == 23);
  CHECK_THROWS_WITH_AS(losses(folder), doctest::Contains("chunks"), Error);
}

}  // namespace headscope::layer_widths_test
