// Which expert took which token, in layers whose MLP is several, and how evenly they share the tokens out.

#include "core/analysis/expert_routing.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/render/expert_pictures.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/experts.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

class ExpertsPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    if (!c.results().model.model) return no_reading_yet(c);
    if (!has_experts(c)) return no_experts(c);
    const Model& model = *c.results().model.model;
    job_.want(c, expert_routing_sites(model), "", [](const ReadingSource& source, const Ctx&) {
      return read_expert_routing(*source.model.model, *source.trace);
    });
    if (!job_.answer()) return no_reading_yet(c);
    static constexpr const char* views[] = {to_say("Tokens of a layer"), to_say("All layers")};
    segmented(c.ui, "experts view", views, view_);
    ImGui::Dummy({0, c.ui.px(4)});
    view_ == 0 ? tokens(c) : layers(c);
  }

  void controls(ControlsRecord& r) override {
    r.choice("view", view_, 1);
    r.field("layer", layer_, 0, most_layers);
    r.field("capacity", capacity_, 0.25, 4);
  }

  void right(const PageContext& c) override {
    const auto answer = job_.answer();
    if (!answer || !has_experts(c)) return;
    section(c.ui, said("BLOCK"));
    layer_control(c, layer_);
    position_control(c, said("whose experts are listed"));
    const RoutingReport& report = answer->result;
    const ExpertRouting& routing = shown(report);
    if (routing.layer != layer_)
      note(c.ui, say("Layer {} has one MLP for every token; shown is layer {}, the next that has experts.", layer_,
                     routing.layer));
    const Index row = std::min(pinned_row(c, *answer->source.trace), routing.weights.dim(0) - 1);
    router(c, *answer, routing, row);
    section(c.ui, said("LOAD"), say("layer {}, even share in grey", routing.layer));
    const std::string even = fmt::format("{:.2f} %", 100 * report.chance);
    const auto busiest = std::ranges::max_element(routing.load) - routing.load.begin();
    fact(c.ui, say("Most: expert {}", busiest), fmt::format("{:.2f} %", 100 * nth(routing.load, busiest)), nullptr,
         {said("tokens that it took ÷ (tokens · experts per token)")}, &even);
    fact(c.ui, said("Without a token"), std::to_string(std::ranges::count(routing.tokens, 0)), nullptr,
         {say("of {} experts, on this text", report.experts)});
    const std::string all = std::to_string(report.experts);
    fact(c.ui, said("As many as even work takes"), fmt::format("{:.1f}", routing.used), nullptr,
         {said("exp of the entropy of the loads")}, &all);
    fact(c.ui, said("Balance (even 1)"), fmt::format("{:.3f}", routing.balance), nullptr,
         {said("E Σ load · mean router probability: 1 where even"),
          said("Fedus et al. 2022: what the auxiliary loss holds down")});
    shared(c, routing);
    section(c.ui, said("WITH A CAPACITY"), said("framed: dropped"));
    slider(c.ui, to_say("Capacity factor"), capacity_, {0.25, 4, 1.25, true, "×", 2});
    const DroppedTokens dropped = dropped_tokens(routing, capacity_);
    const Index places = std::accumulate(routing.tokens.begin(), routing.tokens.end(), Index{0});
    fact(c.ui, said("An expert takes"), dropped.capacity == 1 ? said("1 token") : say("{} tokens", dropped.capacity),
         nullptr,
         {say("⌈{:.2f} · {} ÷ {}⌉: factor · tokens · experts per token ÷ experts", capacity_, places, report.experts),
          "Fedus et al. 2022, § 2.2"});
    fact(c.ui, said("Dropped"), say("{} of {} places", dropped.places.size(), places), nullptr,
         {said("later tokens of experts that are full, in the order of the text")});
    fact(c.ui, said("Without any expert"), dropped.whole == 1 ? said("1 token") : say("{} tokens", dropped.whole),
         nullptr, {said("the residual stream alone carries them past this layer")});
    note(c.ui, said("Counted, not run: this model was run without a capacity, as it is meant to be."));
  }

 private:
  using Reading = ReadingJob<RoutingReport>::Reading;

  static bool has_experts(const PageContext& c) {
    return c.results().model.model && c.results().model.model->config().experts.anywhere();
  }
  static void no_experts(const PageContext& c) {
    if (empty_state(c.ui, said("This model has no experts"),
                    said("Every token goes through the one MLP of each layer. Mixtral, Qwen 3 MoE, OLMoE, GPT-OSS and "
                         "DeepSeek have several, and so has the small model that comes with the program:"),
                    to_say("Open tiny-mixtral")))
      c.app.explorer.files.open_example("tiny-mixtral");
  }

  /// What the router makes of one token, step by step: a logit for every expert, softmax, the largest, their weights.
  static void router(const PageContext& c, const Reading& reading, const ExpertRouting& routing, Index row) {
    constexpr std::size_t most = 8;
    const ExpertConfig& config = reading.source.model.model->config().experts;
    const bool softmax = config.score == RouterScore::softmax;
    section(c.ui, said("ROUTER"), token_label(*reading.source.trace, row));
    {
      const UseFont font(c.ui, c.ui.small());
      paragraph(c.ui, softmax ? said("logit · softmax → weight") : said("logit → weight"), c.ui.theme.muted);
    }
    std::vector<Index> order(static_cast<std::size_t>(reading.result.experts));
    std::iota(order.begin(), order.end(), Index{0});
    const auto weight = [&](Index e) { return static_cast<double>(routing.weights.at(row, e)); };
    const auto logit = [&](Index e) { return static_cast<double>(routing.logits.at(row, e)); };
    std::ranges::stable_sort(
        order, [&](Index a, Index b) { return weight(a) != weight(b) ? weight(a) > weight(b) : logit(a) > logit(b); });
    const std::vector<double> probability = router_probabilities(routing.logits, row);
    order.resize(std::min(order.size(), std::max(most, static_cast<std::size_t>(reading.result.per_token))));
    for (const Index e : order) {
      const bool taken = weight(e) != 0;
      const std::string share = softmax ? fmt::format(" · {:.3f}", nth(probability, e)) : "";
      fact(c.ui, say("Expert {}", e),
           fmt::format("{:+.2f}{} → {}", logit(e), share, taken ? fmt::format("{:.3f}", weight(e)) : said("not taken")),
           taken ? nullptr : &c.ui.theme.muted,
           {fmt::format("{}[{}, {}] = {:.4f}", name(Site{SiteKind::router_logits, routing.layer}), row, e, logit(e)),
            fmt::format("{}[{}, {}] = {:.4f}", name(Site{SiteKind::router_weights, routing.layer}), row, e, weight(e)),
            config.renormalized ? said("the weights of those taken are divided by their sum")
                                : said("the weights are as they are")});
    }
  }

  /// Whether experts go by what a token is.
  static void shared(const PageContext& c, const ExpertRouting& routing) {
    section(c.ui, said("EXPERTS IN COMMON"), said("chance in grey"));
    const auto share = [](double of) { return std::isnan(of) ? std::string("–") : fmt::format("{:.0f} %", 100 * of); };
    const std::string chance = share(routing.shared.any);
    fact(c.ui, said("The same token again"), share(routing.shared.same), nullptr,
         {say("experts that took both ÷ experts of a token, mean over {} pairs", routing.shared.same_pairs),
          said("chance: of any two tokens of the text")},
         &chance);
    fact(c.ui, said("One behind the other"), share(routing.shared.next), nullptr,
         {said("the same of every token and the one behind it"), "Jiang et al. 2024, § 5"}, &chance);
  }

  /// The layer that is chosen, or the next that has experts.
  const ExpertRouting& shown(const RoutingReport& report) const {
    for (const ExpertRouting& each : report.layers)
      if (each.layer >= layer_) return each;
    return report.layers.back();
  }

  void tokens(const PageContext& c) {
    const auto answer = job_.answer();
    const ExpertRouting& routing = shown(answer->result);
    const double width = std::max(std::floor(c.room()), 64 + 17.0 * static_cast<double>(routing.weights.dim(0))),
                 room = room_below(c);
    section(c.ui, said("WHICH EXPERT TOOK WHICH TOKEN"), say("layer {} · click pins the token", routing.layer));
    matrix_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", routing.layer, width, room),
                 [answer, &routing, width, height = std::max(room * 0.5, 160.0)](const Style& style) {
                   Matrix matrix = routing_matrix(answer->result, routing, answer->source.trace);
                   matrix.width = width, matrix.height = height;
                   matrix.largest_cell = 48;
                   Scene scene = matrix_scene(matrix, style);
                   if (scene.width <= width) return scene;
                   matrix.width = 2 * width - scene.width;  // the last words lean over the edge
                   return matrix_scene(matrix, style);
                 });
    const Index pinned = pinned_row(c, *answer->source.trace);
    const SceneTouch touch = wide_scene(c, matrix_, "routing", [&](const Scene& scene, const SceneTouch& at) {
      frame_column(c, scene, at, pinned, c.ui.theme.accent);
      for (const auto& [token, expert] : dropped_tokens(routing, capacity_).places)
        frame_cell(c, scene, at, {expert, token}, c.ui.theme.key);
      name_cells(c, scene, at, [](Index e, Index token) { return fmt::format("Expert {} Token {}", e, token); });
    });
    if (const auto cell = matrix_cell(touch);
        cell && cell->row < routing.weights.dim(1) && cell->column < routing.weights.dim(0)) {
      const float weight = routing.weights.at(cell->column, cell->row);
      tooltip(
          c.ui,
          {weight != 0 ? say("expert {} took {}: weight {:.4f}", cell->row,
                             token_word(*answer->source.trace, cell->column), weight)
                       : say("expert {} did not take {}", cell->row, token_word(*answer->source.trace, cell->column)),
           fmt::format("{}[{}, {}]", name(Site{SiteKind::router_weights, routing.layer}), cell->column, cell->row)});
      if (touch.clicked) c.editor.pin(cell->column);
    }
    if (!matrix_.scene()) return;  // whose height says how much is left
    section(c.ui, said("WHAT EACH EXPERT TOOK"), said("its load beside the even share, and its tokens"));
    const double list_width = std::floor(c.room()), list_height = std::max(room_below(c) - 18, 110.0);
    list_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", routing.layer, list_width, list_height),
               [answer, &routing, list_width, list_height](const Style& style) {
                 return load_scene(answer->result, routing, *answer->source.trace, list_width, list_height, style);
               });
    wide_scene(c, list_, "load");
  }

  void layers(const PageContext& c) {
    const auto answer = job_.answer();
    const double width = std::max(std::floor(c.room()), 80 + 14.0 * answer->result.experts),
                 height = std::max(room_below(c) - 40, 160.0);
    section(c.ui, said("LOAD IN EVERY LAYER"), said("times the even share · click chooses the layer"));
    loads_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height), [answer, width, height](const Style& style) {
      Matrix matrix = load_matrix(answer->result);
      matrix.width = width, matrix.height = height;
      return matrix_scene(matrix, style);
    });
    const SceneTouch touch = wide_scene(c, loads_, "loads", [&](const Scene& scene, const SceneTouch& at) {
      name_cells(c, scene, at, [&](Index row, Index e) {
        return fmt::format("Layer {} Expert {}", nth(answer->result.layers, row).layer, e);
      });
    });
    const auto cell = matrix_cell(touch);
    if (!cell || cell->row >= static_cast<Index>(answer->result.layers.size()) ||
        cell->column >= answer->result.experts)
      return;
    const ExpertRouting& routing = nth(answer->result.layers, cell->row);
    tooltip(c.ui,
            {say("layer {} expert {}: {} tokens, {:.2f} % of the load (even {:.2f} %)", routing.layer, cell->column,
                 nth(routing.tokens, cell->column), 100 * nth(routing.load, cell->column), 100 * answer->result.chance),
             say("{:.2f} % of the weight", 100 * nth(routing.weight, cell->column))});
    if (touch.clicked) layer_ = routing.layer, view_ = 0;
  }

  double capacity_ = 1.25;
  int view_ = 0, layer_ = 0;
  ReadingJob<RoutingReport> job_{*this, "read.experts"};
  ReadingSlot matrix_{*this, "scene.experts.tokens"}, list_{*this, "scene.experts.load"},
      loads_{*this, "scene.experts.layers"};
};

}  // namespace

std::unique_ptr<Page> make_experts(JobRunner&) {
  return std::make_unique<ExpertsPage>();
}

}  // namespace headscope
