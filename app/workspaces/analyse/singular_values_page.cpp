// Transformer²: the singular values of a weight matrix, scaled by a vector z, with what the model then answers.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/state/answer.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/next_panel.h"
#include "app/workspaces/scene_slot.h"
#include "core/analysis/singular_tuning.h"
#include "core/attention/mechanisms/spectrum.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/singular_edit.h"
#include "core/model/weights.h"
#include "core/tensor/singular.h"
#include "viz/color/color_norm.h"
#include "viz/scene/head_pair.h"
#include "viz/scene/singular_values.h"

namespace headscope {

namespace {

constexpr double largest_z = 3;
constexpr int most_steps = 400;
constexpr double pixels_per_z = 90;  // of a drag over a bar

class SingularValuesPage final : public Page {
 public:
  explicit SingularValuesPage(JobRunner& jobs) : tuning_(jobs, "singular tuning", to_say("learning")) {}

  void middle(const PageContext& c) override {
    if (!c.results().model.model) return nothing_open(c);
    keep_up(c);
    if (!current(c))
      return empty_state(c.ui, said("Decomposing the matrix"), said("Once for each matrix; then every z is quick."));
    const double room = room_left(c);
    spectrum(c, std::clamp(0.36 * room, 160.0, 320.0));
    if (!c.trace())
      return empty_state(c.ui, said("There is no text yet"), said("Write a prompt in Explore: its maps show here."));
    // What the model answers, and beside it what its heads do; below it where maps would have no room.
    constexpr double side_by_side = 900;
    if (c.room() < side_by_side) {
      next_.answer(c);
      return maps(c);
    }
    if (!ImGui::BeginTable("answer and maps", 2, ImGuiTableFlags_NoSavedSettings)) return;
    ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 0.42f);
    ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 0.58f);
    ImGui::TableNextColumn();
    next_.answer(c);
    ImGui::TableNextColumn();
    maps(c);
    ImGui::EndTable();
  }

  void controls(ControlsRecord& r) override {
    r.field("layer", layer_, 0, most_layers);
    r.field("matrix", matrix_, static_cast<WeightMatrix>(weight_matrix_count - 1));
    r.field("split", split_, 0, 1 << 20);
    r.field("learning_steps", steps_, 1, most_steps);
    r.field("value", chosen_, 0, 1 << 20);
  }
  void right(const PageContext& c) override {
    if (!c.results().model.model) return;
    choice(c);
    if (!current(c)) return;
    groups(c);
    one(c);
    learn(c);
    numbers(c);
    if (c.trace()) next_.details(c);
    look_for(c);
  }

  void each_frame(JobRunner& jobs, const Results& results, bool shown) override {
    tuning_.frame();
    if (shown || !answer_.asked() || answer_.asked()->model == results.model.model) return;
    answer_.let_go(jobs);  // of a model that is not open any more
    slot_.let_go(jobs);
  }

 private:
  /// A matrix.
  struct Key {
    std::shared_ptr<const Model> model;
    int layer = 0;
    WeightMatrix matrix = WeightMatrix::v;
    bool operator==(const Key&) const = default;
  };
  /// What is known of it.
  struct Known {
    std::shared_ptr<const SingularDirections> singular;
    Index in = 0, out = 0;
  };

