// The right column of the Generate workspace: how the token at the cursor was chosen, or will be.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/generate/generate_workspace.h"
#include "core/base/words.h"
#include "core/tensor/panels.h"
#include "core/trace/layer_kinds.h"
#include "viz/scene/candidates.h"

namespace headscope {

namespace {

constexpr std::size_t shown_candidates = 14;

CandidatesOptions candidates_of(const GenerationStep& step, bool decided, double width, std::size_t most,
                                const std::function<std::string(std::int32_t)>& label) {
  const TokenDistribution d = token_distribution(step.logits, step.settings);
  CandidatesOptions out;
  out.width = width;
  out.vocabulary = d.ids.size();
  out.kept = d.count;
  const auto candidate = [&](std::size_t i) {
    Candidate c{d.ids[i], label(d.ids[i]), d.plain[i], d.kept[i], Candidate::Cut::none};
    if (i >= d.count)
      c.cut = step.settings.greedy() ? Candidate::Cut::greedy
              : i < d.after_top_k    ? Candidate::Cut::top_p
                                     : Candidate::Cut::top_k;
    return c;
  };
  for (std::size_t i = 0; i < std::min(most, d.ids.size()); ++i) out.first.push_back(candidate(i));
  if (!std::isnan(step.random)) out.random = step.random;
  if (!decided) return out;
  out.chosen = step.token;
  while (d.ids[out.chosen_rank] != step.token) ++out.chosen_rank;
  if (out.chosen_rank >= out.first.size()) out.chosen_far = candidate(out.chosen_rank);
  return out;
}

}  // namespace

std::string bytes_text(std::size_t bytes) {
  return quantity(static_cast<double>(bytes), "B");
}

std::vector<std::string> cache_terms(const ModelDims& dims, int tokens, bool packed, std::size_t source) {
  std::vector<std::string> terms;
  for (const LayerKind& kind : layer_kinds(dims)) {
    const CachedNumbers kept = kept_numbers(kind.dims);
    terms.push_back(say("layers · tokens · ({}) · 4 bytes", said(kept.words)));
    terms.push_back(fmt::format("{} · {} · ({}) · 4", kind.layers, tokens, kept.sum));
    if (kind.mixer == Mixer::state_space)
      terms.push_back(say("and the state, of any length: {}", bytes_text(cache_bytes(kind.dims, 0))));
  }
  if (!dims.any_attends()) return terms;
  if (packed) {
    terms.push_back(say("and keys once more, as products read them, in panels of {} tokens:", panels::width()));
    terms.push_back(said("layers · tokens of whole panels · key heads · d_head · 4 bytes"));
    for (const LayerKind& kind : layer_kinds(dims))
      if (kind.mixer == Mixer::attention)
        terms.push_back(fmt::format("{} · {} · {} · {} · 4", kind.layers, panels::padded(tokens), kind.dims.kv_heads,
                                    kind.dims.d_head));
  }
  if (source > 0) terms.push_back(say("and keys and values of the source, likewise: {}", bytes_text(source)));
  return terms;
}

void GenerateWorkspace::right(const PageContext& c) {
  if (!controller_.prompt())
    return empty_state(c.ui, said("The choice of a token"), said("Its candidates will stand here."));
  switch (study(c.app)) {
    case Study::transcript:
      return choice(c.ui, c.app);
    case Study::beams:
      return beams_facts(c.ui);
    case Study::cost:
      return cost_facts(c.ui);
    case Study::streaming:
      return streaming_facts(c.ui);
    case Study::forcing:
      return forcing_facts(c.ui);
  }
}

void GenerateWorkspace::choice(Ui& ui, AppContext& app) {
  const ToldStep* told = controller_.at_cursor();
  if (!told) {
    section(ui, said("THE CHOICE"), controller_.branch().ended.text());
    if (!controller_.branch().ended.empty()) note(ui, said("Scrub back to look at any step, or fork there."));
    return;
  }
  const bool decided = controller_.cursor() < controller_.branch().steps.size();
  const GenerationStep& step = *told->step;
  section(ui, decided ? say("STEP {}", controller_.cursor() + 1) : said("THE NEXT TOKEN"),
          decided ? said("click a candidate to fork") : said("click a candidate to take it"));
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  const auto most = static_cast<std::size_t>(std::clamp((room - 330) / 23, 5.0, static_cast<double>(shown_candidates)));
  candidates_.want(app.explorer.jobs, ui, told->step, fmt::format("{} {} {}", width, most, decided),
                   [step = told->step, decided, width, most, model = controller_.model()](const Style& style) {
                     const auto label = [&](std::int32_t id) {
                       return model.tokenizer && id < model.tokenizer->vocab_size() ? model.tokenizer->token(id).label
                                                                                    : fmt::format("#{}", id);
                     };
                     return candidates_scene(candidates_of(*step, decided, width, most, label), style);
                   });
  if (const Scene* scene = candidates_.scene()) {
    SceneViewOptions how;
    how.fit_height = false;
    const SceneTouch touch = candidates_.draw(ui, "candidates", how, width, scene->height);
    if (const auto* token = meaning<VocabularyToken>(touch.mark)) {
      const auto& box = std::get<Box>(touch.mark->shape).rect;
      ImGui::GetWindowDrawList()->AddRect(touch.window({box.x, box.y}), touch.window({box.right(), box.bottom()}),
                                          col(ui.theme.accent), ui.px(4));
      if (touch.clicked) return controller_.fork(controller_.cursor(), token->id);
    }
  }
  const std::string by = step.by == GenerationStep::By::given    ? said("given, not drawn")
                         : step.by == GenerationStep::By::greedy ? said("the most probable")
                                                                 : say("seed {}", step.seed);
  section(ui, said("IN NUMBERS"), decided ? by : said("as the settings are now"));
  if (decided) {
    fact(ui, said("Probability"), fmt::format("{:.4f}", told->probability), nullptr,
         {said("softmax of the logits, full vocabulary")});
    fact(ui, said("Rank"), say("{} of {}", told->rank + 1, step.logits.dim(0)));
  }
  fact(ui, said("Entropy of the model"), say("{:.3f} nats", told->entropy), nullptr,
       {said("−Σ p ln p of softmax(logits)")});
  fact(ui, said("… of what is drawn from"), say("{:.3f} nats", told->entropy_kept), nullptr,
       {said("the same after temperature, top-k and top-p")});
  fact(ui, said("Tokens not cut"), say("{} of {}", told->kept, step.logits.dim(0)));
  fact(ui, said("Positions read"), say("{} of {}", step.computed, step.length), nullptr,
       {said("1: the cache held the others"),
        said("all: an edit looks ahead, so that each step reads the whole prefix")});
  fact(ui, said("Time of the pass"), fmt::format("{:.2f} ms", step.milliseconds));
  const ModelDims& dims = controller_.model().model->config().dims;
  const bool cached = step.cache_bytes > 0;
  fact(ui, !dims.attends() ? said("State and rows after it") : said("KV cache after it"),
       cached ? bytes_text(step.held_bytes()) : said("none"), nullptr,
       cached ? cache_terms(dims, step.length, step.panel_bytes > 0, step.source_bytes) : std::vector<std::string>());
}

}  // namespace headscope
