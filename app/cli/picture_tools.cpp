// The tools of `headscope-cli read` that only models of pictures have: patches and their tokens, positions on the grid,
// class scores.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/read_report.h"
#include "app/render/vision_pictures.h"
#include "core/analysis/logit_lens.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "viz/scene/framed.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/patch_map.h"

namespace headscope::cli {

namespace {
const VisionConfig& vision_of(const ReadRun& run, const std::string& tool) {
  const ModelConfig& config = run.loaded.model->config();
  if (!config.vision) throw Error("read " + tool, "a model of pictures", config.name + ", which reads texts");
  return *config.vision;
}

class Patches final : public ReadTool {
 public:
  Patches() : ReadTool("patches", "A picture's way to tokens: patches, their numbers, the token each becomes") {}
  CaptureSpec capture(const Model&) const override {
    CaptureSpec spec = with_sites({SiteKind::embed});
    spec.maps = MapStorage::none;
    return spec;
  }
  Report read(const ReadRun& run) const override;
};

Report Patches::read(const ReadRun& run) const {
  const VisionConfig& v = vision_of(run, id);
  const int width = run.loaded.model->config().dims.d_model;
  const std::vector<PatchToken> found = patch_tokens(*run.loaded.model, *run.trace);
  Report out;
  out.facts(
      {{"picture", "the model's picture, pixels", fmt::format("{} × {}", v.width, v.height)},
       {"patch", "a patch, pixels", fmt::format("{0} × {0}", v.patch)},
       {"patches", fmt::format("patches, {} × {}", v.columns(), v.rows()), v.patches()},
       {"numbers", fmt::format("numbers of each, {} · {} · {}", v.channels, v.patch, v.patch), v.patch_numbers()},
       {"leading", "learned tokens before them", v.leading},
       {"tokens", fmt::format("tokens, of {} numbers each behind the {} × {} matrix", width, v.patch_numbers(), width),
        v.tokens()}});
  auto& rows = out.table("rows", {"position", "token", "row", "column", "x", "y", "mean", "deviation", "embedded"});
  for (const PatchToken& t : found)
    rows.add({t.position, token_label(*run.trace, t.position), t.row, t.column, t.column * v.patch, t.row * v.patch,
              t.mean, t.deviation, t.embedded});
  out.picture = [trace = run.trace, values = token_norms(found, *run.loaded.model)](const Style& style) {
    return patch_values_scene(*trace, values, {}, style);
  };
  return out;
}

class AskPatches final : public ReadTool {
 public:
  AskPatches() : ReadTool("ask-patches", "A word asked of a picture: which patches answer to the name of a class") {}
  void add_options(Command& command) override { token_.add_to(command); }
  CaptureSpec capture(const Model& model) const override {
    CaptureSpec spec = with_sites(logit_lens_sites(model));
    spec.maps = MapStorage::none;
    return spec;
  }
  Report read(const ReadRun& run) const override;

 private:
  TokenOption token_;
};

Report AskPatches::read(const ReadRun& run) const {
  const VisionConfig& v = vision_of(run, id);
  need_logits(run.trace->model);
  const std::int32_t word = token_.in(run.loaded, *run.trace, 0);
  const Ctx ctx{run.console.backend(), nullptr, run.console.stop()};
  const std::vector<AskedPatch> found = ask_patches(*run.loaded.model, ctx, *run.trace, word);
  const std::string name = namer(run.loaded)(word);
  Report out;
  out.facts({{"word", "asked", name}, {"even", "an even weight", 1 / static_cast<double>(v.patches())}});
  auto& rows = out.table("rows", {"position", "token", "row", "column", "score", "weight", "rank"});
  for (const AskedPatch& t : found)
    rows.add({t.position, token_label(*run.trace, t.position), (t.position - v.leading) / v.columns(),
              (t.position - v.leading) % v.columns(), t.score, t.weight, t.rank});
  out.picture = [trace = run.trace, values = asked_values(found, name)](const Style& style) {
    return patch_values_scene(*trace, values, {}, style);
  };
  return out;
}

class PositionsGrid final : public ReadTool {
 public:
  PositionsGrid() : ReadTool("positions-grid", "How alike the positions of patches are: a grid of grids of cosines") {}
  CaptureSpec capture(const Model&) const override { return {.maps = MapStorage::none}; }
  Report read(const ReadRun& run) const override;
};

Report PositionsGrid::read(const ReadRun& run) const {
  const VisionConfig& v = vision_of(run, id);
  const Tensor found = position_similarity(*run.loaded.model);
  const GridSimilarity means = grid_similarity(found, v);
  Report out;
  out.facts({{"same_row", "mean cosine within a row", means.same_row},
             {"same_column", "mean cosine within a column", means.same_column},
             {"neighbours", "mean cosine of neighbours", means.neighbours},
             {"others", "mean cosine of patches that share neither", means.others}});
  auto& rows = out.table("rows", {"patch", "other", "cosine"});
  const auto label = [&](Index patch) { return token_label(*run.trace, v.leading + patch); };
  for (Index i = 0; i < found.dim(0); ++i) {
    Index nearest = -1;
    for (Index j = 0; j < found.dim(1); ++j) {
      if (run.for_scripts) rows.add({label(i), label(j), found.at(i, j)});
      if (j != i && (nearest < 0 || found.at(i, j) > found.at(i, nearest))) nearest = j;
    }
    if (!run.for_scripts && nearest >= 0) rows.add({label(i), label(nearest), found.at(i, nearest)});
  }
  out.picture = [found, v, run = describe_run(*run.trace)](const Style& style) {
    return framed(position_grid_scene(found, v, -1, 720, style), {"Positions of patches", {}, run, {}}, style);
  };
  return out;
}

class Classes final : public ReadTool {
 public:
  Classes() : ReadTool("classes", "What the picture shows: scores of classes, before and after edits") {}
  void add_options(Command& command) override { top_.add_to(command); }
  CaptureSpec capture(const Model&) const override { return {.maps = MapStorage::none}; }
  Report read(const ReadRun& run) const override;

 private:
  TopOption top_;
};

Report Classes::read(const ReadRun& run) const {
  (void)vision_of(run, id);
  need_logits(run.trace->model);
  const std::function<std::string(std::int32_t)> name = namer(run.loaded);
  Report out;
  if (run.request.edits.empty()) {
    auto& rows = out.table("rows", {"id", "class", "probability", "logit"});
    for (const NextToken& each : top_next(*run.trace, top_.count))
      rows.add({each.id, name(each.id), each.probability, each.logit});
    return out;
  }
  RunRequest plain = run.request;
  plain.edits.clear();
  plain.capture = capture(*run.loaded.model);
  const auto before = headscope::run(run.loaded, plain, Ctx{run.console.backend(), nullptr, run.console.stop()});
  const NextTokenChange change = next_token_change(*before, *run.trace, top_.count);
  out.fact({"kl", "KL(before ‖ after)", change.kl, "nats"});
  auto& rows = out.table("rows", {"id", "class", "before", "after"});
  for (const auto& each : change.tokens) rows.add({each.id, name(each.id), each.before, each.after});
  return out;
}

}  // namespace

ReadTools picture_tools() {
  return tools_of<Patches, AskPatches, PositionsGrid, Classes>();
}

}  // namespace headscope::cli
