#include "app/state/session.h"

#include <limits>

#include "app/assets.h"
#include "app/state/file_kind.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/io/model_location.h"
#include "core/io/sound.h"
#include "core/io/strict_json.h"
#include "core/text/tokenizer.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {
constexpr const char* session_type = "headscope session";
constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
constexpr double widest = 10000;  // of a panel, logical pixels

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json document_json(const Document& document) {
  ordered_json out;
  out["model"] = document.model.generic_string();
  out["text"] = document.text;
  out["ids"] = document.ids;
  if (!document.source.empty()) out["source"] = document.source;
  if (!document.source_ids.empty()) out["source_ids"] = document.source_ids;
  if (document.stack != Stack::only) out["stack"] = name_in(stack_names, document.stack);
  if (!document.image.empty()) out["image"] = document.image.generic_string();
  if (!document.sound.empty()) out["sound"] = document.sound.generic_string();
  out["add_bos"] = or_null(document.add_bos);
  if (document.parse_special) out["parse_special"] = true;
  for (const MaskedPosition& each : document.masked) out["masked"].push_back(to_json(each));
  out["selected"] = {{"layer", document.selected.layer}, {"head", document.selected.head}};
  out["query"] = or_null(document.query);
  out["key"] = or_null(document.key);
  out["too_long"] = name(document.too_long);
  out["edits"] = ordered_json::array();
  for (const Intervention& edit : document.edits) out["edits"].push_back(to_json(edit));
  return out;
}

ordered_json view_json(const View& view) {
  const AtlasView& atlas = view.atlas;
  return {{"head_view", name(view.head_view)},
          {"map_tool", name(view.map_tool)},
          {"shown", name(view.shown)},
          {"contrast", view.contrast ? ordered_json{view.contrast->first, view.contrast->second} : ordered_json()},
          {"scale", name(view.scale)},
          {"first_token", name(view.first_token)},
          {"text_unit", name(view.text_unit)},
          {"arcs_threshold", view.arcs_threshold},
          {"smooth_picture", view.smooth_picture},
          {"follow_row", view.follow_row},
          {"edit_scope", name(view.edit_scope)},
          {"theme", view.theme},
          {"atlas",
           {{"coloring", atlas.coloring},
            {"sort", atlas.sort},
            {"ascending", atlas.ascending},
            {"only_class", atlas.only_class},
            {"filter_metric", atlas.filter_metric},
            {"filter_low", atlas.filter_low},
            {"filter_high", atlas.filter_high}}},
          {"panels",
           {{"left_width", view.left_width},
            {"right_width", view.right_width},
            {"row_height", view.row_height},
            {"left_open", view.left_open},
            {"right_open", view.right_open},
            {"row_open", view.row_open}}}};
}

ordered_json window_json(const SessionWindow& window) {
  ordered_json out{{"workspace", window.workspace}, {"pages", window.pages}};
  out["controls"] = ordered_json::object();
  for (const auto& [workspace, controls] : window.controls) out["controls"][workspace] = ordered_json::parse(controls);
  return out;
}

SessionWindow window_from(const JsonView& value) {
  JsonFields fields(value);
  SessionWindow window;
  fields.read("workspace", window.workspace);
  if (const auto pages = fields.find("pages"))
    for (const auto& [workspace, page] : pages->members()) window.pages[workspace] = page.text();
  if (const auto controls = fields.find("controls"))
    for (const auto& [workspace, each] : controls->members()) {
      if (!each.is_object()) each.refuse("an object");
      window.controls[workspace] = each.json().dump();
    }
  fields.done();
  return window;
}

std::optional<Index> position_from(JsonFields& fields, const char* key) {
  std::int64_t value = 0;
  if (!fields.read(key, value, 0, most)) return std::nullopt;
  return value;
}

Document document_from(const JsonView& value) {
  JsonFields fields(value);
  Document document;
  fields.read("model", document.model);
  fields.read("text", document.text);
  if (const auto ids = fields.find("ids"))
    for (const JsonView& id : ids->elements("token ids")) document.ids.push_back(id.small(0));
  fields.read("source", document.source);
  if (const auto ids = fields.find("source_ids"))
    for (const JsonView& id : ids->elements("token ids")) document.source_ids.push_back(id.small(0));
  fields.read("stack", document.stack, stack_names);
  fields.read("image", document.image);
  fields.read("sound", document.sound);
  fields.read("parse_special", document.parse_special);
  if (const auto masked = fields.find("masked"))
    for (const JsonView& item : masked->elements("masked positions"))
      document.masked.push_back(masked_position_from(item));
  bool add_bos = false;
  if (fields.read("add_bos", add_bos)) document.add_bos = add_bos;
  if (const auto selected = fields.find("selected")) {
    JsonFields head(*selected);
    head.read("layer", document.selected.layer, 0, most);
    head.read("head", document.selected.head, 0, most);
    head.done();
  }
  fields.read_word("too_long", document.too_long, parse_too_long, "refuse, keep_first or keep_last");
  document.query = position_from(fields, "query");
  document.key = position_from(fields, "key");
  if (const auto edits = fields.find("edits"))
    for (const JsonView& edit : edits->elements("edits")) document.edits.push_back(intervention_from_json(edit));
  fields.done();
  return document;
}

