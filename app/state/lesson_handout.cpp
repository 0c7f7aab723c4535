#include "app/state/lesson_handout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/render/mechanism_steps_picture.h"
#include "app/state/lesson_session.h"
#include "app/state/view_picture.h"
#include "app/state/workspace_list.h"

namespace headscope {

namespace {

constexpr double page_width = 720;  // logical pixels

/// What the step shows; nothing of a page of another workspace, which is no picture by itself.
std::optional<Scene> picture_of(const LessonStep& step, LessonRun& run, const LessonTold& told, const Style& style) {
  if (!step.scene.mechanism.empty()) {
    const auto report = run.mechanism({step.scene.mechanism, step.scene.on}, fmt::format("step \"{}\"", step.title));
    AxisNames names;
    for (const WorkedExample& example : worked_examples())
      if (example.id == step.scene.on) names = {example.queries, example.keys};
    return mechanism_scene(report->result, *report->choice.mechanism, names, page_width, style);
  }
  const Session session = lesson_session(step.scene, told, fmt::format("step \"{}\"", step.title));
  if (session.window.workspace != "Explore" || run.trace().maps.empty()) return std::nullopt;
  const bool rotary = run.model().model->config().position == PositionKind::rotary;
  ExportOptions all;
  all.all_heads = step.scene.head.empty();
  return picture_scene(run.trace(), view_picture(session.document, session.view, run.trace(), rotary, all), style);
}

}  // namespace

Handout lesson_handout(const Lesson& lesson,
                       const std::function<std::shared_ptr<LessonRun>(const LessonScene&)>& run_of,
                       const HandoutParts& with, const Style& style) {
  using Kind = HandoutBlock::Kind;
  Handout out{lesson.title, lesson.about};
  if (!lesson.language.empty()) {
    out.language = lesson.language;
    std::ranges::replace(out.language, '_', '-');  // "pt-BR", as the web writes it
  }
  const auto add = [&](Kind kind, HandoutWords words) -> HandoutBlock& {
    return out.blocks.emplace_back(HandoutBlock{kind, std::move(words)});
  };
  int at = 0;
  for (const LessonStep& step : lesson.steps) {
    const auto run = run_of(step.scene);
    const LessonTold told = tell(step, run);
    add(Kind::heading, {{fmt::format("{}. {}", ++at, step.title)}});
    for (const std::string& each : told.prose) add(Kind::prose, emphasised(each));
    if (auto picture = picture_of(step, *run, told, style))
      add(Kind::picture, {{step.title}}).picture = std::move(picture);
    else if (!step.scene.workspace.empty())
      add(Kind::aside, {{fmt::format("In the window: {}{}{}", workspace_name(step.scene.workspace).title,
                                     step.scene.page.empty() ? "" : " › ", step.scene.page)}});
    if (step.question) {
      HandoutBlock& question = add(Kind::question, emphasised(told.ask));
      for (const std::string& each : told.choices) question.choices.push_back(emphasised(each));
    }
    if (step.question && with.answers) {
      const LessonReply reply = answered(step, run, any_guess(*step.question));
      HandoutWords words = emphasised(reply.truth);
      if (!words.empty()) words.push_back({". "});
      for (HandoutSpan& each : emphasised(reply.because)) words.push_back(std::move(each));
      add(Kind::answer, std::move(words));
    }
    if (with.notes)
      for (const std::string& each : told.notes) add(Kind::note, emphasised(each));
  }
  return out;
}

}  // namespace headscope
