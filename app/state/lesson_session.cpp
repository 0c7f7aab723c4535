#include "app/state/lesson_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/assets.h"
#include "app/state/mechanism_controller.h"
#include "app/state/workspace_list.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/base/user_folders.h"
#include "core/io/strict_json.h"

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
  if (!view) refuse(where, "a view: compare, steps, recurrent or model", scene.view);
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
  RunRequest request;
  request.model = lesson_model(scene.model);
  request.text = scene.text;
  request.source = scene.source;
  if (!scene.image.empty()) {
    const auto image = find_asset(scene.image);
    if (!image) refuse("image", "a file among the assets", scene.image);
    request.image = *image;
  }
  for (const std::string& edit : scene.edits) request.edits.push_back(parse_intervention(edit, "edit"));
  return request;
}

Session lesson_session(const LessonScene& scene, const LessonTold& told, const std::string& where) {
  const RunRequest request = lesson_request(scene);
  Session session;
  session.document.model = request.model;
  session.document.text = request.text;
  session.document.source = request.source;
  session.document.image = request.image;
  session.document.stack = lesson_stack(scene);
  session.document.edits = request.edits;
  session.document.selected = told.head.value_or(HeadId{});
  session.document.query = told.row;
  session.document.key = told.key;
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
  if (scene.session.empty()) return session;
  auto whole = nlohmann::json::parse(to_json(session));
  whole.merge_patch(parse_strict_json(scene.session, where));
  Session merged = session_from_json(whole.dump(), where);
  merged.document.by_hand = session.document.by_hand;
  return merged;
}

std::vector<fs::path> lesson_files() {
  std::map<std::string, fs::path> found;  // by name; one's own go before bundled ones
  const auto look_into = [&](const fs::path& folder) {
    std::error_code ignored;
    for (const fs::directory_entry& each : fs::directory_iterator(folder, ignored))
      if (each.path().extension() == ".md" && each.path().filename() != "README.md")
        found.insert_or_assign(each.path().filename().string(), each.path());
  };
  if (const auto bundled = find_asset("lessons")) look_into(*bundled);
  if (const fs::path own = state_folder(); !own.empty()) look_into(own / "lessons");
  std::vector<fs::path> files;
  for (const auto& [name, path] : found) files.push_back(path);
  return files;
}

}  // namespace headscope
