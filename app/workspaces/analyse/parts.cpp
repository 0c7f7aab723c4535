#include "app/workspaces/analyse/parts.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/no_run.h"
#include "core/analysis/self_adaptation.h"
#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/ablate_edit.h"
#include "core/metrics/next_token.h"
#include "core/train/singular_expert.h"
#include "viz/scene/text.h"

namespace headscope {

double expected_seconds(const PageContext& c, double passes) {
  if (!c.trace()) return std::numeric_limits<double>::quiet_NaN();
  return passes * c.trace()->whole_milliseconds / 1000;
}

std::string sweep_remark(const SweepController& controller, const std::string& what) {
  using Phase = SweepController::Phase;
  const std::string count = say("{} of {} {}", controller.done(), controller.total(), said(what));
  switch (controller.phase()) {
    case Phase::idle:
      return "";
    case Phase::running:
      if (controller.total() == 0) return said("running the text");
      return std::isfinite(controller.seconds_left())
                 ? say("{} · {} left", count, duration_text(std::max(controller.seconds_left(), 1.0)))
                 : count;
    case Phase::finished:
      return fmt::format("{} {}", controller.total(), said(what));
    case Phase::cancelled:
      return say("cancelled at {}", count);
    case Phase::failed:
      return say("failed at {}", count);
  }
  return "";
}

SceneTouch matrix_slot(const PageContext& c, SceneSlot& slot, const char* id, std::shared_ptr<const void> source,
                       const std::string& options, double height, std::function<Matrix()> make) {
  const double width = std::floor(c.room());
  if (!slot.under_way(c.jobs))  // numbers that come faster than pictures would let none be finished
    slot.want(c.jobs, c.ui, std::move(source), fmt::format("{} {} {}", options, width, height),
              [make = std::move(make), width, height](const Style& style) {
                Matrix matrix = make();
                matrix.width = width, matrix.height = height;
                return matrix_scene(matrix, style);
              });
  const Scene* scene = slot.scene();
  if (!scene) return {};
  SceneViewOptions how;
  how.fit_height = false;
  return slot.draw(c.ui, id, how, width, scene->height);
}

bool sweep_controls(const PageContext& c, SweepController& controller, const std::string& what, bool stale,
                    double expected) {
  const Ui& ui = c.ui;
  section(ui, said("RUN"),
          controller.phase() == SweepController::Phase::finished && stale ? said("of an earlier text or setting") : "");
  bool start = false;
  if (controller.running()) {
    const float width = ImGui::GetContentRegionAvail().x, height = ui.px(4);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(at, {at.x + width, at.y + height}, col(ui.theme.line), height / 2);
    draw->AddRectFilled(at, {at.x + width * static_cast<float>(controller.share()), at.y + height},
                        col(ui.theme.accent), height / 2);
    ImGui::Dummy({width, height});
    note(ui, sweep_remark(controller, what));
    if (button(ui, to_say("Cancel"))) controller.cancel();
  } else {
    ImGui::BeginDisabled(!c.results().model.model);
    start = button(ui, controller.phase() == SweepController::Phase::idle ? to_say("Start") : to_say("Start again"));
    ImGui::EndDisabled();
    std::string remark = sweep_remark(controller, what);
    if (remark.empty() && std::isfinite(expected) && expected >= 1) remark = say("about {}", duration_text(expected));
    if (!remark.empty()) {
      ImGui::SameLine();
      ImGui::AlignTextToFramePadding();
      ImGui::TextColored(vec(ui.theme.faint), "%s", remark.c_str());
    }
  }
  if (!controller.error().empty()) error_text(ui, controller.error());
  return start;
}

bool sweep_shown(const PageContext& c, const SweepController& controller, bool stale) {
  using Phase = SweepController::Phase;
  ShownPictures& pictures = c.ui.pictures;
  if (controller.phase() == Phase::finished && !stale)
    pictures.started = true;
  else if (controller.phase() != Phase::idle)
    pictures.passing =
        stale ? "what was found for an earlier text or setting" : "what was known while it was being computed";
  else  // some need no text
    return c.app.ui.press_start && (c.trace() || c.state().document.text.empty()) && !c.jobs.busy();
  return false;
}

void nothing_open(const PageContext& c) {
  if (c.captured())
    return empty_state(
        c.ui, said("This page reads a model"),
        said("What is open is attention that was captured elsewhere: weights, without the model behind them."));
  no_run(c);
}

std::string why_no_loss(const PageContext& c) {
  const Trace* trace = c.whole();
  if (!trace || !targets(*trace).empty()) return "";
  switch (trace->model.objective) {
    case Objective::next_token:
      return said("There is no loss: the first token is given, not predicted. Write a longer text.");
    case Objective::masked_token:
      return std::ranges::any_of(trace->tokens, &Token::masked)
                 ? said(
                       "There is no loss: nobody knows what stood where the mask was typed. Mask a word of the text "
                       "in Explore: right click it, or pin it and press K.")
                 : said(
                       "There is no loss: no token is masked. Mask one in Explore: right click it, or pin it and "
                       "press K.");
    case Objective::image_class:
      return said("There is no loss: what a picture shows stands nowhere in it. KL tells how far the answer moves.");
    case Objective::nothing:
      break;
  }
  return said("There is no loss: this file ends with the last block, so the model answers nothing.");
}

std::string refusal_of_experts(const PageContext& c) {
  try {
    SingularLearner::check(c.results().model.model->config(), SelfAdaptationAsked{}.matrices);
    return "";
  } catch (const Error& refusal) {
    return refusal.what();
  }
}

void answer_fields(const PageContext& c, AnswerFields& fields, const AnswerPair* automatic) {
  section(c.ui, said("ANSWERS"), said("logit difference = first − second"));
  auto& chosen = c.editor.view().contrast;
  const LoadedModel& model = c.results().model;
  if (fields.seen != chosen) {
    fields = {};
    if (chosen_answers(c)) {
      fields.right = token_text(model, chosen->first);
      fields.wrong = token_text(model, chosen->second);
    }
    fields.seen = chosen;
  }
  // The label of a token need not read back as it: what still says what was chosen is that.
  const auto token_of = [&](const std::string& text, std::optional<std::int32_t> was, const char* where) {
    return was && text == token_text(model, *was) ? *was : answer_token(model, text, where);
  };
  const auto hint = [&](std::int32_t AnswerPair::*which) {
    return automatic ? token_text(model, automatic->*which) : std::string();
  };
  bool changed = false;
  const float half = (ImGui::GetContentRegionAvail().x - c.ui.px(8)) / 2;
  {
    const UseFont font(c.ui, c.ui.token());
    ImGui::SetNextItemWidth(half);
    changed |= input_line(c.ui, "##first answer", hint(&AnswerPair::right).c_str(), fields.right);
    ImGui::SameLine(0, c.ui.px(8));
    ImGui::SetNextItemWidth(half);
    changed |= input_line(c.ui, "##second answer", hint(&AnswerPair::wrong).c_str(), fields.wrong);
  }
  if (changed) {
    fields.error.clear();
    try {
      if (fields.right.empty() != fields.wrong.empty())
        throw Error("answers", "two tokens, or none for the usual ones", "one");
      std::optional<std::pair<std::int32_t, std::int32_t>> written;
      if (!fields.right.empty())
        written =
            std::pair{token_of(fields.right, chosen ? std::optional(chosen->first) : std::nullopt, "first answer"),
                      token_of(fields.wrong, chosen ? std::optional(chosen->second) : std::nullopt, "second answer")};
      chosen = written;
    } catch (const Error& wrong) {
      fields.error = wrong.what();
    }
    fields.seen = chosen;
  }
  const UseFont small(c.ui, c.ui.small());
  if (!fields.error.empty())
    error_text(c.ui, fields.error);
  else
    note(c.ui, chosen ? said("The same two as in Explore; empty both for the usual ones.")
                      : said("Can also be chosen in Explore, by a click on a next token."));
}

std::optional<AnswerPair> chosen_answers(const PageContext& c) {
  const auto& chosen = c.state().view.contrast;
  if (!chosen || !c.results().model.model) return std::nullopt;
  const int vocab = c.results().model.model->config().dims.vocab;
  if (chosen->first >= vocab || chosen->second >= vocab) return std::nullopt;
  return AnswerPair{chosen->first, chosen->second};
}

namespace {
struct AblationChoice {
  const char* title;
  Ablate ablate;
  const char* words;
};
const std::vector<AblationChoice>& ablation_choices() {
  static const std::vector<AblationChoice> choices = {
      {to_say("zero"), {Ablate::By::zero}, to_say("z = 0 at every position.")},
      {to_say("mean"),
       {Ablate::By::mean},
       to_say("z = its mean over the position and those before it: nothing later is told.")},
      {to_say("text mean"),
       {Ablate::By::mean, 1, true},
       to_say("z = its mean over the whole text: earlier rows are told of later ones.")},
      {to_say("another's"),
       {Ablate::By::resample},
       to_say("z of every position becomes that of another one of the text, later ones too, drawn at random with a "
              "fixed seed.")}};
  return choices;
}
/// Whose kind it is, whatever the texts and the seed.
int number_of(const Ablate& ablate) {
  const auto found = std::ranges::find_if(ablation_choices(), [&](const AblationChoice& choice) {
    return choice.ablate.by == ablate.by && choice.ablate.over_text == ablate.over_text;
  });
  return static_cast<int>(found - ablation_choices().begin());
}
const AblationChoice& choice_of(const Ablate& ablate) {
  return nth(ablation_choices(), number_of(ablate));
}
bool takes_texts(const Ablate& ablate) {
  return ablate.by != Ablate::By::zero && !ablate.over_text;
}
std::vector<std::string> lines_of(const std::string& texts) {
  std::vector<std::string> lines;
  std::istringstream all(texts);
  for (std::string line; std::getline(all, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}
}  // namespace

std::string ablation_title(const Ablate& ablate) {
  const char* const title = said(choice_of(ablate).title);
  return ablate.from.empty() ? title : say("{} of the reference texts", title);
}

bool ablation_choice(const PageContext& c, const char* id, AblationFields& fields) {
  Ablate& ablate = fields.ablate;
  const Ablate before = ablate;
  std::vector<const char*> titles;
  for (const AblationChoice& choice : ablation_choices()) titles.push_back(choice.title);
  int chosen = number_of(ablate);
  if (segmented(c.ui, id, titles, chosen, ImGui::GetContentRegionAvail().x)) {
    ablate = nth(ablation_choices(), chosen).ablate;
    ablate.seed = before.seed;
  }
  const char* const over_texts[] = {
      to_say("z = its mean over all positions of the reference texts (Wang et al. 2023)."),
      to_say("z of every position becomes that of one of the reference texts' positions, drawn at random with a fixed "
             "seed.")};
  note(c.ui, said(ablate.from.empty() ? choice_of(ablate).words : over_texts[ablate.by == Ablate::By::resample]));
  if (takes_texts(ablate)) {
    const auto lines = static_cast<float>(std::clamp<Index>(1 + std::ranges::count(fields.texts, '\n'), 2, 6));
    ImGui::InputTextMultiline(
        fmt::format("##reference texts of {}", id).c_str(), &fields.texts,
        {-1, lines * ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().FramePadding.y + c.ui.px(2)});
    note(c.ui, fields.texts.empty() ? said("Reference texts, one in a line; none: over the text on screen.")
                                    : said("Reference texts, one in a line; each is run once."));
  }
  ablate.from = takes_texts(ablate) ? lines_of(fields.texts) : std::vector<std::string>();
  if (ablate.by == Ablate::By::resample) {
    auto seed = static_cast<double>(ablate.seed);
    if (slider(c.ui, to_say("Seed"), seed, {1, 100, 1, false, "", 0})) ablate.seed = static_cast<std::uint64_t>(seed);
  }
  return !(ablate == before);
}

void ablation_record(ControlsRecord& record, AblationFields& fields) {
  Ablate& ablate = fields.ablate;
  int chosen = number_of(ablate);
  record.choice("ablation", chosen, static_cast<int>(ablation_choices().size()) - 1);
  record.field("ablation_texts", fields.texts);
  std::uint64_t seed = ablate.seed;
  record.field("ablation_seed", seed);
  if (!record.reading()) return;
  ablate = nth(ablation_choices(), chosen).ablate;
  ablate.seed = seed;
  if (takes_texts(ablate)) ablate.from = lines_of(fields.texts);
}

std::string token_text(const LoadedModel& model, std::int32_t id) {
  return model.tokenizer ? printable(model.tokenizer->token(id).label) : std::to_string(id);
}

}  // namespace headscope
