#include "core/text/chat_template.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/io/gguf.h"
#include "core/io/json_view.h"
#include "core/io/model_location.h"
#include "core/text/jinja/template.h"

namespace headscope {

namespace fs = std::filesystem;

struct ChatTemplate::Parsed {
  jinja::Template body;
};

ChatTemplate::ChatTemplate(const std::string& source, std::string where, Specials specials)
    : specials_(std::move(specials)), where_(std::move(where)) {
  if (const auto at = first_invalid_utf8(source))
    throw Error(where_, "UTF-8", fmt::format("other bytes at offset {}", *at));
  parsed_ = std::make_shared<const Parsed>(Parsed{jinja::Template(source, where_)});
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages, Options options) const {
  jinja::List list;
  for (const ChatMessage& each : messages)
    list.emplace_back(jinja::Members{{"role", each.role}, {"content", each.content}});
  jinja::Members variables{{"messages", list}, {"add_generation_prompt", options.answer_follows}};
  // What Hugging Face's tools give to every template, also when nobody asked for it.
  for (const char* name : {"tools", "documents"}) variables.emplace_back(name, jinja::None{});
  for (const auto& [name, token] : specials_) variables.emplace_back(name, token);
  return parsed_->body.render(variables, options.now);
}

namespace {

/// "<s>" or {"content": "<s>", …}.
ChatTemplate::Specials special_names(const JsonView& config) {
  ChatTemplate::Specials out;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (const auto found = config.find(key))
      out.emplace_back(key, found->is_text() ? found->text() : found->at("content").text());
  return out;
}

std::optional<std::string> template_in(const JsonView& config) {
  const auto found = config.find("chat_template");
  if (!found || found->is_text()) return found ? std::optional(found->text()) : std::nullopt;
  const auto several = found->elements("templates", 1);
  for (const JsonView& each : several)
    if (each.at("name").text() == "default") return each.at("template").text();
  found->refuse("a template called \"default\"", fmt::format("{} of other names", several.size()));
}

std::optional<ChatTemplate> in_gguf(const fs::path& path) {
  const GgufFile file = GgufFile::open(path);
  const std::string key = "tokenizer.chat_template";
  const std::string* source = file.find<std::string>(key);
  if (!source) return std::nullopt;
  ChatTemplate::Specials specials;
  const auto* tokens = file.find<std::vector<std::string>>("tokenizer.ggml.tokens");
  for (const auto& [name, id_key] :
       {std::pair("bos_token", "bos_token_id"), std::pair("eos_token", "eos_token_id"),
        std::pair("unk_token", "unknown_token_id"), std::pair("pad_token", "padding_token_id")}) {
    const auto* id = file.find<std::int64_t>(std::string("tokenizer.ggml.") + id_key);
    if (tokens && id && *id >= 0 && *id < static_cast<std::int64_t>(tokens->size()))
      specials.emplace_back(name, (*tokens)[static_cast<std::size_t>(*id)]);
  }
  return ChatTemplate(*source, path.string() + ": " + key, std::move(specials));
}

}  // namespace

std::optional<ChatTemplate> load_chat_template(const fs::path& model) {
  const ModelLocation place = locate_model(model);
  if (place.format == ModelLocation::Format::gguf) return in_gguf(place.weights);
  if (place.self_contained()) return std::nullopt;
  std::error_code ignored;
  ChatTemplate::Specials specials;
  std::optional<std::string> source;
  const fs::path config = place.folder / "tokenizer_config.json", own = place.folder / "chat_template.jinja";
  std::string where = config.string() + ": chat_template";
  if (fs::exists(config, ignored)) {
    const nlohmann::json document = read_json_file(config);
    const JsonView view(document, config.string());
    specials = special_names(view);
    if (!fs::exists(own, ignored)) source = template_in(view);
  }
  if (fs::exists(own, ignored)) {
    source = read_file(own);
    where = own.string();
  }
  if (!source) return std::nullopt;
  return ChatTemplate(*source, where, std::move(specials));
}

}  // namespace headscope
