#include "app/state/lesson_record.h"

#include <fmt/format.h>

#include "app/assets.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"

namespace headscope {

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

}  // namespace

std::string lesson_step_text(const Session& session) {
  const Document& d = session.document;
  std::string out = "## A step\n\nWhat it shows.\n\n```show\n";
  nlohmann::ordered_json rest;
  const auto line = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    if (const auto byte = first_invalid_utf8(value))
      throw Error("lesson step", fmt::format("a {} in UTF-8, as a lesson's file is", key),
                  fmt::format("another byte at {}", *byte));
    if (fits_a_line(value))
      out += fmt::format("{}: {}\n", key, value);
    else
      rest[key] = value;
  };
  line("model", model_name(d.model));
  if (d.ids.empty())
    line("text", d.text);
  else
    rest["ids"] = d.ids;
  line("source", d.source);
  if (!d.image.empty()) rest["image"] = d.image.generic_string();
  line("stack", std::string(name_in(stack_names, d.stack)));
  for (const Intervention& edit : d.edits)
    if (edit.enabled) line("edit", describe(edit));
  line("head", to_string(d.selected));
  if (d.query && d.key)
    line("cell", fmt::format("{} {}", *d.query, *d.key));
  else if (d.query)
    line("row", std::to_string(*d.query));
  const std::string& workspace = session.window.workspace;
  if (workspace.empty() || workspace == "Explore") {
    line("view", std::string(name(session.view.head_view)));
  } else {
    line("workspace", workspace);
    if (const auto page = session.window.pages.find(workspace); page != session.window.pages.end())
      line("page", page->second);
  }
  if (!rest.empty()) out += fmt::format("session: {}\n", nlohmann::ordered_json{{"document", rest}}.dump());
  return out + "```\n";
}

}  // namespace headscope