  static double room_left(const PageContext& c) {
    return static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale);
  }
  bool current(const PageContext& c) const {
    return answer_.last() && answer_.last_key() == Key{c.results().model.model, layer_, matrix_};
  }
  const Known& known() const { return *answer_.last(); }
  std::size_t count() const { return known().singular->values.size(); }

  /// Decomposes on the worker what is not known yet; the model keeps it.
  void keep_up(const PageContext& c) {
    const auto model = c.results().model.model;
    layer_ = std::clamp(layer_, 0, model->config().dims.layers - 1);
    for (const WeightMatrix other : {WeightMatrix::v, WeightMatrix::o})  // a state space has no W_V
      if (!model->projection(layer_, matrix_).weight.defined()) matrix_ = other;
    const Key key{model, layer_, matrix_};
    answer_.want(c.jobs, key, [key](const Ctx&) {
      const Tensor weight = key.model->projection(key.layer, key.matrix).weight;
      return Known{key.model->singular(key.layer, key.matrix), weight.dim(0), weight.dim(1)};
    });
    if (current(c)) chosen_ = std::clamp<Index>(chosen_, 0, static_cast<Index>(count()) - 1);
  }

  // ---- the edit
  std::vector<Intervention>::const_iterator own_edit(const std::vector<Intervention>& edits) const {
    return std::ranges::find_if(edits, [&](const Intervention& edit) {
      const auto* scale = edit.action.as<ScaleSingular>();
      return scale && scale->matrix == matrix_ && edit.target == HeadTarget{layer_, {}, {}};
    });
  }
  std::vector<double> z_of(const PageContext& c) const {
    const auto& edits = c.state().document.edits;
    const auto found = own_edit(edits);
    return found == edits.end() || !found->enabled ? std::vector<double>(count(), 1.0)
                                                   : found->action.as<ScaleSingular>()->vector(count());
  }
  void put(const PageContext& c, const std::vector<double>& z) const {
    std::vector<Intervention> edits = c.state().document.edits;
    const auto found = own_edit(edits);
    const bool same = std::ranges::all_of(z, [](double each) { return each == 1; });
    const Intervention edit{{layer_, {}, {}}, ScaleSingular::of(matrix_, z)};
    if (found == edits.end()) {
      if (same) return;
      edits.push_back(edit);
    } else {
      const auto at = edits.begin() + (found - edits.cbegin());
      if (same)
        edits.erase(at);
      else
        *at = edit;
    }
    c.editor.set_edits(std::move(edits));
  }
  static double rounded(double z) { return std::round(z * 100) / 100; }

  // ---- the right column
  void choice(const PageContext& c) {
    const auto& model = c.results().model.model;
    section(c.ui, said("MATRIX"));
    double layer = layer_;
    if (model->config().dims.layers > 1 &&
        slider(c.ui, to_say("Layer"), layer,
               {0, static_cast<double>(model->config().dims.layers - 1), 0, false, "", 0}))
      layer_ = static_cast<int>(std::lround(layer));
    std::vector<WeightMatrix> there;
    std::vector<std::string> names;
    for (int each = 0; each < weight_matrix_count; ++each) {
      const auto matrix = static_cast<WeightMatrix>(each);
      if (!model->projection(layer_, matrix).weight.defined()) continue;
      there.push_back(matrix);
      names.emplace_back(symbol_of(matrix));
    }
    std::vector<const char*> labels;
    for (const std::string& name : names) labels.push_back(name.c_str());
    int chosen = static_cast<int>(std::ranges::find(there, matrix_) - there.begin());
    if (segmented(c.ui, "matrix", labels, chosen, ImGui::GetContentRegionAvail().x)) matrix_ = nth(there, chosen);
  }

  void groups(const PageContext& c) {
    section(c.ui, said("GROUPS"), said("the largest values, and all others"));
    std::vector<double> z = z_of(c);
    const auto size = static_cast<double>(count());
    double split = std::clamp(static_cast<double>(split_), 0.0, size);
    if (slider(c.ui, to_say("Largest k"), split, {0, size, std::round(size / 4), false, "", 0}))
      split_ = static_cast<int>(std::lround(split));
    split_ = std::clamp(split_, 0, static_cast<int>(count()));
    const auto part = [&](const char* name, std::size_t begin, std::size_t end) {
      ImGui::BeginDisabled(begin == end);
      double value = begin == end ? 1
                                  : std::accumulate(z.begin() + static_cast<std::ptrdiff_t>(begin),
                                                    z.begin() + static_cast<std::ptrdiff_t>(end), 0.0) /
                                        static_cast<double>(end - begin);
      if (slider(c.ui, name, value, {0, largest_z, 1, false, "", 2}) && begin < end) {
        std::fill(z.begin() + static_cast<std::ptrdiff_t>(begin), z.begin() + static_cast<std::ptrdiff_t>(end), value);
        put(c, z);
      }
      if (ImGui::IsItemHovered())
        tooltip(c.ui, {say("z of σ {} … {}", begin + 1, end), said("the mean of them while they differ"),
                       said("double click: 1")});
      ImGui::EndDisabled();
    };
    const auto k = static_cast<std::size_t>(split_);
    part(to_say("k largest × z"), 0, k);
    part(to_say("Others × z"), k, count());
    if (button(c.ui, to_say("Low rank k"), c.ui.px(26))) {
      std::fill(z.begin(), z.end(), 0.0);
      std::fill(z.begin(), z.begin() + split_, 1.0);
      c.editor.history().close_step();
      put(c, z);
    }
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {say("The nearest matrix of rank {}", split_), said("z = 1 for the largest k, 0 for all others")});
    ImGui::SameLine();
    const auto& edits = c.state().document.edits;
    ImGui::BeginDisabled(own_edit(edits) == edits.end());
    if (button(c.ui, to_say("As trained"), c.ui.px(26))) {
      c.editor.history().close_step();
      put(c, std::vector<double>(count(), 1.0));
    }
    ImGui::EndDisabled();
  }

  void one(const PageContext& c) {
    section(c.ui, said("ONE VALUE"), said("or drag a bar up and down"));
    double at = static_cast<double>(chosen_ + 1);
    if (count() > 1 && slider(c.ui, to_say("Value i"), at, {1, static_cast<double>(count()), 1, false, "", 0}))
      chosen_ = static_cast<Index>(std::lround(at)) - 1;
    chosen_ = std::clamp<Index>(chosen_, 0, static_cast<Index>(count()) - 1);
    std::vector<double> z = z_of(c);
    double& value = nth(z, chosen_);
    if (slider(c.ui, to_say("z of it"), value, {0, largest_z, 1, false, "", 2})) put(c, z);
  }

  /// The expert of the text on screen: z of this matrix in every layer, by gradient.
  void learn(const PageContext& c) {
    if (!c.results().run) return;
    section(c.ui, said("LEARN z"), say("{} of every layer, on this text", symbol_of(matrix_)));
    try {
      SingularLearner::check(c.results().model.model->config(), {matrix_});
    } catch (const Error& refusal) {
      note(c.ui, refusal.what());
      return;
    }
    double steps = steps_;
    if (slider(c.ui, to_say("Steps"), steps, {1, most_steps, 40, true, "", 0}))
      steps_ = static_cast<int>(std::lround(steps));
    SingularTuningAsked asked;
    asked.run = c.results().run->request;
    asked.run.edits.clear();
    asked.matrices = {matrix_};
    asked.steps = steps_;
    if (sweep_controls(c, tuning_, to_say("steps"), learnt_ && !(learnt_->asked == asked), std::nan("")))
      tuning_.start(std::make_shared<SingularTuner>(c.results().model, asked),
                    [this](std::shared_ptr<const SingularTuning> known) { learnt_ = std::move(known); });
    if (!learnt_ || learnt_->losses.empty() || learnt_->asked.run.model != asked.run.model) return;
    fact(c.ui, said("Loss on its text"),
         fmt::format("{:.3f} → {:.3f}", learnt_->losses.front(), learnt_->losses.back()), nullptr,
         {learnt_->losses.size() > static_cast<std::size_t>(learnt_->asked.steps)
              ? said("nats per token, before the first step and after the last one")
              : said("nats per token, before the first step and before the newest one"),
          said("of the model without edits; ∂L/∂z_i = σ_i u_iᵀ (∂L/∂W) v_i, Adam")});
    if (tuning_.running()) return;
    if (button(c.ui, to_say("Put it among the edits"), c.ui.px(26))) {
      std::vector<Intervention> edits = c.state().document.edits;
      const WeightMatrix of = learnt_->asked.matrices.front();
      std::erase_if(edits, [&](const Intervention& edit) {
        const auto* scale = edit.action.as<ScaleSingular>();
        return scale && scale->matrix == of && !edit.target.positions;
      });
      for (const Intervention& edit : expert_edits(learnt_->expert)) edits.push_back(edit);
      c.editor.history().close_step();
      c.editor.set_edits(std::move(edits));
    }
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {said("An expert of Transformer²: a z for each of its matrices"),
                     said("compare it with another text in Explore")});
  }

  void numbers(const PageContext& c) const {
    const std::vector<double> z = z_of(c);
    const std::vector<double>& sigma = known().singular->values;
    std::vector<double> scaled;
    double moved = 0, all = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      scaled.push_back(std::abs(z[i]) * sigma[i]);
      moved += (z[i] - 1) * (z[i] - 1) * sigma[i] * sigma[i];
      all += sigma[i] * sigma[i];
    }
    std::ranges::sort(scaled, std::ranges::greater{});
    const std::string name(symbol_of(matrix_));
    section(c.ui, name, say("layer {}, {} × {}", layer_, known().in, known().out));
    const auto arrow = [](const std::string& before, const std::string& after) {
      return before == after ? before : before + " → " + after;
    };
    fact(c.ui, said("Largest σ"), arrow(fmt::format("{:.3g}", sigma.front()), fmt::format("{:.3g}", scaled.front())),
         nullptr, {said("the most that the matrix stretches a vector"), say("σ₁ of {}, F32, decomposed in F64", name)});
    fact(c.ui, said("Rank for 90 % energy"),
         arrow(std::to_string(energy_rank(sigma, 0.9)), std::to_string(energy_rank(scaled, 0.9))), nullptr,
         {said("fewest singular values whose squares sum to 90 % of all squares"), say("of {}", count())});
    fact(c.ui, "‖W′ − W‖ ÷ ‖W‖", fmt::format("{:.3g}", all > 0 ? std::sqrt(moved / all) : 0), nullptr,
         {said("√(Σ (z − 1)² σ² ÷ Σ σ²), the Frobenius norm")});
    fact(c.ui, said("Numbers in z"), say("{} for {}", count(), known().in * known().out), nullptr,
         {said("what singular value fine-tuning trains, and what the matrix holds"),
          said("min(in, out) of in · out; U and V stay as they are")});
  }

  void look_for(const PageContext& c) const {
    section(c.ui, said("WHAT TO LOOK FOR"));
    const std::vector<double> z = z_of(c);
    const EditEffect* effect = compared(c);
    if (std::ranges::all_of(z, [](double each) { return each == 1; }))
      return note(c.ui, say("{} of {} values hold 90 % of {}'s energy. Take the others away (Low rank k) and see how "
                            "much of the answer stays; then take the largest ones.",
                            energy_rank(known().singular->values, 0.9), count(), symbol_of(matrix_)));
    if (!effect || c.state().document.edits != c.results().run->request.edits) return;
    const bool alone = c.state().document.edits.size() == 1;
    note(c.ui, alone ? say("This z changes the answer's distribution by {:.3g} nats (KL). Transformer² trains one such "
                           "z for each task and mixes them; U and V never move.",
                           effect->change.kl)
                     : say("This z, with the other edits, changes the answer's distribution by {:.3g} nats (KL). "
                           "Transformer² trains one such z for each task and mixes them; U and V never move.",
                           effect->change.kl));
  }

  // ---- the middle
  void spectrum(const PageContext& c, double height) {
    const std::vector<double> z = z_of(c);
    const double width = std::floor(c.room());
    std::string key = fmt::format("{} {} {} ", width, height, chosen_);
    for (const double each : z) key += fmt::format("{} ", each);
    slot_.want(c.jobs, c.ui, answer_.last(), key,
               [known = answer_.last(), z, chosen = chosen_, width, height](const Style& style) {
                 return singular_values_scene({known->singular->values, z, chosen, width, height}, style);
               });
    SceneViewOptions how;
    how.tooltips = false;
    const SceneTouch touch = slot_.draw(c.ui, "singular values", how, width, height);
    const Scene* scene = slot_.scene();
    if (!scene) return;
    const auto rect = [&](const char* name) -> const Rect* {
      const Mark* mark = find(*scene, name);
      return mark ? &std::get<Box>(mark->shape).rect : nullptr;
    };
    const Rect *values = rect("values"), *scales = rect("z");
    if (!values || !scales) return;
    drag(c, touch, *values, *scales, z);
  }

  /// A press takes the bar under the pointer; up and down then change its z until the button is let go. Double click
  /// puts 1 back.
  void drag(const PageContext& c, const SceneTouch& touch, const Rect& values, const Rect& scales,
            std::vector<double> z) {
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) held_.reset();
    const auto inside = [&](const Rect& r) {
      return touch.at.x >= r.x && touch.at.x < r.right() && touch.at.y >= r.y && touch.at.y <= r.bottom();
    };
    if (held_) {
      const double moved = (held_->y - static_cast<double>(ImGui::GetMousePos().y)) / static_cast<double>(c.ui.scale);
      const double now = std::clamp(rounded(held_->z + moved / pixels_per_z), 0.0, largest_z);
      auto& own = nth(z, held_->index);
      if (std::abs(moved) > 2 && own != now) own = now, put(c, z);
      tooltip(c.ui, {say("z of σ {}: {:.2f}", held_->index + 1, own)});
      return;
    }
    if (!touch.hovered || !(inside(values) || inside(scales))) return;
    const auto index =
        std::min<Index>(static_cast<Index>((touch.at.x - values.x) / values.w * static_cast<double>(count())),
                        static_cast<Index>(count()) - 1);
    const double sigma = nth(known().singular->values, index), own = nth(z, index);
    tooltip(c.ui, {own == 1 ? fmt::format("σ {} = {:.4g}", index + 1, sigma)
                            : say("σ {} = {:.4g}, times {:.2f} = {:.4g}", index + 1, sigma, own, own * sigma),
                   say("of {}, layer {}, F32, decomposed in F64", symbol_of(matrix_), layer_),
                   said("drag up or down: z; double click: 1")});
    if (touch.double_clicked) {
      nth(z, index) = 1;
      c.editor.history().close_step();
      return put(c, z);
    }
    if (!touch.pressed) return;
    chosen_ = index;
    held_ = Held{index, own, static_cast<double>(ImGui::GetMousePos().y)};
  }

  void maps(const PageContext& c) {
    const EditEffect* effect = compared(c);
    const HeadId head = c.state().document.selected;
    if (!c.results().map(head)) return;
    section(c.ui, say("LAYER {} · HEAD {}", head.layer, head.head),
            effect ? said("before → after all edits; arrow keys change the head")
                   : said("as it is; arrow keys change the head"));
    const double width = std::floor(c.room()), height = std::max(room_left(c) - 4, 250.0);
    // Labels of tokens and the colour bars take their part.
    const double plot = std::clamp(std::min((width - 130) / 3, height - 130), 60.0, 340.0);
    const auto after = effect ? effect->after : c.results().run->trace;
    const auto before = effect ? effect->before : after;
    const std::shared_ptr<const void> source = effect ? std::shared_ptr<const void>(c.results().effect) : after;
    pair_.want(c.jobs, c.ui, source, fmt::format("{} {} {}", head.layer, head.head, plot),
               [before, after, head, plot](const Style& style) {
                 std::vector<int> partner(before->tokens.size());
                 std::iota(partner.begin(), partner.end(), 0);
                 HeadPairOptions o;
                 o.head = head;
                 o.name_a = said("before"), o.name_b = said("after");
                 o.partner = partner;
                 o.plot = plot;
                 o.bare = true;
                 return head_pair_scene(*before, *after, o, style);
               });
    SceneViewOptions how;
    how.centered = true;
    pair_.draw(c.ui, "singular maps", how, width, std::max(height, 120.0));
  }

  struct Held {
    Index index = 0;
    double z = 1, y = 0;  // when the button went down
  };

  int layer_ = 0, split_ = 8;
  WeightMatrix matrix_ = WeightMatrix::v;
  Index chosen_ = 0;
  std::optional<Held> held_;
  Answer<Key, Known> answer_{{"singular", to_say("taking singular values")}, Holds::numbers};
  SceneSlot slot_{"scene.singular"}, pair_{"scene.singular.maps"};
  NextPanel next_;
  SweepController tuning_;
  std::shared_ptr<const SingularTuning> learnt_;
  int steps_ = 40;
};

}  // namespace

std::unique_ptr<Page> make_singular_values(JobRunner& jobs) {
  return std::make_unique<SingularValuesPage>(jobs);
}

}  // namespace headscope
