// Edits on every family: none quietly does nothing or is computed for another kind of model, and what leaves the model
// as it is gives its own logits by another way.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/weights.h"
#include "core/run/run_request.h"
#include "tests/support/every_edit.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::families_edit_test {

using namespace testing;

namespace {

struct Family {
  std::string name;
  Backend backend{1};
  LoadedModel loaded;
  RunRequest plain;
  explicit Family(const std::filesystem::path& folder) : name(folder.filename().string()) {
    loaded.model = Model::load(folder, backend);
    plain.model = folder;
    plain.ids = {3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};
    plain.capture.maps = MapStorage::none;
  }
  const ModelConfig& config() const { return loaded.model->config(); }
  std::shared_ptr<const Trace> with(const std::vector<std::string>& lines, RunRequest request) {
    for (const std::string& line : lines) request.edits.push_back(parse_intervention("*: " + line, "test"));
    return run(loaded, request, Ctx{backend});
  }
  double change(const std::string& line) {
    return largest_difference(with({}, plain)->logits, with({line}, plain)->logits);
  }
  double change(const std::string& line, int layer) {
    RunRequest request = plain;
    request.edits.push_back(parse_intervention(std::to_string(layer) + ".*: " + line, "test"));
    return largest_difference(with({}, plain)->logits, with({}, request)->logits);
  }
};

template <class Check>
void for_each_family(Check&& check) {
  for (const auto& entry : std::filesystem::directory_iterator(reference("families"))) {
    Family family(entry.path());
    CAPTURE(family.name);
    check(family);
  }
}

}  // namespace

TEST_CASE("what leaves a model as it is gives its own logits by another way, in every family") {
  for_each_family([](Family& f) {
    const ModelConfig& c = f.config();
    const bool rotary = c.position == PositionKind::rotary;
    CHECK(f.change("quantize 2 both vector 0.000000001") < 1e-3);  // every dimension is kept apart
    if (c.dims.hybrid()) {  // what reaches all layers does nothing where it could do nothing
      for (const char* line : {"mask causal", "mechanism softmax temperature=1 scaled=on", "singular q 1..=1.000001",
                               "singular k 1..=1.000001", "singular v 1..=1.000001", "singular o 1..=1.000001"}) {
        CAPTURE(line);
        CHECK(f.change(line) < 1e-3);
      }
      CHECK(f.change("latent keys " + std::to_string(std::min(c.dims.d_model, 2 * c.dims.kv_heads * c.dims.d_head))) <
            1e-3);
      CHECK_THROWS_WITH_AS(f.change("mask full"), doctest::Contains("no token sees a later one"), Error);
      for (int layer = 0; layer < c.dims.layers; ++layer) {
        CAPTURE(layer);
        for (const char* line : {"temperature 0.5", "mechanism linear", "pattern uniform", "position none",
                                 "share keys 1", "drop first 1", "singular q 1..=0", "latent keys 2"}) {
          CAPTURE(line);
          if (!c.dims.attends(layer))
            CHECK_THROWS_AS(f.change(line, layer), Error);
          else if ((c.position != PositionKind::none || std::string(line) != "position none") &&
                   (c.dims.kv_heads > 1 || std::string(line) != "share keys 1"))
            CHECK(f.change(line, layer) > 1e-6);
        }
        for (const char* line : {"mask window 2", "ablate zero", "drop first 1 and its weight"})
          CHECK(f.change(line, layer) > 1e-6);
      }
      return;
    }
    if (c.dims.state_space()) {  // which has no scores, and one matrix
      CHECK(f.change("mask causal") < 1e-5);
      CHECK(f.change("singular o 1..=1.000001") < 1e-3);
      for (const char* line :
           {"mechanism softmax temperature=1 scaled=on", "mask full", "singular q 1..=0", "latent keys 2"})
        CHECK_THROWS_AS(f.change(line), Error);
      return;
    }
    CHECK(f.change("mechanism softmax temperature=1 scaled=on") < 1e-4);
    if (c.windows.empty() && c.chunks.empty()) CHECK(f.change(c.causal ? "mask causal" : "mask full") < 1e-5);
    if (!c.causal) CHECK(f.change("mask causal") > 1e-3);
    if (rotary) CHECK(f.change("position rope") < 1e-4);
    const bool distances = c.told_by_distance(static_cast<std::int64_t>(f.plain.ids.size()));
    if (rotary && distances) CHECK(f.change("position shift 3") < 1e-4);
    if (rotary && !distances) CHECK(f.change("position shift 3") > 1e-3);  // elsewhere, norms or lengths are others
    if (c.normed_turned())
      CHECK_THROWS_WITH_AS(f.change("position chunks 30"), doctest::Contains("behind their rotation"), Error);
    else if (rotary)
      CHECK(f.change("position chunks 30") < 1e-4);  // the text is shorter: every distance is its own
    if (c.position == PositionKind::alibi) {
      CHECK(f.change("position none") > 1e-3);
      CHECK(f.change("mask window 5") > 1e-3);
    }
    // Every matrix that is taken apart, and put together as it was but for rounding.
    for (const char* matrix : {"q", "k", "v", "o", "mlp_in", "mlp_gate", "mlp_out"}) {
      CAPTURE(matrix);
      const bool clipped = c.clip_qkv > 0 && std::string("qkv").find(matrix) != std::string::npos;
      const std::string line = std::string("singular ") + matrix + " 1..=1.000001";
      const bool several = c.experts.anywhere() && std::string(matrix).starts_with("mlp");  // none is the layer's
      if (clipped || several || (!c.gated_mlp && std::string(matrix) == "mlp_gate"))
        CHECK_THROWS_AS(f.change(line), Error);
      else
        CHECK(f.change(line) < 1e-3);
    }
    const int rank = std::min(c.dims.d_model, 2 * c.dims.kv_heads * c.dims.d_head);
    if (c.clip_qkv > 0 || c.latent())
      CHECK_THROWS_AS(f.change("latent keys " + std::to_string(rank)), Error);
    else
      CHECK(f.change("latent keys " + std::to_string(rank)) < 1e-3);
  });
}