View view_from(const JsonView& value) {
  JsonFields fields(value);
  View view;
  fields.read_word("head_view", view.head_view, parse_head_view, "map, arcs, row, steps, qk, heads or picture");
  fields.read_word("map_tool", view.map_tool, parse_map_tool, "look, weight or mask");
  fields.read_word("shown", view.shown, parse_shown, "after, before or difference");
  if (const auto contrast = fields.find("contrast")) {
    const std::vector<JsonView> ids = contrast->elements("token ids", 2, 2);
    view.contrast = std::pair{ids[0].small(0), ids[1].small(0)};
  }
  fields.read_word("scale", view.scale, parse_scale, "linear, log or per-row");
  fields.read_word("first_token", view.first_token, parse_first_token, "show, hide or renormalize");
  fields.read_word("text_unit", view.text_unit, parse_text_unit, "tokens or words");
  fields.read_word("edit_scope", view.edit_scope, parse_edit_scope, "head, layer or all");
  fields.read("arcs_threshold", view.arcs_threshold, 0, 1);
  fields.read("smooth_picture", view.smooth_picture);
  fields.read("follow_row", view.follow_row);
  fields.read_word("theme", view.theme, parse_theme, "dark, light or projector");
  if (const auto atlas = fields.find("atlas")) {
    JsonFields part(*atlas);
    constexpr double any = std::numeric_limits<double>::max();
    part.read("coloring", view.atlas.coloring);
    part.read("sort", view.atlas.sort);
    part.read("ascending", view.atlas.ascending);
    part.read("only_class", view.atlas.only_class);
    part.read("filter_metric", view.atlas.filter_metric);
    part.read("filter_low", view.atlas.filter_low, -any, any);
    part.read("filter_high", view.atlas.filter_high, -any, any);
    part.done();
  }
  if (const auto panels = fields.find("panels")) {
    JsonFields part(*panels);
    part.read("left_width", view.left_width, 0, widest);
    part.read("right_width", view.right_width, 0, widest);
    part.read("row_height", view.row_height, 0, widest);
    part.read("left_open", view.left_open);
    part.read("right_open", view.right_open);
    part.read("row_open", view.row_open);
    part.done();
  }
  fields.done();
  return view;
}
}  // namespace

std::string to_json(const Session& session) {
  ordered_json out{{"type", session_type}, {"version", session_version}};
  if (!session.model_note.empty()) out["model_note"] = session.model_note;
  out["document"] = document_json(session.document);
  out["view"] = view_json(session.view);
  try {
    if (session.transcript) out["generation"] = to_json(*session.transcript);
    if (session.window != SessionWindow{}) out["window"] = window_json(session.window);
    return out.dump(2) + "\n";
  } catch (const json::type_error&) {
    throw Error("session", "a text and paths in UTF-8, which JSON needs", "other bytes");
  }
}

Session session_from_json(const std::string& text, const std::string& where) {
  const json parsed = parse_strict_json(text, where);
  JsonFields fields(parsed, where);
  expect_kind(fields, where, "a session", session_type, session_version);
  Session session;
  fields.read("model_note", session.model_note);
  if (const auto document = fields.find("document")) session.document = document_from(*document);
  if (const auto view = fields.find("view")) session.view = view_from(*view);
  if (const auto transcript = fields.find("generation")) {
    session.transcript = transcript_from_json(*transcript);
    session.transcript->prompt.model = session.document.model;
  }
  if (const auto window = fields.find("window")) session.window = window_from(*window);
  fields.done();
  return session;
}

fs::path find_image(const fs::path& image, const fs::path& session_file) {
  std::error_code ignored;
  if (image.empty() || (image.is_absolute() && fs::exists(image, ignored))) return image;
  const fs::path beside = fs::absolute(session_file, ignored).parent_path();
  for (const fs::path& candidate : {beside / image, beside / image.filename()})
    if (fs::is_regular_file(candidate, ignored)) return candidate.lexically_normal();
  return image;
}

fs::path find_sound(const fs::path& sound, const fs::path& session_file) {
  std::error_code ignored;
  if (const fs::path as_named = find_image(sound, session_file); fs::is_regular_file(as_named, ignored))
    return as_named;
  const SoundPlace place = sound_place(sound);
  return path_of({find_image(place.file, session_file), place.from});
}

fs::path find_model(const fs::path& model, const fs::path& session_file) {
  std::error_code ignored;
  if (model.empty()) return model;
  if (const AdaptedPath parts = adapted_path(model); !parts.adapter.empty())
    return with_adapter(find_model(parts.model, session_file), parts.adapter);
  if (model.is_absolute() && fs::exists(model, ignored)) return model.lexically_normal();
  const fs::path beside = fs::absolute(session_file, ignored).parent_path();
  for (const fs::path& candidate : {beside / model, beside / model.filename()})
    if (fs::exists(candidate / "config.json", ignored) || fs::is_regular_file(candidate, ignored))
      return candidate.lexically_normal();
  if (const auto bundled = find_bundled_model(model.filename().string())) return bundled->lexically_normal();
  return model;
}

}  // namespace headscope
