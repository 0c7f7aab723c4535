#include "app/state/lesson_record.h"

#include <fmt/format.h>

#include "app/assets.h"
#include "app/state/lesson_session.h"
#include "app/state/mechanism_controller.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"

namespace headscope {

using nlohmann::json;

namespace {

/// The name of a bundled model, else where it lies.
std::string model_name(const std::filesystem::path& model) {
  const std::string name = model.filename().string();
  const auto bundled = find_bundled_model(name);
  std::error_code differ;
  return bundled && std::filesystem::equivalent(*bundled, model, differ) ? name : model.generic_string();
}

bool fits_a_line(const std::string& text) {
  return text.find_first_of("\n\r") == std::string::npos && (text.empty() || (text.front() > ' ' && text.back() > ' '));
}

/// What makes `to` of `from` as a merge patch (RFC 7386): null takes a key away.
json patch_between(const json& from, const json& to) {
  json out = json::object();
  for (const auto& [key, value] : to.items()) {
    const auto before = from.find(key);
    if (before != from.end() && *before == value) continue;
    const bool inside = before != from.end() && before->is_object() && value.is_object();
    out[key] = inside ? patch_between(*before, value) : value;
  }
  for (const auto& [key, value] : from.items())
    if (!to.contains(key)) out[key] = nullptr;
  return out;
}

/// A page of mechanisms in the words of lessons, where these have words for it: the worked example or the head.
void name_mechanism(LessonScene& scene, const Session& session) {
  const auto page = session.window.pages.find("Mechanisms");
  const auto controls = session.window.controls.find("Mechanisms");
  if (page == session.window.pages.end() || controls == session.window.controls.end()) return;
  const json set = json::parse(controls->second);
  using Kind = MechanismSource::Kind;
  const int source = set.value("source", static_cast<int>(Kind::hand));
  const auto& by_hand = session.document.by_hand;
  if (source == static_cast<int>(Kind::head))
    scene.on = to_string(session.document.selected);
  else if (source == static_cast<int>(Kind::hand) && by_hand) {
    scene.on = by_hand->example;
    if (scene.on.empty())
      throw Error("lesson step", "queries, keys and values of a head, at random, or of a worked example",
                  "some made by hand", "no file of the window keeps those");
  }
  if (scene.on.empty() || !find_mechanism(page->second)) return;
  MechanismChoice choice = parse_mechanism(page->second);
  const json values = set.value("values", json::object());
  for (const MechanismParameter& each : choice.mechanism->parameters)
    if (const auto value = values.find(each.name); value != values.end() && value->is_number())
      choice.values.set(each.name, value->get<double>());
  scene.mechanism = text_of(choice);
}

/// Only what is on the screen.
Session shown_of(Session session) {
  std::string& workspace = session.window.workspace;
  if (workspace.empty()) workspace = "Explore";
  std::erase_if(session.window.pages, [&](const auto& each) { return each.first != workspace; });
  std::erase_if(session.window.controls, [&](const auto& each) { return each.first != workspace; });
  if (workspace != "Generate") session.transcript.reset();
  session.model_note.clear();
  return session;
}

/// The edits that are on, a line each; none where one of them has more than words say, as painted masks have.
std::vector<std::string> edit_lines(const std::vector<Intervention>& edits) {
  std::vector<std::string> out;
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    out.push_back(describe(edit));
    try {
      if (parse_intervention(out.back(), "edit") != edit) return {};
    } catch (const Error&) {
      return {};
    }
  }
  return out;
}

LessonScene scene_of(const Session& session) {
  const Document& d = session.document;
  const std::string& workspace = session.window.workspace;
  LessonScene scene;
  scene.model = model_name(d.model);
  if (d.ids.empty() && fits_a_line(d.text)) scene.text = d.text;
  if (fits_a_line(d.source)) scene.source = d.source;
  scene.stack = std::string(name_in(stack_names, d.stack));
  scene.edits = edit_lines(d.edits);
  scene.head = to_string(d.selected);
  if (d.query && d.key)
    scene.cell = fmt::format("{} {}", *d.query, *d.key);
  else if (d.query)
    scene.row = std::to_string(*d.query);
  if (workspace == "Mechanisms") name_mechanism(scene, session);
  if (workspace == "Explore") {
    scene.view = std::string(name(session.view.head_view));
  } else if (scene.mechanism.empty()) {
    scene.workspace = workspace;
    if (const auto page = session.window.pages.find(workspace); page != session.window.pages.end())
      scene.page = page->second;
  }
  return scene;
}

/// What the scene's lines do not say, as JSON; "" = they say all.
std::string rest_of(const LessonScene& scene, const Session& session) {
  const LessonTold told{.head = session.document.selected, .row = session.document.query, .key = session.document.key};
  Session lines = lesson_session(scene, told, "lesson step");
  lines.document.model = session.document.model;  // however it is spelled
  View& view = lines.view;                        // the person's, who shows it later
  const View& now = session.view;
  view.theme = now.theme, view.text_unit = now.text_unit, view.map_tool = now.map_tool;
  view.edit_scope = now.edit_scope;
  view.left_width = now.left_width, view.right_width = now.right_width, view.row_height = now.row_height;
  view.left_open = now.left_open, view.right_open = now.right_open, view.row_open = now.row_open;
  const json rest = patch_between(json::parse(to_json(lines)), json::parse(to_json(session)));
  return rest.empty() ? "" : rest.dump();
}

}  // namespace

std::string lesson_show_block(const Session& session) {
  const Session shown = shown_of(session);
  std::string out = "```show\n";
  const auto line = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    if (const auto byte = first_invalid_utf8(value))
      throw Error("lesson step", fmt::format("a {} in UTF-8, as a lesson's file is", key),
                  fmt::format("another byte at {}", *byte));
    out += fmt::format("{}: {}\n", key, value);
  };
  const LessonScene scene = scene_of(shown);
  line("model", scene.model);
  line("text", scene.text);
  line("source", scene.source);
  line("stack", scene.stack);
  for (const std::string& edit : scene.edits) line("edit", edit);
  line("head", scene.head);
  line("row", scene.row);
  line("cell", scene.cell);
  line("mechanism", scene.mechanism);
  line("on", scene.on);
  line("view", scene.view);
  line("workspace", scene.workspace);
  line("page", scene.page);
  line("session", rest_of(scene, shown));
  return out + "```\n";
}

std::string lesson_step_text(const Session& session) {
  return "## A step\n\nWhat it shows.\n\n" + lesson_show_block(session);
}

}  // namespace headscope
