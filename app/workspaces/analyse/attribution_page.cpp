// What every head and MLP wrote to one logit.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "app/workspaces/head_cells.h"
#include "core/analysis/logit_attribution.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/metrics/next_token.h"
#include "core/model/weights.h"
#include "core/trace/mixer_words.h"
#include "core/trace/model_heads.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

class AttributionPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    keep_up(c);
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    parts(c, answer);
    sources(c, answer);
  }

  void controls(ControlsRecord& r) override { logit_.record(r); }
  void right(const PageContext& c) override {
    const auto& answer = job_.answer();
    const auto named = [&](std::int32_t id) { return token_text(answer->source.model, id); };
    logit_controls(c, "##attributed token", answer ? named(answer->result.of.token) : "", logit_,
                   said("whose answer is taken apart"));
    if (!answer) return;
    const LogitAttribution& found = answer->result;
    section(c.ui, said("SUM"), said("the final norm's scale frozen"));
    const std::string what = found.of.against ? said("Logit difference") : say("Logit of {}", named(found.of.token));
    fact(c.ui, what, signed_words(found.logit), nullptr, {what, said("as the pass gave it: logits, F32")});
    fact(c.ui, said("Sum of all parts"), signed_words(found.sum()), nullptr,
         {said("Σ parts"), said("every part: what was written · d, d = s (g ∘ u − mean)"),
          said("embeddings, heads, biases, MLPs, the norm's bias")});
    fact(c.ui, said("Scale of the final norm"), fmt::format("{:.4f}", found.scale), nullptr,
         {said("s = 1 / √(variance + ε) of blocks' last hook_resid_post"),
          said("(of mean x² for RMSNorm), as it was in this run")});
    section(c.ui, said("PARTS"), said("largest first"));
    std::vector<AttributionPart> parts = found.parts;
    std::ranges::stable_sort(parts, std::ranges::greater{}, [](const AttributionPart& p) { return std::abs(p.value); });
    std::vector<Bar> bars;
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 12); ++i)
      bars.push_back({name(parts[i]), std::abs(parts[i].value) / std::max(1e-12, std::abs(parts[0].value)), -1,
                      signed_words(parts[i].value),
                      say("{}: {:+.5f}, {:.1f} % of {:+.4f}", name(parts[i]), parts[i].value,
                          100 * parts[i].value / found.logit, found.logit)});
    bar_list(c.ui, "parts", bars);
  }

 private:
  using Reading = ReadingJob<LogitAttribution>::Reading;

  void keep_up(const PageContext& c) {
    if (!c.results().model.model || !c.trace()) return;
    logit_.keep_inside(c);
    const Index row = pinned_row(c, *c.trace());
    const auto token = logit_.token.id, against = logit_.against.id;
    job_.want(c, attribution_sites(*c.results().model.model),
              fmt::format("{} {} {}", row, token.value_or(-1), against.value_or(-1)),
              [row, token, against](const ReadingSource& source, const Ctx&) {
                need_logits(source.trace->model);
                AttributionOf of;
                of.position = std::min(row, static_cast<Index>(source.trace->tokens.size()) - 1);
                of.token = token ? *token : top_next(*source.trace, 1, static_cast<int>(of.position)).front().id;
                of.against = against;
                return logit_attribution(*source.model.model, *source.trace, of, source.run->request.edits);
              });
  }

  void parts(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    const double width = std::floor(c.room()), height = std::clamp(room_below(c) * 0.5, 180.0, 560.0);
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height), [answer, width, height](const Style& style) {
      Matrix matrix = attribution_matrix(answer->result, answer->source.trace->model.dims);
      matrix.width = width, matrix.height = height;
      matrix.digits = 3;
      matrix.largest_cell = 72;
      return matrix_scene(matrix, style);
    });
    const int heads = answer->source.trace->model.dims.most_heads();
    const HeadId selected = chosen_head(c, *answer->source.trace);
    const SceneTouch touch = wide_scene(c, slot_, "attribution", [&](const Scene& scene, const SceneTouch& at) {
      name_cells(c, scene, at, [heads](Index layer, Index column) {
        return column < heads ? fmt::format("Layer {} Head {}", layer, column)
                              : fmt::format("Layer {} part {}", layer, column);
      });
      frame_cell(c, scene, at, {selected.layer, selected.head}, c.ui.theme.text);
      if (const auto cell = matrix_cell(at)) frame_cell(c, scene, at, *cell, c.ui.theme.accent);
    });
    const auto cell = matrix_cell(touch);
    if (!cell) return;
    tip(c, *answer, *cell);
    const HeadId head{static_cast<int>(cell->row), static_cast<int>(cell->column)};
    if (!answer->source.trace->model.dims.has_head(head.layer, head.head)) return;
    if (touch.double_clicked)
      show_in_explore(c, head);
    else if (touch.clicked)
      c.editor.select(head);
  }

  void tip(const PageContext& c, const Reading& answer, Cell cell) {
    const ModelDims& dims = answer.source.trace->model.dims;
    const LogitAttribution& found = answer.result;
    const bool bias = std::ranges::any_of(
        found.parts, [](const AttributionPart& part) { return part.kind == AttributionPart::Kind::attention_bias; });
    for (const AttributionPart& part : found.parts) {
      const Index column = part.kind == AttributionPart::Kind::head             ? part.head
                           : part.kind == AttributionPart::Kind::attention_bias ? dims.most_heads()
                           : part.kind == AttributionPart::Kind::mlp            ? dims.most_heads() + bias
                                                                                : -1;
      if (part.layer != cell.row || column != cell.column) continue;
      const std::string tensor =
          part.kind == AttributionPart::Kind::head
              ? fmt::format("{}[{}, {}] · W_O",
                            name(Site{input_site(answer.source.model.model->config(), WeightMatrix::o, part.layer),
                                      part.layer}),
                            found.of.position, part.head)
          : part.kind == AttributionPart::Kind::mlp
              ? fmt::format("blocks.{}.hook_mlp_out[{}]", part.layer, found.of.position)
              : say("output bias of block {}", part.layer);
      return tooltip(c.ui, {fmt::format("{}: {}", name(part), signed_words(part.value)), tensor + " · d, F32",
                            said("d = s · (gain ∘ W_U column, centred for LayerNorm), s frozen"),
                            say("{:.1f} % of {:+.4f}", 100 * part.value / found.logit, found.logit)});
    }
  }

  /// The selected head first, then those that wrote most.
  std::vector<HeadId> strongest(const Reading& answer, HeadId selected, std::size_t most) const {
    std::vector<AttributionPart> heads;
    for (const AttributionPart& part : answer.result.parts)
      if (part.kind == AttributionPart::Kind::head && answer.source.trace->model.dims.attends(part.layer))
        heads.push_back(part);
    std::ranges::stable_sort(heads, std::ranges::greater{}, [](const AttributionPart& p) { return std::abs(p.value); });
    std::vector<HeadId> out;
    if (answer.source.trace->model.dims.attends(selected.layer)) out.push_back(selected);
    for (const AttributionPart& part : heads)
      if (out.size() < most && !(selected == HeadId{part.layer, part.head})) out.emplace_back(part.layer, part.head);
    return out;
  }

  void sources(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    section(c.ui, said("WHERE HEADS READ IT FROM"),
            said("the selected head, then those that wrote most · click asks about that position"));
    if (!answer->result.by_source.defined())
      return note(c.ui, said("A gate stands between what this model's state held and what a head writes: its share is "
                             "one number, not one for each token it came from."));
    if (const HeadId head = chosen_head(c, *answer->source.trace);
        !answer->source.trace->model.dims.attends(head.layer))
      note(c.ui,
           say("Layer {} mixes tokens by {}, behind which a gate stands: what head {}.{} writes is one number, not "
               "one for each token it came from.",
               head.layer, said(mixer_words(answer->source.trace->model.dims, head.layer)), head.layer, head.head));
    const auto n = static_cast<double>(answer->source.trace->tokens.size());
    const double width = std::max(std::floor(c.room()), 80 + 9 * n), height = std::max(150.0, room_below(c) - 18);
    const auto rows = static_cast<std::size_t>(std::clamp((height - 140) / 22, 1.0, 8.0));
    const auto heads = strongest(*answer, chosen_head(c, *answer->source.trace), rows);
    row_.want(c.jobs, c.ui, answer, fmt::format("{} {} {} {}", to_string(heads[0]), rows, width, height),
              [answer, heads, width, height](const Style& style) {
                Matrix matrix = source_matrix(answer->result, answer->source.trace, heads);
                matrix.width = width, matrix.height = height;
                matrix.largest_cell = 44;
                return matrix_scene(matrix, style);
              });
    const SceneTouch touch = wide_scene(c, row_, "sources", [&](const Scene& scene, const SceneTouch& at) {
      if (const auto cell = matrix_cell(at)) frame_cell(c, scene, at, *cell, c.ui.theme.accent);
    });
    const auto cell = matrix_cell(touch);
    if (!cell || cell->column >= answer->result.by_source.dim(1) || cell->row >= static_cast<Index>(heads.size()))
      return;
    const auto [layer, head] = nth(heads, cell->row);
    if (answer->source.trace->map({layer, head}).masked(answer->result.of.position, cell->column)) return;
    const Index key = cell->column, at = head_index(answer->source.trace->model.dims, {layer, head});
    tooltip(c.ui, {say("head {}.{} from {} ({}): {}", layer, head, token_label(*answer->source.trace, key), key,
                       signed_words(static_cast<double>(answer->result.by_source.at(at, key)))),
                   say("attention {:.4f} · (value · W_O · d)",
                       answer->source.trace->map({layer, head}).weight(answer->result.of.position, key)),
                   fmt::format("blocks.{}.attn.hook_pattern[{}, {}, {}], hook_v[{}], F32", layer, head,
                               answer->result.of.position, key, key)});
    if (touch.clicked) {
      c.editor.select({layer, head});
      c.editor.pin(key);
    }
  }

  ReadingJob<LogitAttribution> job_{*this, "read.attribution"};
  ReadingSlot slot_{*this, "scene.attribution"}, row_{*this, "scene.attribution.sources"};
  LogitFields logit_;
};

}  // namespace

std::unique_ptr<Page> make_attribution(JobRunner&) {
  return std::make_unique<AttributionPage>();
}

}  // namespace headscope
