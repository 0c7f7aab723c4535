// Where attention rests when it has nothing to say: weight on the first token, what it carries, and the V of the
// layers.

#include "core/analysis/sinks.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "app/workspaces/head_cells.h"
#include "core/analysis/weighted_maps.h"
#include "core/base/words.h"
#include "core/trace/mixer_words.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

struct Measure {
  const char* button;
  const char* unit;
  const char* formula;
  double (*value)(const SinkHead&);
};
constexpr Measure measures[] = {
    {to_say("Weight"), to_say("mean weight on the first token"), to_say("mean over rows 1 … of hook_pattern[row, 0]"),
     [](const SinkHead& h) { return h.mass; }},
    {to_say("Carried"), to_say("share of what is written that comes from the first token"),
     to_say("mean over rows of ‖α_0 v_0 W_O‖ ÷ Σ_j ‖α_j v_j W_O‖"), [](const SinkHead& h) { return h.carried; }},
    {to_say("Value norm"), to_say("‖v_0‖ ÷ median ‖v‖ of the other tokens"), to_say("hook_v, Euclidean norms"),
     [](const SinkHead& h) { return h.value_norm / h.value_median; }},
};

const char* carried_formula(BehindHeads behind) {
  if (behind == BehindHeads::gate) return said("mean over rows of ‖α_0 (v_0 ∘ σ(g)) W_O‖ ÷ Σ_j ‖α_j (v_j ∘ σ(g)) W_O‖");
  if (behind == BehindHeads::norm)
    return said(
        "mean over rows of ‖α_0 (v_0 ∘ γ) W_O‖ ÷ Σ_j ‖α_j (v_j ∘ γ) W_O‖, γ: gains of the norm behind the heads");
  return said(measures[1].formula);
}

/// By BehindHeads: the length of what a head writes of a value, and what it is made of.
constexpr const char* output_titles[] = {to_say("‖v W_O‖ there, elsewhere"),
                                         to_say("‖(v ∘ σ(g)) W_O‖ there, elsewhere"),
                                         to_say("‖(v ∘ γ) W_O‖ ÷ rms(z) there, elsewhere")};
constexpr const char* output_formulas[] = {
    to_say("hook_v · W_O of the head"),
    to_say("(hook_v ∘ σ(hook_gate)) · W_O of the head, mean over the queries that see it"),
    to_say(
        "(hook_v ∘ gains of the norm behind the heads) · W_O of the head ÷ its divisor, mean over the queries that see "
        "it")};

std::string no_weights(const Trace& trace, int layer) {
  return say("Its layer is {}: no weights that add up to 1, and no values.",
             said(mixer_words(trace.model.dims, layer)));
}

class SinksPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    std::set<SiteKind> sites;
    if (const auto& model = c.results().model.model) sites = weighting_sites(model->config());
    sites.insert(SiteKind::resid_post);
    job_.want(c, sites, "",
              [](const ReadingSource& source, const Ctx&) { return read_sinks(*source.trace, weights_of(source)); });
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    static constexpr const char* labels[] = {measures[0].button, measures[1].button, measures[2].button};
    segmented(c.ui, "sink measure", labels, measure_);
    ImGui::Dummy({0, c.ui.px(4)});
    heads(c, answer);
    shape(c, answer);
    received(c, answer);
  }

  void controls(ControlsRecord& r) override { r.choice("measure", measure_, 2); }
  void right(const PageContext& c) override {
    const auto answer = job_.answer();
    if (!answer) return;
    const HeadId head = chosen_head(c, *answer->source.trace);
    const auto number = [](double v) { return std::isnan(v) ? std::string("–") : fmt::format("{:.3f}", v); };
    const BehindHeads behind = behind_heads(answer->source.model.model->config());
    const bool attends = answer->source.trace->model.dims.attends(head.layer);
    if (!attends) {
      section(c.ui, said("THIS HEAD"), say("layer {} head {}", head.layer, head.head));
      note(c.ui, no_weights(*answer->source.trace, head.layer));
    }
    for (const SinkHead& h : answer->result.heads) {
      if (h.id != head || !attends) continue;
      section(c.ui, said("THIS HEAD"), say("layer {} head {}, chance in grey", head.layer, head.head));
      const std::string chance = number(h.chance);
      fact(c.ui, said("Weight on the first token"), number(h.mass), nullptr,
           {said(measures[0].formula), said("chance: a head that spreads its weight evenly")}, &chance);
      if (h.learned > 0)
        fact(c.ui, said("Share of the learned sink"), number(h.learned), nullptr,
             {said("mean over rows 1 … of 1 − Σ of the row"),
              said("the head's own logit in the softmax takes it and gives nothing")});
      fact(c.ui, said("… carries of its output"), number(h.carried), nullptr, {carried_formula(behind)});
      fact(c.ui, said("‖v‖ there, median elsewhere"), fmt::format("{:.2f}, {:.2f}", h.value_norm, h.value_median),
           nullptr, {said("hook_v, Euclidean norm"), said("median over the other tokens")});
      fact(c.ui, said(nth(output_titles, behind)), fmt::format("{:.2f}, {:.2f}", h.output_norm, h.output_median),
           nullptr, {said(nth(output_formulas, behind)), said("median over the other tokens")});
      fact(c.ui, said("Entropy"), say("{} nats", number(h.entropy)), nullptr,
           {said("mean over rows 1 … of −Σ p ln p")});
      fact(c.ui, said("… without the first token"), say("{} nats", number(h.entropy_without)), nullptr,
           {said("the first key dropped, the rest renormalised")});
    }
    section(c.ui, said("V SHAPE"), said("ends ÷ middle of each layer"));
    for (std::size_t layer = 0; layer < answer->result.layers.size(); ++layer)
      fact(c.ui, say("Layer {}", layer), number(answer->result.layers[layer].v_depth), nullptr,
           {said("the lower of the two ends ÷ mean of the middle half"),
            said("rows of the second half of the text, mean of all heads; 1 = flat")});
    section(c.ui, said("IN EXPLORE"));
    static constexpr const char* first[] = {to_say("first token"), to_say("hidden"), to_say("renormalised")};
    int mode = static_cast<int>(c.state().view.first_token);
    if (segmented(c.ui, "first token mode", first, mode, ImGui::GetContentRegionAvail().x))
      c.editor.view().first_token = static_cast<FirstToken>(mode);
    note(c.ui, said("Maps in Explore with the first token, without it, or with the rest renormalised."));
    selected_head(c);
  }

 private:
  using Reading = ReadingJob<SinkReport>::Reading;

  void heads(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    const double width = std::floor(c.room()), height = std::clamp(room_below(c) * 0.42, 160.0, 420.0);
    const Measure& shown = measures[measure_];
    heads_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", measure_, width, height),
                [answer, &shown, measure = measure_, width, height](const Style& style) {
                  const ModelDims& dims = answer->source.trace->model.dims;
                  std::vector<double> values;
                  for (const SinkHead& h : answer->result.heads) values.push_back(shown.value(h));
                  Matrix m = head_matrix(dims, values);
                  m.unit = said(shown.unit);
                  m.low = 0;
                  if (measure < 2) m.high = 1;
                  m.width = width, m.height = height;
                  return matrix_scene(m, style);
                });
    const SceneTouch touch = wide_scene(c, heads_, "sinks");
    if (!heads_.scene()) return;
    const auto head = head_cells(c, *heads_.scene(), touch);
    if (!head) return;
    if (!answer->source.trace->model.dims.attends(head->layer))
      return tooltip(
          c.ui, {say("Layer {} Head {}", head->layer, head->head), no_weights(*answer->source.trace, head->layer)});
    const BehindHeads behind = behind_heads(answer->source.model.model->config());
    for (const SinkHead& h : answer->result.heads)
      if (h.id == *head)
        tooltip(c.ui, {say("Layer {} Head {}", h.id.layer, h.id.head),
                       say("weight {:.3f} (chance {:.3f}), carries {:.3f} of its output", h.mass, h.chance, h.carried),
                       say("‖v‖ {:.3f}, median elsewhere {:.3f}", h.value_norm, h.value_median),
                       measure_ == 1 ? carried_formula(behind) : said(shown.formula)});
  }

  void shape(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    section(c.ui, said("ATTENTION BY PLACE IN THE ROW"),
            answer->result.ahead ? said("first token left, last token right; high at both ends = a V")
                                 : said("first token left, the query itself right; high at both ends = a V"));
    const double width = std::floor(c.room()), height = std::clamp(room_below(c) * 0.5, 110.0, 220.0);
    chart_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height), [answer, width, height](const Style& style) {
      return v_shape_chart(answer->result, width, height, style);
    });
    chart_.draw(c.ui, "v shape", {}, width, height);
  }

  void received(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    section(c.ui, said("RECEIVED BY EACH TOKEN"),
            answer->result.ahead ? said("mean weight over all other rows, mean of the heads")
                                 : said("mean weight over the rows after it, mean of the heads"));
    const double width = std::max(std::floor(c.room()),
                                  60 + 9.0 * static_cast<double>(answer->source.trace->tokens.size())),
                 height = std::max(180.0, room_below(c) - 18);
    tokens_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height),
                 [answer, width, height](const Style& style) {
                   Matrix m;
                   const auto& layers = answer->result.layers;
                   const auto n = static_cast<Index>(answer->source.trace->tokens.size());
                   m.values = Tensor::uninitialized({static_cast<Index>(layers.size()), n});
                   for (std::size_t l = 0; l < layers.size(); ++l) {
                     m.rows.push_back(std::to_string(l));
                     for (Index j = 0; j < n; ++j)
                       m.values.ref(static_cast<Index>(l), j) = static_cast<float>(nth(layers[l].received, j));
                   }
                   for (const float v : m.values.values()) m.pending.push_back(std::isnan(v));
                   m.pending_text = answer->source.trace->model.dims.attends()
                                        ? said("no row after it")
                                        : said("no row after it, or a layer that does not attend");
                   m.tokens = answer->source.trace;
                   m.row_title = said("layer ↓");
                   m.column_title = said("token →");
                   m.unit = said("mean weight received");
                   m.width = width, m.height = height;
                   m.largest_cell = 44;
                   return matrix_scene(m, style);
                 });
    const SceneTouch touch = wide_scene(c, tokens_, "received");
    const auto cell = matrix_cell(touch);
    if (!cell || cell->row >= static_cast<Index>(answer->result.layers.size()) ||
        cell->column >= static_cast<Index>(answer->source.trace->tokens.size()))
      return;
    const SinkLayer& layer = nth(answer->result.layers, cell->row);
    const auto at = static_cast<std::size_t>(cell->column);
    tooltip(
        c.ui,
        {say("{} ({}) in layer {}", token_label(*answer->source.trace, cell->column), cell->column, cell->row),
         say("receives {:.4f}, ‖v‖ {:.3f}, ‖residual stream‖ {:.2f}", layer.received[at], layer.value_norm[at],
             layer.residual[at]),
         answer->result.ahead
             ? said("mean over heads and other rows of hook_pattern; means over heads of ‖hook_v‖; "
                    "‖hook_resid_post‖")
             : said(
                   "mean over heads and later rows of hook_pattern; means over heads of ‖hook_v‖; ‖hook_resid_post‖")});
    if (touch.clicked) c.editor.pin(cell->column);
  }

  ReadingJob<SinkReport> job_{*this, "read.sinks"};
  ReadingSlot heads_{*this, "scene.sinks.heads"}, chart_{*this, "scene.sinks.shape"},
      tokens_{*this, "scene.sinks.tokens"};
  int measure_ = 0;
};

}  // namespace

std::unique_ptr<Page> make_sinks(JobRunner&) {
  return std::make_unique<SinksPage>();
}

}  // namespace headscope