TEST_CASE("a temperature divides scores behind the soft cap and the slopes of the model") {
  for (const char* name : {"gemma2", "bloom", "mpt"}) {
    CAPTURE(name);
    Family f(reference("families") / name);
    RunRequest request = f.plain;
    request.capture.sites = {SiteKind::attn_scores};
    const auto plain = f.with({}, request), cooled = f.with({"temperature 0.5"}, request);
    const Tensor &a = plain->sites.at({SiteKind::attn_scores, 0}), &b = cooled->sites.at({SiteKind::attn_scores, 0});
    for (Index head = 0; head < a.dim(0); ++head)
      for (Index i = 0; i < a.dim(1); ++i)
        for (Index j = std::max<Index>(0, i - 2); j <= i; ++j)
          CHECK(b.at(head, i, j) == doctest::Approx(2 * a.at(head, i, j)).epsilon(1e-5));
  }
}

TEST_CASE("no form of an edit quietly does nothing in any family, but for those that cannot") {
  const auto excused = [](const std::string& line, const ModelConfig& c) {
    const auto begins = [&](const char* words) { return line.starts_with(words); };
    const bool rotary = c.position == PositionKind::rotary, learned = c.position == PositionKind::learned;
    return begins(c.causal ? "mask causal" : "mask full") || line == "freeze pattern" ||
           begins("mechanism softmax temperature=1") || begins("mechanism flash") || begins("mechanism ring") ||
           (begins("position shift") && !learned) || begins("position chunks") ||  // the text is shorter than a chunk
           (begins("mask window 4") && !c.windows.empty() &&
            std::ranges::all_of(c.windows, [](int w) { return w == 4; })) ||
           (begins("share keys 1") && c.dims.kv_heads == 1) ||
           (begins("position alibi") && c.position == PositionKind::alibi) ||
           (begins("position none") && c.position == PositionKind::none && c.dims.hybrid()) ||
           (begins("position rope") && rotary && !c.turns(0));
  };
  const auto refusable = [](const std::string& line, const ModelConfig& c) {
    const auto begins = [&](const char* words) { return line.starts_with(words); };
    for (const char* words :  // let tokens see later ones
         {"mask full", "mask around", "mask bigbird", "mask chosen", "mask documents", "mask global", "mask hidden",
          "mask padding", "mask prefix", "mask window 4 |"})
      if (c.dims.any_state_space() && begins(words)) return true;
    if (c.dims.state_space()) {  // what needs scores, queries, keys, values or an MLP
      const bool shares = begins("drop first") && !line.ends_with("and its weight");
      for (const char* words :
           {"temperature", "position",      "pattern",    "mechanism",       "scale by length", "share keys",
            "latent keys", "singular q",    "singular k", "singular v",      "singular mlp",    "patch q",
            "patch k",     "patch v",       "patch mlp",  "patch resid_mid", "switch off mlp",  "switch off ln2",
            "mask lsh",    "mask reformer", "adapter",    "hide patches",    "patch router"})
        if (begins(words)) return true;
      return shares;
    }
    return (begins("position chunks") && (c.position != PositionKind::rotary || c.normed_turned())) ||
           (begins("position rope") && c.dims.d_head % 2 != 0) || (begins("mechanism") && !c.causal) ||
           (begins("mechanism") &&
            !(c.windows.empty() && c.chunks.empty())) ||  // those that run along the text see all of it
           (begins("mechanism") && c.learned_sinks) ||
           (begins("singular mlp") && c.experts.anywhere()) || (begins("patch router") && !c.experts.anywhere()) ||
           (begins("singular mlp_gate") && !c.gated_mlp) || (begins("singular") && c.clip_qkv > 0) ||
           (begins("latent keys") && c.clip_qkv > 0) ||
           (begins("post norm") &&
            (c.dims.parallel || c.norm_place != NormPlace::before || c.norm == NormKind::none || c.dims.paired)) ||
           (begins("switch off ln1") && c.dims.paired) ||
           (begins("switch off ln") && (!c.norms_before() || c.shared_norm || c.norm == NormKind::none)) ||
           (begins("position sinusoidal") && c.dims.d_model % 2 != 0) ||
           begins("adapter") ||       // none was merged into these
           begins("hide patches") ||  // these read texts
           (begins("patch resid_mid") && c.dims.parallel) || begins("share keys") || begins("latent keys");
  };
  for_each_family([&](Family& f) {
    for (const std::string& line : every_edit_line()) {
      if (line.find('"') != std::string::npos) continue;  // needs a tokenizer
      CAPTURE(line);
      double change = -1;
      std::string refused;
      try {
        change = f.change(line);
      } catch (const Error& error) {
        refused = error.what();
      }
      CAPTURE(refused);
      if (refused.empty())
        CHECK((change > 1e-6 || excused(line, f.config())));
      else
        CHECK(refusable(line, f.config()));
    }
  });
}

}  // namespace headscope::families_edit_test
