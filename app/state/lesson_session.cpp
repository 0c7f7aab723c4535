#include "app/state/lesson_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/assets.h"
#include "app/state/mechanism_controller.h"
#include "app/state/workspace_list.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/user_folders.h"
#include "core/base/words.h"
#include "core/io/strict_json.h"
#include "core/lesson/translation.h"
#include "viz/export/glyphs.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const std::string& found) {
  throw Error(where, expected, "\"" + excerpt(found, 60) + "\"");
}

/// The page of the mechanism with its values, on the numbers of a worked example or of a head.
void show_mechanism(Session& session, const LessonScene& scene, const std::string& where) {
  const MechanismChoice choice = parse_mechanism(scene.mechanism, where);
  ordered_json controls{{"mechanism", choice.mechanism->id}};
  for (const MechanismParameter& p : choice.mechanism->parameters)
    controls["values"][std::string(p.name)] = choice.values.number(p.name);
  const auto view = parse_mechanism_view(scene.view.empty() ? "steps" : scene.view);
  if (!view) refuse(where, "a view: compare, steps, recurrent, model or cost", scene.view);
  controls["view"] = static_cast<int>(*view);
  const auto examples = worked_examples();
  if (const auto found = std::ranges::find(examples, scene.on, &WorkedExample::id); found != examples.end()) {
    const MechanismInput in = found->input();
    session.document.by_hand = std::make_shared<const MatricesByHand>(
        MatricesByHand{in.q, in.k, in.v, static_cast<double>(in.scale), "full", std::string(found->id)});
  } else if (const auto head = parse_head_id(scene.on)) {
    session.document.selected = *head;
    controls["source"] = static_cast<int>(MechanismSource::Kind::head);
  } else {
    refuse(where, "on: a worked example, or a head such as 0.2", scene.on);
  }
  session.window.workspace = "Mechanisms";
  session.window.pages["Mechanisms"] = choice.mechanism->id;
  session.window.controls["Mechanisms"] = controls.dump();
}

/// The file in this language, where it is translated and this machine's fonts have the characters; else itself.
fs::path readable_in(const fs::path& file, const std::string& language, std::string& why_not) {
  const fs::path translated = in_language(file, language);
  if (translated == file) return file;
  const std::string text = read_file(translated, longest_lesson);
  const std::string_view lacking = Glyphs().lacking(text, {});
  if (lacking.empty()) return translated;
  why_not =
      say("Lessons are in English: no font on this machine has “{}”, which {} is written with. Fonts of many scripts: "
          "the package fonts-noto-cjk, or another of fonts-noto.",
          lacking, translated.filename().string());
  return file;
}

}  // namespace

fs::path lesson_model(const std::string& name) {
  if (const auto bundled = find_bundled_model(name)) return *bundled;
  return name;
}

Stack lesson_stack(const LessonScene& scene) {
  const auto stack = value_in(stack_names, scene.stack);
  if (!stack) refuse("stack", "enc, dec or cross", scene.stack);
  return *stack;
}

RunRequest lesson_request(const LessonScene& scene) {
  if (scene.model.empty()) throw Error("lesson", "a model, in the front matter or in the step", "none");
  return request_of(lesson_session(scene, {}, "lesson").document);
}

Session lesson_session(const LessonScene& scene, const LessonTold& told, const std::string& where) {
  Session session;
  Document& document = session.document;
  document.model = lesson_model(scene.model);
  document.text = scene.text;
  document.source = scene.source;
  if (!scene.image.empty()) {
    const auto image = find_asset(scene.image);
    if (!image) refuse(where, "a picture among the assets", scene.image);
    document.image = *image;
  }
  document.stack = lesson_stack(scene);
  for (const std::string& edit : scene.edits) document.edits.push_back(parse_intervention(edit, where));
  session.window.workspace = scene.workspace.empty() ? "Explore" : scene.workspace;
  if (workspace_tab(session.window.workspace) == workspace_list.size())
    refuse(where, "a workspace that there is", scene.workspace);
  if (!scene.page.empty() && scene.workspace.empty() && scene.mechanism.empty())
    refuse(where, "the workspace of a page", scene.page);
  if (!scene.page.empty()) session.window.pages[session.window.workspace] = scene.page;
  if (!scene.mechanism.empty()) {
    show_mechanism(session, scene, where);
  } else if (!scene.view.empty()) {
    const auto view = parse_head_view(scene.view);
    if (!view) refuse(where, "a view: map, arcs, row, steps, qk, heads or picture", scene.view);
    session.view.head_view = *view;
  }
  if (!scene.session.empty()) {
    auto whole = nlohmann::json::parse(to_json(session));
    whole.merge_patch(parse_strict_json(scene.session, where));
    const auto by_hand = session.document.by_hand;
    session = session_from_json(whole.dump(), where);
    session.document.by_hand = by_hand;
  }
  if (told.head) document.selected = *told.head;
  if (told.row) document.query = told.row;
  if (told.key) document.key = told.key;
  return session;
}

fs::path own_lessons_folder() {
  const fs::path own = data_folder();
  return own.empty() ? own : own / "lessons";
}

std::vector<fs::path> lesson_files() {
  std::map<std::string, fs::path> found;  // by name; one's own go before bundled ones
  const auto look_into = [&](const fs::path& folder) {
    std::error_code ignored;
    for (const fs::directory_entry& each : fs::directory_iterator(folder, ignored))
      if (each.path().extension() == ".md" && each.path().filename() != "README.md" && language_of(each.path()).empty())
        found.insert_or_assign(each.path().filename().string(), each.path());
  };
  if (const auto bundled = find_asset("lessons")) look_into(*bundled);
  if (const fs::path own = own_lessons_folder(); !own.empty()) look_into(own);
  std::vector<fs::path> files;
  for (const auto& [name, path] : found) files.push_back(path);
  return files;
}

Lesson read_lesson_in(const fs::path& file, const std::string& language, std::string& why_not) {
  return read_lesson(readable_in(file, language, why_not));
}

std::vector<GlossaryEntry> read_glossary(const std::string& language, std::string& why_not) {
  const auto file = find_asset("glossary.txt");
  if (!file) return {};
  const auto read = [](const fs::path& each) { return parse_glossary(read_file(each, longest_lesson), each.string()); };
  const fs::path translated = readable_in(*file, language, why_not);
  return translated == *file ? read(*file) : translated_glossary(read(*file), read(translated));
}

}  // namespace headscope
