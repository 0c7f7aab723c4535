// Parts that few encoders have: an unembedding of a width of its own, and a convolution beside the first block.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/io/trace_file.h"
#include "core/run/pass_memory.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::encoder_parts_test {

using namespace testing;

TEST_CASE("what RemBERT's unembedding reads, and what a convolution adds, have the room and the file that they need") {
  struct Case {
    const char* family;
    SiteKind kind;
    int layer;
    Index width;
  };
  for (const auto& [family, kind, layer, width] :
       {Case{"rembert", SiteKind::final_normalized, -1, 25}, Case{"rembert", SiteKind::embed, -1, 7},
        Case{"rembert-out", SiteKind::final_normalized, -1, 11}, Case{"rembert-out", SiteKind::pos_embed, -1, 23},
        Case{"deberta_v2-convolution", SiteKind::layer_out, 0, 18}}) {
    CAPTURE(std::string(family));
    Backend backend(2);
    const LoadedModel loaded = load_model(reference("families") / family, backend);
    RunRequest request;
    request.ids = {7, 9, 30, 9, 12};
    request.capture.sites = {kind};
    const auto trace = run(loaded, request, Ctx{backend});
    const Tensor& site = trace->sites.at({kind, layer});
    CHECK(site.shape() == Shape{5, width});
    CHECK(site_bytes(kind, loaded.model->config().dims, 5, 5) == static_cast<std::size_t>(5 * width) * 4);
    CHECK_FALSE(trace->sites.contains({kind, 1}));  // no other layer has it
    const std::filesystem::path file = scratch_dir("own-width") / "trace.safetensors";
    write_trace(*trace, file, {.sites = request.capture.sites});
    const auto again = open_trace(file);
    CHECK(absolute(again->sites.at({kind, layer}), site) == 0);
    CHECK(again->model.dims.d_out == loaded.model->config().dims.d_out);
    CHECK(again->model.dims.convolves_first == loaded.model->config().dims.convolves_first);
  }
}

TEST_CASE("the convolution beside the first block reaches two tokens on either side, and none of another text") {
  Backend backend(2);
  const auto model = Model::load(reference("families/deberta_v2-convolution"), backend);
  const std::vector<std::int32_t> ids{7, 9, 30, 9, 12, 3, 8};
  /// Adds to one number of the stream that enters.
  struct Nudge final : Tap {
    Index row, column;
    float by;
    Nudge(Index i, Index j, float much) : row(i), column(j), by(much) {}
    bool wants(Site site) const override { return site == Site{SiteKind::resid_pre, 0}; }
    Tensor at(Site, const Tensor& value) override {
      Tensor changed = value.copy();
      changed.ref(row, column) += by;
      return changed;
    }
  };
  // What is beyond a text's end is 0, whatever stands there: the first text alone is as it is beside another.
  const std::vector<Index> lengths{4, 3};
  const Tensor both = model->forward({backend}, ids, nullptr, {}, true, {}, lengths).logits;
  const Tensor first = model->forward({backend}, std::span(ids).first(4)).logits,
               second = model->forward({backend}, std::span(ids).subspan(4)).logits;
  CHECK(absolute(both.slice(0, 0, 4), first) < 1e-5);
  CHECK(absolute(both.slice(0, 4, 7), second) < 1e-5);
  // A number of one token reaches the two tokens on either side by the convolution, whatever attention does.
  struct Keep final : Tap {
    Tensor seen;
    Nudge* inner;
    explicit Keep(Nudge* of) : inner(of) {}
    bool wants(Site site) const override {
      return site == Site{SiteKind::layer_out, 0} || (inner && inner->wants(site));
    }
    Tensor at(Site site, const Tensor& value) override {
      if (site.kind != SiteKind::layer_out) return inner->at(site, value);
      seen = value.copy();
      return value;
    }
  };
  Keep plain(nullptr);
  Nudge push(3, 5, 0.5f);
  Keep moved(&push);
  model->forward({backend, &plain}, ids);
  model->forward({backend, &moved}, ids);
  for (Index row = 0; row < 7; ++row) {
    double change = 0;
    for (Index j = 0; j < 18; ++j)
      change = std::max(change, std::abs(static_cast<double>(moved.seen.at(row, j) - plain.seen.at(row, j))));
    CHECK((change > 1e-4) == (row >= 1 && row <= 5));
  }
}

}  // namespace headscope::encoder_parts_test
