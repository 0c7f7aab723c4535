#include "core/run/run_request.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"
#include "core/run/target_rules.h"
#include "core/text/chat_template.h"
#include "core/text/class_names.h"
#include "core/text/source_tokenizer.h"

namespace headscope {

namespace {
using nlohmann::json;
using nlohmann::ordered_json;

ordered_json as_json(const RunRequest& request) {
  ordered_json capture;
  capture["maps"] = name_in(map_storage_names, request.capture.maps);
  capture["sites"] = json::array();
  for (const SiteKind kind : request.capture.sites) capture["sites"].push_back(std::string(info(kind).pattern));
  capture["layers"] = request.capture.layers;
  capture["all_logits"] = request.capture.all_logits;
  capture["byte_budget"] = request.capture.byte_budget;

  ordered_json result;
  result["model"] = request.model.generic_string();
  result["text"] = request.text;
  result["ids"] = request.ids;
  // Left out where there is none, as all that came later: other runs keep their hashes.
  if (!request.source.empty()) result["source"] = request.source;
  if (!request.source_ids.empty()) result["source_ids"] = request.source_ids;
  if (!request.image.empty()) result["image"] = request.image.generic_string();
  if (!request.sound.empty()) result["sound"] = request.sound.generic_string();
  result["add_bos"] = request.add_bos ? ordered_json(*request.add_bos) : ordered_json(nullptr);
  if (request.ids_are_whole) result["ids_are_whole"] = true;  // left out else, as edits are
  result["parse_special"] = request.parse_special;
  for (const MaskedPosition& each : request.masked) result["masked"].push_back(to_json(each));  // as edits are
  result["too_long"] = name_in(too_long_names, request.too_long);
  result["capture"] = capture;
  // Left out when there are none: a run without edits keeps the hash it had before there were any.
  for (const Intervention& edit : request.edits) result["edits"].push_back(to_json(edit));
  return result;
}

CaptureSpec capture_from(const JsonView& value) {
  JsonFields fields(value);
  CaptureSpec spec;
  fields.read("maps", spec.maps, map_storage_names);
  if (const auto sites = fields.find("sites"))
    for (const JsonView& item : sites->elements("site names")) {
      const auto kind = item.is_text() ? parse_site_kind(item.text()) : std::nullopt;
      if (!kind) item.refuse("the name of a kind of site, such as \"pattern\" or \"resid_pre\"");
      spec.sites.insert(*kind);
    }
  if (const auto layers = fields.find("layers"))
    for (const JsonView& item : layers->elements("layer numbers")) spec.layers.insert(item.small());
  fields.read("all_logits", spec.all_logits);
  if (const auto budget = fields.find("byte_budget")) spec.byte_budget = budget->natural();
  fields.done();
  return spec;
}

}  // namespace

std::string to_json(const RunRequest& request) {
  try {
    return as_json(request).dump(2);
  } catch (const json::type_error&) {
    const auto offset = first_invalid_utf8(request.text + request.source);
    throw Error(offset ? "text" : "model", "UTF-8, which JSON needs",
                offset ? fmt::format("an invalid sequence at byte {}", *offset) : "a path of other bytes");
  }
}

RunRequest run_request_from_json(const std::string& text, const std::string& where) {
  const json parsed = parse_strict_json(text, where);
  return run_request_from_json(JsonView(parsed, where));
}

RunRequest run_request_from_json(const JsonView& value) {
  JsonFields fields(value);
  RunRequest request;
  fields.read("model", request.model);
  if (request.model.empty()) value.refuse("\"model\", the path of a model folder", "none");
  fields.read("text", request.text);
  if (const auto ids = fields.find("ids"))
    for (const JsonView& item : ids->elements("token ids")) request.ids.push_back(item.small());
  fields.read("image", request.image);
  fields.read("sound", request.sound);
  fields.read("source", request.source);
  if (const auto ids = fields.find("source_ids"))
    for (const JsonView& item : ids->elements("token ids")) request.source_ids.push_back(item.small());
  const bool source =
      !request.source.empty() || !request.source_ids.empty() || !request.sound.empty();  // then a target may be empty
  if (request.text.empty() && request.ids.empty() && request.image.empty() && !source)
    value.refuse("\"text\", \"ids\" or \"image\"", "neither");
  bool add_bos = false;
  if (fields.read("add_bos", add_bos)) request.add_bos = add_bos;
  fields.read("ids_are_whole", request.ids_are_whole);
  fields.read("parse_special", request.parse_special);
  if (const auto masked = fields.find("masked"))
    for (const JsonView& item : masked->elements("masked positions"))
      request.masked.push_back(masked_position_from(item));
  fields.read("too_long", request.too_long, too_long_names);
  if (const auto capture = fields.find("capture")) request.capture = capture_from(*capture);
  if (const auto edits = fields.find("edits"))
    for (const JsonView& edit : edits->elements("edits")) request.edits.push_back(intervention_from_json(edit));
  fields.done();
  return request;
}

std::uint64_t hash(const RunRequest& request) {
  // Over the compact JSON, which has one spelling per request. A text that is not UTF-8 never runs, so it does not
  // matter that its broken bytes are replaced here.
  return fnv1a(as_json(request).dump(-1, ' ', false, json::error_handler_t::replace));
}

LoadedModel load_model(const std::filesystem::path& folder, Backend& backend, const LoadWatch& watch) {
  LoadedModel out{Model::load(folder, backend, watch), nullptr};
  if (const auto& vision = out.model->config().vision) {
    if (!vision->labels.empty()) out.tokenizer = class_names(vision->labels);
    return out;
  }
  out.tokenizer = load_tokenizer(folder);
  out.target = load_target_rules(folder, out.model->config());
  if (out.model->encoder() && !out.target) {
    out.source_tokenizer = load_source_tokenizer(folder);
    if (!out.source_tokenizer) out.source_tokenizer = out.tokenizer;
  }
  try {
    if (auto chat = load_chat_template(folder)) out.chat = std::make_shared<const ChatTemplate>(std::move(*chat));
  } catch (const Error& broken) {  // the model runs without
    out.chat_trouble = broken.what();
  }
  return out;
}

}  // namespace headscope
