// Transformer² in two passes: experts learnt for several tasks, what each costs or gains elsewhere, what a prompt
// chooses, and what the model then answers.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/self_adaptation_pictures.h"
#include "app/state/answer.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/scene_slot.h"
#include "core/analysis/singular_tuning.h"
#include "core/analysis/two_passes.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {

enum class ChosenBy { prompt, classifier, shots };
constexpr int most_expert_steps = 400;

class SelfAdaptationPage final : public Page {
 public:
  explicit SelfAdaptationPage(JobRunner& jobs) : learning_(jobs, "self adaptation", to_say("learning experts")) {}

  void middle(const PageContext& c) override {
    if (!c.results().model.model) return nothing_open(c);
    if (const std::string refusal = refusal_of_experts(c); !refusal.empty())
      return empty_state(c.ui, said("This model learns no experts"), refusal);
    if (sweep_shown(c, learning_, stale(c))) start(c);
    if (!of_open_model(c))
      return empty_state(c.ui,
                         learning_.running() ? said("Drawing texts and taking singular values")
                                             : said("No expert has been learnt yet"),
                         said("Press Start on the right: an expert for each task, and what chooses between them."));
    const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale);
    constexpr double passes_take = 275;  // seven bars with their heading
    const double height = std::clamp(room - passes_take, 220.0, 640.0);
    if (c.room() < 700) {  // names of tasks and of rows need all of the width
      losses(c, height);
      passes(c);
      experts(c, 520);
    } else {
      if (ImGui::BeginTable("experts and z", 2, ImGuiTableFlags_NoSavedSettings)) {
        ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 0.4f);
        ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 0.6f);
        ImGui::TableNextColumn();
        losses(c, height);
        ImGui::TableNextColumn();
        experts(c, height);
        ImGui::EndTable();
      }
      passes(c);
    }
  }

  void right(const PageContext& c) override {
    if (!c.results().model.model || !refusal_of_experts(c).empty()) return;
    learn(c);
    if (!of_open_model(c)) return;
    choose_by(c);
    measured(c);
    tasks(c);
    look_for(c);
  }

  void controls(ControlsRecord& r) override {
    r.field("steps", steps_, 1, most_expert_steps);
    r.field("by", by_, ChosenBy::shots);
    r.field("task", task_, 0, 25);
  }

  void each_frame(JobRunner& jobs, const Results& results, bool shown) override {
    learning_.frame();
    if (shown || !first_.asked() || first_.asked()->model == results.model.model) return;
    first_.let_go(jobs);  // of a model that is not open any more
    losses_.let_go(jobs), z_.let_go(jobs);
  }

 private:
  /// What is chosen for the text on screen, and what comes of it.
  struct Passes {
    FirstPass first;
    std::size_t chosen = 0;  // 0: the model itself, 1 + k: expert k; of a mixture that of the largest weight
    std::vector<Intervention> edits;
    struct Next {
      std::int32_t id;
      double before, after;
    };
    std::vector<Next> next;
    double before = 0, after = 0;  // mean loss of the text
  };
  struct Key {
    std::shared_ptr<const Model> model;
    std::shared_ptr<const ExpertSet> set;
    RunRequest prompt;
    ChosenBy by = ChosenBy::prompt;
    std::vector<double> mixture;
    bool operator==(const Key&) const = default;
  };

  bool of_open_model(const PageContext& c) const { return found_ && of_ == c.results().model_reading; }
  std::string name_of_expert(std::size_t e) const { return said(e ? found_->tasks[e - 1].name : to_say("no expert")); }
  std::size_t task() const { return std::min(static_cast<std::size_t>(task_), found_->tasks.size() - 1); }
  const SelfAdaptation::FewShot* shots() const {
    return task() < found_->few_shot.size() && !found_->few_shot[task()].weights.empty() ? &found_->few_shot[task()]
                                                                                         : nullptr;
  }

  // ---- the right column
  void learn(const PageContext& c) {
    section(c.ui, said("LEARN EXPERTS"), said("a z for each task"));
    if (const std::string refusal = refusal_of_experts(c); !refusal.empty()) return note(c.ui, refusal);
    double steps = steps_;
    if (slider(c.ui, to_say("Steps"), steps, {1, most_expert_steps, 60, true, "", 0}))
      steps_ = static_cast<int>(std::lround(steps));
    if (sweep_controls(c, learning_, to_say("steps"), stale(c), std::nan(""))) start(c);
  }
  SelfAdaptationAsked asked(const PageContext& c) const {
    SelfAdaptationAsked out;
    out.model = c.results().run ? c.results().run->request.model : c.state().document.model;
    out.steps = steps_;
    return out;
  }
  bool stale(const PageContext& c) const { return of_open_model(c) && !(found_->asked == asked(c)); }
  void start(const PageContext& c) {
    learning_.start(std::make_shared<SelfAdaptationRun>(c.results().model, asked(c)),
                    [this, of = c.results().model_reading](std::shared_ptr<const SelfAdaptation> known) {
                      // Experts that were there stay the same ones, whatever is measured of them.
                      if (!set_ || !found_ || of_ != of || known->set.experts.size() < set_->experts.size() ||
                          known->set.experts.size() + known->set.classifier.has_value() >
                              set_->experts.size() + set_->classifier.has_value())
                        set_ = std::make_shared<const ExpertSet>(known->set);
                      found_ = std::move(known), of_ = of;
                    });
  }

  void choose_by(const PageContext& c) {
    section(c.ui, said("CHOOSE BY"));
    static constexpr const char* ways[] = {to_say("prompt"), to_say("classifier"), to_say("few shots")};
    int by = static_cast<int>(by_);
    if (segmented(c.ui, "chosen by", ways, by, ImGui::GetContentRegionAvail().x)) by_ = static_cast<ChosenBy>(by);
    switch (by_) {
      case ChosenBy::prompt:
        note(c.ui, said("Whichever of the model and its experts finds the prompt most probable. The paper asks the "
                        "model in words which task it is; one that only continues texts understands no question."));
        break;
      case ChosenBy::classifier:
        note(c.ui, said("One more z, with which the model says a token behind the prompt, one for each task: the most "
                        "probable of these chooses."));
        break;
      case ChosenBy::shots: {
        std::vector<const char*> names;
        for (const TaskTexts& each : found_->tasks) names.push_back(each.name.c_str());
        int which = static_cast<int>(task());
        if (segmented(c.ui, "shots of", names, which, ImGui::GetContentRegionAvail().x)) task_ = which;
        note(c.ui, say("z = Σ α z over the experts and the model, α by the cross-entropy method on {} texts of this "
                       "task: {} rounds of {} mixtures, the best {} make the next.",
                       found_->tasks[task()].shots.size(), found_->asked.search.rounds, found_->asked.search.samples,
                       found_->asked.search.elites));
        mixture(c);
      }
    }
    ImGui::Dummy({0, c.ui.px(4)});
    const auto known = current(c);
    ImGui::BeginDisabled(!known || known->edits.empty());
    if (button(c.ui, to_say("Put it among the edits"), c.ui.px(26))) {
      std::vector<Intervention> edits = c.state().document.edits;
      for (const Intervention& former : put_) std::erase(edits, former);  // what was set by hand stays
      put_ = known->edits;
      edits.insert(edits.end(), put_.begin(), put_.end());
      c.editor.history().close_step();
      c.editor.set_edits(std::move(edits));
    }
    ImGui::EndDisabled();
  }

  void mixture(const PageContext& c) const {
    const SelfAdaptation::FewShot* found = shots();
    if (!found) return;
    fact(c.ui, said("α of no expert"), fmt::format("{:.2f}", model_weight(found->weights)), nullptr,
         {said("what is left to 1")});
    for (std::size_t k = 0; k < found->weights.size(); ++k)
      fact(c.ui, say("α of {}", said(found_->tasks[k].name)), fmt::format("{:.2f}", found->weights[k]), nullptr,
           {said("the best mixture that was tried")});
    LineChart chart = few_shot_chart(*found_, task(), c.ui.style());
    chart.height = 110;
    plot(c.ui, "few shot search", std::move(chart));
  }

  void measured(const PageContext& c) const {
    section(c.ui, said("SECOND PASS"), said("nats per token behind the prompt"));
    const bool few = by_ == ChosenBy::shots;
    const SelfAdaptation::Way& way = by_ == ChosenBy::classifier ? found_->classifier : found_->prompt;
    if (!few && way.prompts() > 0)
      fact(c.ui, said("Own expert chosen"),
           say("{} of {}, {:.0f} %", way.right(), way.prompts(), 100.0 * way.right() / way.prompts()), nullptr,
           {said("of prompts of all tasks, halves of texts that no expert learnt")});
    if (!few && way.prompts() > 0)
      fact(c.ui, said("By chance"), fmt::format("{:.0f} %", 100 * found_->chance()), nullptr,
           {said("one of the experts, chosen blindly; the prompt may choose the model itself, too")});
    for (std::size_t t = 0; t < found_->tasks.size(); ++t) {
      const bool known = few ? t < found_->few_shot.size() && found_->few_shot[t].loss > 0 : t < way.loss.size();
      if (!known || found_->losses.size() <= t + 1) continue;
      const double loss = few ? found_->few_shot[t].loss : way.loss[t];
      fact(c.ui, said(found_->tasks[t].name),
           say("{:.2f} → {:.2f} (own {:.2f})", found_->losses[0][t], loss, found_->losses[t + 1][t]), nullptr,
           {said("without an expert → with what was chosen (with the task's own expert)"),
            say("{} texts that no expert learnt", found_->tasks[t].test.size())});
    }
  }

  void tasks(const PageContext& c) const {
    section(c.ui, said("TASKS"));
    for (const TaskTexts& each : found_->tasks) {
      note(c.ui, fmt::format("{}: {}", said(each.name), said(each.about)));
      if (ImGui::IsItemHovered()) tooltip(c.ui, {each.test.front()});
    }
  }

  void look_for(const PageContext& c) const {
    if (!found_->whole) return;
    section(c.ui, said("WHAT TO LOOK FOR"));
    note(c.ui, said("Down a column of the losses: the task's own expert should have the lowest, and others may cost "
                    "more than none. Write a prompt of a task in Explore, and see here whether it is recognised, and "
                    "what changes in the answer."));
  }

  // ---- the middle
  void losses(const PageContext& c, double height) {
    section(c.ui, said("LOSS"), said("each expert on each task; colour: what it changes"));
    matrix_slot(c, losses_, "expert losses", found_, "", height - 30,
                [found = found_] { return expert_loss_matrix(*found); });
  }

  void experts(const PageContext& c, double height) {
    section(c.ui, said("EXPERTS"), said("z of every matrix, side by side"));
    if (set_->experts.empty())
      note(c.ui, said("The first one is being learnt."));
    else
      matrix_slot(c, z_, "expert z", set_, "", height - 30, [set = set_] { return expert_z_matrix(*set); });
  }

  std::optional<Key> wanted(const PageContext& c) const {
    if (!found_->set.classifier || !c.results().run) return std::nullopt;
    Key key{c.results().model.model, set_, c.results().run->request, by_, {}};
    key.prompt.edits.clear();
    if (by_ == ChosenBy::shots) {
      if (!shots()) return std::nullopt;
      key.mixture = shots()->weights;
    }
    return key;
  }
  /// Null while it is not known of what is on screen.
  const Passes* current(const PageContext& c) const {
    const auto key = of_open_model(c) ? wanted(c) : std::nullopt;
    return key && first_.current() && first_.last_key() == *key ? first_.current().get() : nullptr;
  }

  static Passes passes_of(const LoadedModel& loaded, const Key& key, const Ctx& ctx) {
    Passes out;
    out.first = first_pass(loaded, *key.set, key.prompt, ctx);
    SingularExpert z = unchanged_expert(*loaded.model, key.set->matrices);
    if (key.by == ChosenBy::shots) {
      z = mixed_expert(key.set->experts, key.mixture);
    } else {
      out.chosen = key.by == ChosenBy::prompt ? out.first.by_prompt : out.first.by_classifier;
      if (out.chosen) z = key.set->experts[out.chosen - 1].z;
    }
    out.edits = expert_edits(z);
    RunRequest request = key.prompt;
    request.capture = {};
    request.capture.maps = MapStorage::none;
    const auto before = run(loaded, request, Ctx{ctx.backend, nullptr, ctx.stop});
    request.edits = out.edits;
    const auto after = run(loaded, request, Ctx{ctx.backend, nullptr, ctx.stop});
    out.before = mean_loss(*before), out.after = mean_loss(*after);
    const auto row = [](const Trace& trace) { return trace.logits.select(0, trace.logits.dim(0) - 1); };
    for (const NextToken& each : top_next(*after, 6))
      out.next.push_back({each.id, std::exp(-next_token_loss(row(*before), each.id)), each.probability});
    return out;
  }

  void passes(const PageContext& c) {
    const auto key = wanted(c);
    if (!c.results().run) return note(c.ui, said("Write a prompt in Explore: what it chooses shows here."));
    if (!key) return note(c.ui, said("What this text chooses shows here when the experts are learnt."));
    first_.want(c.jobs, *key,
                [key = *key, loaded = c.results().model](const Ctx& ctx) { return passes_of(loaded, key, ctx); });
    const auto known = first_.current();
    if (!known && !first_.error().empty()) return note(c.ui, first_.error());
    if (!known || known->first.losses.size() != found_->tasks.size() + 1)
      return note(c.ui, said("Reading the prompt."));
    if (!c.results().run->request.edits.empty())
      note(c.ui, said("Both passes read the model without the edits that are set: the first is to see it as it is."));
    ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, {c.ui.px(10), 0});
    if (ImGui::BeginTable("two passes", 2, ImGuiTableFlags_NoSavedSettings | ImGuiTableFlags_SizingStretchSame)) {
      ImGui::TableNextColumn();
      first_bars(c, *known);
      ImGui::TableNextColumn();
      second_bars(c, *known);
      ImGui::EndTable();
    }
    ImGui::PopStyleVar();
  }

  void first_bars(const PageContext& c, const Passes& known) const {
    std::vector<Bar> bars;
    if (by_ == ChosenBy::classifier) {
      section(c.ui, said("FIRST PASS"), say("the classifier's label: {}", name_of_expert(known.chosen)));
      for (std::size_t k = 0; k < known.first.labels.size(); ++k)
        bars.push_back({name_of_expert(k + 1), known.first.labels[k], -1,
                        fmt::format("{:.1f} %", 100 * known.first.labels[k]),
                        say("of what all labels have together behind the prompt, which is {:.3f}", known.first.said)});
    } else if (by_ == ChosenBy::prompt) {
      section(c.ui, said("FIRST PASS"), say("loss of this text, lowest: {}", name_of_expert(known.chosen)));
      const double largest = std::ranges::max(known.first.losses);
      for (std::size_t e = 0; e < known.first.losses.size(); ++e)
        bars.push_back({(e == known.chosen ? "› " : "") + name_of_expert(e), known.first.losses[e] / largest, -1,
                        say("{:.3f} nats", known.first.losses[e]),
                        said("mean of −ln p of the text's tokens, with this expert")});
    } else {
      section(c.ui, said("FIRST PASS"), say("shots of {}: weights α", said(found_->tasks[task()].name)));
      const SelfAdaptation::FewShot& found = *shots();
      const double left = model_weight(found.weights);
      double largest = std::max(1e-9, std::abs(left));
      for (const double each : found.weights) largest = std::max(largest, std::abs(each));
      bars.push_back({fmt::format("α {}", name_of_expert(0)), std::max(0.0, left) / largest, -1,
                      fmt::format("{:.2f}", left), said("what is left to 1")});
      for (std::size_t k = 0; k < found.weights.size(); ++k)
        bars.push_back({fmt::format("α {}", name_of_expert(k + 1)), std::max(0.0, found.weights[k]) / largest, -1,
                        fmt::format("{:.2f}", found.weights[k]),
                        said("a weight below 0 goes against the expert, and has no bar")});
    }
    bar_list(c.ui, "first pass", bars);
  }

  void second_bars(const PageContext& c, const Passes& known) const {
    section(c.ui, said("SECOND PASS"), said("next token: without → with, %"));
    std::vector<Bar> bars;
    double largest = 1e-9;
    for (const Passes::Next& each : known.next) largest = std::max({largest, each.before, each.after});
    for (const Passes::Next& each : known.next)
      bars.push_back({token_text(c.results().model, each.id), each.after / largest, each.before / largest,
                      fmt::format("{:.1f} → {:.1f}", 100 * each.before, 100 * each.after),
                      say("token {}: probability {:.5f} → {:.5f}", each.id, each.before, each.after)});
    bar_list(c.ui, "second pass", bars);
    fact(c.ui, said("Loss of this text"), say("{:.3f} → {:.3f} nats", known.before, known.after), nullptr,
         {said("mean of −ln p of its tokens, without an expert and with what was chosen")});
  }

  int steps_ = 60, task_ = 0;
  ChosenBy by_ = ChosenBy::prompt;
  SweepController learning_;
  std::shared_ptr<const SelfAdaptation> found_;  // so far
  std::shared_ptr<const ExpertSet> set_;
  std::uint64_t of_ = 0;           // reading of the model that they are of
  std::vector<Intervention> put_;  // what was put among the edits last
  Answer<Key, Passes> first_{{"self adaptation.passes", to_say("reading the prompt twice")}, Holds::numbers};
  SceneSlot losses_{"scene.expert_losses"}, z_{"scene.expert_z"};
};

}  // namespace

std::unique_ptr<Page> make_self_adaptation(JobRunner& jobs) {
  return std::make_unique<SelfAdaptationPage>(jobs);
}

}  // namespace headscope
