#include "core/trace/capture.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/trace/recorder.h"

namespace headscope::capture_test {

namespace {
// GPT-2 124M.
const ModelDims gpt2{
    .layers = 12, .heads = 12, .kv_heads = 12, .d_head = 64, .d_model = 768, .d_mlp = 3072, .vocab = 50257};

std::string message(const CaptureSpec& spec, const ModelDims& dims, int n) {
  try {
    plan_capture(spec, dims, n, n);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("site sizes follow the shapes of the table") {
  const ModelDims dims{.layers = 2, .heads = 4, .kv_heads = 2, .d_head = 8, .d_model = 32, .d_mlp = 100, .vocab = 50};
  CHECK(site_bytes(SiteKind::q, dims, 3, 5) == 3 * 4 * 8 * 4);
  CHECK(site_bytes(SiteKind::k, dims, 3, 5) == 3 * 2 * 8 * 4);
  CHECK(site_bytes(SiteKind::pattern, dims, 3, 5) == 4 * 3 * 5 * 4);
  CHECK(site_bytes(SiteKind::result, dims, 3, 5) == 3 * 4 * 32 * 4);
  CHECK(site_bytes(SiteKind::mlp_post, dims, 3, 5) == 3 * 100 * 4);
  CHECK(site_bytes(SiteKind::logits, dims, 3, 5) == 3 * 50 * 4);
  CHECK(site_bytes(SiteKind::resid_pre, dims, 3, 5) == 3 * 32 * 4);
}

TEST_CASE("automatic maps are dense for short texts and factored for long ones") {
  const CapturePlan brief = plan_capture({}, gpt2, 64, 64);
  CHECK(brief.maps == MapStorage::dense);
  CHECK(brief.summary.rfind("144 maps dense (", 0) == 0);
  const CapturePlan full = plan_capture({}, gpt2, 1024, 1024);
  CHECK(full.maps == MapStorage::factored);
  // 12·12·1024² cells of 4 bytes are 604.0 MB, and statistics of 126976 bytes per map come on top.
  CHECK_MESSAGE(full.summary.find("dense would take 622 MB") != std::string::npos, full.summary);
  CHECK_MESSAGE(full.summary.find("logits 206 MB") != std::string::npos, full.summary);
  // q and k: 12 layers · 1024 · 12 heads · 64 · 4 bytes, twice; logits 1024 · 50257 · 4; the rest are statistics.
  const std::size_t factors = 2ull * 12 * 1024 * 12 * 64 * 4, logits = 1024ull * 50257 * 4;
  CHECK(full.bytes > factors + logits);
  CHECK(full.bytes < factors + logits + 144ull * 1024 * 128);
  // The budget decides: with sixteen times as much, the same text is kept dense.
  CHECK(plan_capture({.byte_budget = std::size_t{16} << 30}, gpt2, 1024, 1024).maps == MapStorage::dense);
}

TEST_CASE(
    "maps of states are dense while they fit, and then what they are made of is counted in place of their cells") {
  // Mamba-2 130M.
  ModelDims dims{.layers = 24, .heads = 24, .d_head = 64, .d_model = 768, .vocab = 50288};
  dims.d_inner = 1536, dims.lanes = 24, dims.state_groups = 1, dims.d_state = 128, dims.convolved = 1792;
  const auto bytes = [&](MapStorage maps, int n) {
    return plan_capture({.maps = maps, .all_logits = false, .byte_budget = std::size_t{1} << 40}, dims, n, n).bytes;
  };
  const CaptureSpec usual{.all_logits = false};
  CHECK(plan_capture(usual, dims, 600, 600).maps == MapStorage::dense);  // 0.83 of the budget
  CHECK(plan_capture(usual, dims, 600, 600).bytes == bytes(MapStorage::dense, 600));
  CHECK(plan_capture(usual, dims, 700, 700).maps == MapStorage::factored);
  CHECK(plan_capture(usual, dims, 8, 8).maps == MapStorage::dense);  // as short as that maps are smaller
  const auto saved = [&](std::size_t of_token) {  // 576 maps of 1,024² cells, but for so many numbers of each token
    return 576ull * 1024 * 1024 * 4 - 24ull * 1024 * of_token * 4;
  };
  const auto found = [&] { return bytes(MapStorage::dense, 1024) - bytes(MapStorage::factored, 1024); };
  CHECK(found() == saved(2 * 24 + 2 * 128));  // Δ, the shape of x, B and C
  dims.state_kind = StateKind::delta;
  CHECK(found() == saved(3 * 24 + 2 * 128));  // and β
  dims.state_kind = StateKind::convolution;
  CHECK(found() == saved(3 * 1536));
  dims.state_kind = StateKind::selective;
  dims.mixers.assign(24, Mixer::state_space);
  dims.mixers[3] = Mixer::attention, dims.kv_heads = 8;
  CHECK(found() == 576ull * 1024 * 1024 * 4 - 23ull * 1024 * (2 * 24 + 2 * 128) * 4 - 1024ull * (24 + 8) * 64 * 4);
  const std::string refused = message({.maps = MapStorage::dense}, dims, 2000);
  CHECK_MESSAGE(refused.find("factored maps would need") != std::string::npos, refused);
}

TEST_CASE("a recorded pattern means dense maps, and rotated queries that are recorded anyway are counted once") {
  CHECK(plan_capture({.maps = MapStorage::none, .sites = {SiteKind::pattern}}, gpt2, 8, 8).maps == MapStorage::dense);
  const CaptureSpec maps{.maps = MapStorage::factored};
  const CaptureSpec both{.maps = MapStorage::factored, .sites = {SiteKind::rot_q, SiteKind::rot_k}};
  CHECK(plan_capture(maps, gpt2, 100, 100).bytes == plan_capture(both, gpt2, 100, 100).bytes);
  const CaptureSpec z{.maps = MapStorage::factored, .sites = {SiteKind::z}, .layers = {3, 5}};
  const CaptureSpec two{.maps = MapStorage::factored, .layers = {3, 5}};
  CHECK(plan_capture(z, gpt2, 100, 100).bytes == plan_capture(two, gpt2, 100, 100).bytes + 2ull * 100 * 768 * 4);
}

TEST_CASE("a spec that cannot fit is refused with the budget, the need and a way out") {
  const std::string dense = message({.maps = MapStorage::dense, .byte_budget = 500'000'000}, gpt2, 1024);
  CHECK_MESSAGE(dense.find("at most 500 MB") != std::string::npos, dense);
  CHECK_MESSAGE(dense.find("factored maps would need") != std::string::npos, dense);
  const std::string logits = message({.maps = MapStorage::none, .byte_budget = 100'000'000}, gpt2, 1024);
  CHECK_MESSAGE(logits.find("a need of 206 MB") != std::string::npos, logits);
  CHECK_MESSAGE(logits.find("last position only") != std::string::npos, logits);
  CHECK(message({.maps = MapStorage::none, .all_logits = false, .byte_budget = 300'000}, gpt2, 1024).empty());
  CHECK(message({.layers = {12}}, gpt2, 8).find("layers from 0 to 11") != std::string::npos);
}

TEST_CASE("absurd extents saturate instead of seeming to fit") {
  const int huge = 2000000000;
  const ModelDims dims{
      .layers = huge, .heads = huge, .kv_heads = huge, .d_head = huge, .d_model = huge, .d_mlp = huge, .vocab = huge};
  CHECK(message({}, dims, huge).find("capture budget") != std::string::npos);
  // 16 heads · 2³⁰ · 2³⁰ cells of 4 bytes are 2⁶⁶, which would wrap round to nothing.
  const ModelDims wide{.layers = 1, .heads = 16, .kv_heads = 16, .d_head = 1, .d_model = 16, .d_mlp = 1, .vocab = 1};
  CHECK(site_bytes(SiteKind::pattern, wide, 1 << 30, 1 << 30) == std::numeric_limits<std::size_t>::max());
}

TEST_CASE("a recorder keeps what the spec names, in its layers, without copying whole tensors") {
  Recorder recorder({.sites = {SiteKind::z, SiteKind::embed, SiteKind::pattern}, .layers = {1}});
  CHECK(recorder.wants({SiteKind::z, 1}));
  CHECK(!recorder.wants({SiteKind::z, 0}));
  CHECK(!recorder.wants({SiteKind::q, 1}));
  CHECK(!recorder.wants({SiteKind::pattern, 1}));  // the dense maps hold it
  CHECK(recorder.wants({SiteKind::embed}));
  const Tensor value = Tensor::full({2, 3}, 4);
  CHECK(recorder.at({SiteKind::z, 1}, value).data() == value.data());
  const auto sites = recorder.take();
  REQUIRE(sites.size() == 1);
  CHECK(sites.at({SiteKind::z, 1}).data() == value.data());
  CHECK(recorder.take().empty());
}

TEST_CASE("a recorder packs a part of a fused product unless all of it is recorded") {
  const Tensor fused = Tensor::full({2, 9}, 1);
  const Tensor part = fused.slice(1, 3, 6);
  Recorder one({.sites = {SiteKind::k}});
  one.at({SiteKind::k, 0}, part);
  const auto packed = one.take();
  CHECK(packed.at({SiteKind::k, 0}).contiguous());
  CHECK(packed.at({SiteKind::k, 0}).data() != part.data());
  Recorder all({.sites = {SiteKind::q, SiteKind::k, SiteKind::v}});
  all.at({SiteKind::k, 0}, part);
  CHECK(all.take().at({SiteKind::k, 0}).data() == part.data());
}

}  // namespace headscope::capture_test
