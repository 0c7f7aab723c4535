#include "core/text/tokenizer_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/io/json_view.h"

namespace headscope {

namespace {

namespace fs = std::filesystem;

/// "<s>" or {"content": "<s>", …}.
std::string token_name(const JsonView& value) {
  return value.is_text() ? value.text() : value.at("content").text();
}

void read_special_names(const JsonView& file, TokenizerSettings& settings) {
  const auto read = [&](const char* key, std::optional<std::string>* name) {
    const auto found = file.find(key);
    if (!found) return;
    std::string content = token_name(*found);
    if (content.empty()) return;
    if (name && !*name) *name = content;
    settings.special.push_back(std::move(content));
  };
  read("bos_token", &settings.bos);
  read("eos_token", &settings.eos);
  read("unk_token", &settings.unk);
  read("mask_token", &settings.mask);
  for (const char* key : {"pad_token", "sep_token", "cls_token"}) read(key, nullptr);
  if (const auto more = file.find("additional_special_tokens"))
    for (const JsonView& name : more->elements()) settings.special.push_back(token_name(name));
}

std::int32_t token_id(const JsonView& where, std::int64_t id) {
  if (id < 0 || id > INT32_MAX) where.refuse("a token id", fmt::format("{}", id));
  return static_cast<std::int32_t>(id);
}

void read_added_tokens_decoder(const JsonView& decoder, TokenizerSettings& settings) {
  for (const auto& [key, value] : decoder.members()) {
    std::int64_t id = -1;
    const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc{} || stop != key.data() + key.size()) value.refuse("a token id as the key", key);
    AddedToken token;
    token.content = value.at("content").text();
    token.id = token_id(value, id);
    token.special = value.flag_or("special", false);
    token.single_word = value.flag_or("single_word", false);
    token.lstrip = value.flag_or("lstrip", false);
    token.rstrip = value.flag_or("rstrip", false);
    token.normalized = value.flag_or("normalized", !token.special);
    settings.added.push_back(std::move(token));
  }
}

/// Where each content is first listed.
std::unordered_map<std::string, std::size_t> places_of(const std::vector<AddedToken>& added) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < added.size(); ++i) places.emplace(added[i].content, i);
  return places;
}

void read_added_tokens(const JsonView& file, TokenizerSettings& settings) {
  const auto listed = places_of(settings.added);  // the file itself names nothing twice
  for (const auto& [content, value] : file.members()) {
    const std::int32_t id = token_id(value, value.integer());
    const auto same = listed.find(content);
    if (same == listed.end())
      settings.added.push_back({.content = content, .id = id, .normalized = true});
    else if (const std::int32_t before = settings.added[same->second].id; before != id)
      value.refuse(fmt::format("id {}, as in tokenizer_config.json", before), fmt::format("{}", id));
  }
}

std::optional<std::int64_t> config_id(const JsonView& config, const char* key) {
  const auto found = config.find(key);
  if (!found) return std::nullopt;
  if (!found->is_array()) return found->integer();
  const auto several = found->elements();  // instruction-tuned models list several ends
  return several.empty() ? std::nullopt : std::optional(several.front().integer());
}

}  // namespace

TokenizerSettings read_tokenizer_settings(const fs::path& folder) {
  TokenizerSettings settings;
  settings.folder = folder;
  const auto with_file = [&](const char* name, const auto& read) {
    const fs::path path = folder / name;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return;
    const nlohmann::json document = read_json_file(path);
    read(JsonView(document, path.string()));
  };
  with_file("tokenizer_config.json", [&](const JsonView& file) {
    read_special_names(file, settings);
    if (const auto found = file.find("add_bos_token")) settings.add_bos = found->flag();
    if (const auto found = file.find("add_prefix_space")) settings.add_prefix_space = found->flag();
    settings.tokenizer_class = file.text_or("tokenizer_class", "");
    if (const auto found = file.find("added_tokens_decoder")) read_added_tokens_decoder(*found, settings);
  });
  with_file("special_tokens_map.json", [&](const JsonView& file) { read_special_names(file, settings); });
  with_file("added_tokens.json", [&](const JsonView& file) { read_added_tokens(file, settings); });
  with_file("config.json", [&](const JsonView& file) {
    settings.config_bos = config_id(file, "bos_token_id");
    settings.config_eos = config_id(file, "eos_token_id");
  });
  return settings;
}

Vocabulary join_vocabulary(const std::string& where, std::vector<Vocabulary::Entry> entries,
                           std::vector<AddedToken>& added, const TokenizerSettings& settings) {
  std::unordered_map<std::string, std::int64_t> ids;
  ids.reserve(entries.size());
  for (const Vocabulary::Entry& entry : entries) ids.emplace(entry.spelling, entry.id);
  for (const AddedToken& token : added) {
    const auto [known, is_new] = ids.emplace(token.content, token.id);
    if (is_new)
      entries.push_back({token.content, token.id});
    else if (known->second != token.id)
      throw Error(
          where,
          fmt::format("id {} for the added token '{}', as in the vocabulary", known->second, excerpt(token.content)),
          fmt::format("id {}", token.id));
  }
  auto listed = places_of(added);
  for (const std::string& name : settings.special) {
    const auto known = ids.find(name);
    if (known == ids.end()) continue;
    const auto [place, is_new] = listed.emplace(name, added.size());
    if (is_new)
      added.push_back({.content = name, .id = static_cast<std::int32_t>(known->second), .special = true});
    else
      added[place->second].special = true;
  }
  return Vocabulary(where, std::move(entries));
}

SpecialIds special_ids(const TokenizerSettings& settings, const Vocabulary& vocabulary,
                       std::optional<std::int32_t> added_in_front, bool adds_bos_by_default) {
  const auto resolve = [&](const std::optional<std::string>& name,
                           std::optional<std::int64_t> number) -> std::optional<std::int32_t> {
    if (name)
      if (const auto id = vocabulary.find(*name)) return id;
    if (number && *number >= 0 && *number < vocabulary.size()) return static_cast<std::int32_t>(*number);
    return std::nullopt;
  };
  SpecialIds ids;
  ids.bos = added_in_front ? added_in_front : resolve(settings.bos, settings.config_bos);
  ids.eos = resolve(settings.eos, settings.config_eos);
  for (const std::string& name : {settings.mask.value_or(""), std::string("[MASK]"), std::string("<mask>")})
    if (!ids.mask && !name.empty()) ids.mask = vocabulary.find(name);
  ids.adds_bos = settings.add_bos.value_or(added_in_front.has_value() || adds_bos_by_default);
  if (ids.adds_bos && !ids.bos) {
    if (settings.add_bos)
      throw Error((settings.folder / "tokenizer_config.json").string() + ": add_bos_token",
                  "a beginning-of-text token to add",
                  settings.bos ? fmt::format("bos_token '{}', which the vocabulary does not have", *settings.bos)
                               : "no bos_token and no bos_token_id");
    ids.adds_bos = false;
  }
  return ids;
}

}  // namespace headscope
