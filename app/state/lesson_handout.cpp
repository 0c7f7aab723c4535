#include "app/state/lesson_handout.h"

#include <fmt/format.h>

#include <optional>

#include "app/render/mechanism_steps_picture.h"
#include "app/state/lesson_session.h"
#include "app/state/view_picture.h"
#include "app/state/workspace_list.h"
#include "viz/export/svg.h"

namespace headscope {

namespace {

constexpr double page_width = 720;  // logical pixels

constexpr const char* head = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{0}</title><style>
body {{ font: 15px/1.5 sans-serif; max-width: 760px; margin: 2em auto; padding: 0 1em; color: #111; }}
section {{ break-inside: avoid; margin-bottom: 2.5em; }} h1 {{ margin-bottom: 0; }} .about {{ color: #555; margin-top: .2em; }}
figure {{ margin: 1em 0; }} img {{ max-width: 100%; }} figcaption {{ color: #555; font-size: 13px; }}
.question {{ border: 1px solid #999; border-radius: 4px; padding: .2em 1em; }} .answer {{ border-left: 3px solid #2a6fdb; padding-left: 1em; }}
.note {{ color: #555; border-left: 3px solid #ccc; padding-left: 1em; }}
</style></head><body><h1>{0}</h1><p class="about">{1}</p>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

/// What stands between asterisks is emphasised.
std::string html(std::string_view text) {
  std::string out;
  bool strong = false;
  for (const char c : escaped(text)) {
    if (c == '*')
      out += (strong = !strong) ? "<em>" : "</em>";
    else
      out += c;
  }
  return strong ? out + "</em>" : out;
}

/// As a picture of its own, so that no two share names of their parts.
std::string image(const std::string& svg, std::string_view words) {
  std::string data;
  for (const char c : svg) {
    if (c == '%' || c == '#' || c == '"' || c == '<' || c == '>' || c == '&' || c == '\n')
      data += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      data += c;
  }
  return fmt::format("<figure><img alt=\"{0}\" src=\"data:image/svg+xml;charset=utf-8,{1}\"></figure>\n",
                     escaped(words), data);
}

/// What the step shows; nothing of a page of another workspace, which is no picture by itself.
std::optional<Scene> picture_of(const LessonStep& step, LessonRun& run, const LessonTold& told, const Style& style) {
  if (!step.scene.mechanism.empty()) {
    const MechanismReport report =
        lesson_mechanism(run, {step.scene.mechanism, step.scene.on}, fmt::format("step \"{}\"", step.title));
    AxisNames names;
    for (const WorkedExample& example : worked_examples())
      if (example.id == step.scene.on) names = {example.queries, example.keys};
    return mechanism_scene(report.result, *report.choice.mechanism, names, page_width, style);
  }
  const Session session = lesson_session(step.scene, told, fmt::format("step \"{}\"", step.title));
  if (session.window.workspace != "Explore" || run.trace().maps.empty()) return std::nullopt;
  const bool rotary = run.model().model->config().position == PositionKind::rotary;
  ExportOptions all;
  all.all_heads = step.scene.head.empty();
  return picture_scene(run.trace(), view_picture(session.document, session.view, run.trace(), rotary, all), style);
}

}  // namespace

std::string lesson_handout(const Lesson& lesson,
                           const std::function<std::shared_ptr<LessonRun>(const LessonScene&)>& run_of,
                           const HandoutParts& with, const Style& style) {
  std::string out = fmt::format(head, escaped(lesson.title), escaped(lesson.about));
  int at = 0;
  for (const LessonStep& step : lesson.steps) {
    const auto run = run_of(step.scene);
    const LessonTold told = tell(step, run);
    out += fmt::format("<section><h2>{}. {}</h2>\n", ++at, escaped(step.title));
    for (const std::string& each : told.prose) out += "<p>" + html(each) + "</p>\n";
    if (const auto picture = picture_of(step, *run, told, style))
      out += image(encode_svg(*picture), step.title);
    else if (!step.scene.workspace.empty())
      out += fmt::format("<figcaption>In the window: {} › {}</figcaption>\n",
                         escaped(workspace_name(step.scene.workspace).title), escaped(step.scene.page));
    if (step.question) {
      out += "<div class=\"question\"><p>" + html(told.ask) + "</p>\n";
      for (const std::string& each : told.choices) out += "<p>○ " + html(each) + "</p>\n";
      out += "</div>\n";
    }
    if (step.question && with.answers) {
      const LessonReply reply = answered(step, run, any_guess(*step.question));
      out += "<div class=\"answer\"><p>" + (reply.truth.empty() ? "" : html(reply.truth) + ". ") + html(reply.because) +
             "</p></div>\n";
    }
    if (with.notes)
      for (const std::string& each : told.notes) out += "<p class=\"note\">" + html(each) + "</p>\n";
    out += "</section>\n";
  }
  return out + "</body></html>\n";
}

}  // namespace headscope
