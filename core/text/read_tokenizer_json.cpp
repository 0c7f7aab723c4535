// tokenizer.json, the file format of Hugging Face's tokenizers library. What is not supported is refused by its key.

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/text/bpe_tokenizer.h"
#include "core/text/tokenizer_json_steps.h"

namespace headscope {

namespace {

std::vector<Vocabulary::Entry> read_vocab(const JsonView& vocab) {
  if (!vocab.is_object()) vocab.refuse("an object of tokens and ids", vocab.shown());
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(vocab.json().size());
  for (const auto& [spelling, id] : vocab.json().items()) {
    if (!id.is_number_integer())
      JsonView(id, fmt::format("{}.{}", vocab.where(), excerpt(spelling))).integer();  // throws
    entries.push_back({spelling, id.get<std::int64_t>()});
  }
  return entries;
}

/// "a b" in older files, ["a", "b"] in newer ones, whose tokens may then hold spaces.
std::vector<BpeModel::Merge> read_merges(const JsonView& merges, const Vocabulary& vocabulary) {
  if (!merges.is_array()) merges.refuse("an array of merges", merges.shown());
  std::vector<BpeModel::Merge> read;
  read.reserve(merges.json().size());
  for (const auto& merge : merges.json()) {
    const std::string where = fmt::format("{}[{}]", merges.where(), read.size());
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      read.push_back(merge_of(vocabulary, merge[0].get<std::string>(), merge[1].get<std::string>(), where));
      continue;
    }
    const std::string line = merge.is_string() ? merge.get<std::string>() : "";
    const auto space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      JsonView(merge, where).refuse("two tokens: \"a b\" or [\"a\", \"b\"]", JsonView(merge, where).shown());
    read.push_back(merge_of(vocabulary, line.substr(0, space), line.substr(space + 1), where));
  }
  return read;
}

std::vector<AddedToken> read_added(const JsonView& file) {
  std::vector<AddedToken> added;
  const auto list = file.find("added_tokens");
  if (!list) return added;
  for (const JsonView& entry : list->elements()) {
    AddedToken token;
    token.content = entry.at("content").text();
    if (token.content.empty()) entry.refuse("a token with content", "an empty one");
    const std::int64_t id = entry.at("id").integer();
    if (id < 0 || id > INT32_MAX) entry.refuse("a token id", fmt::format("{}", id));
    token.id = static_cast<std::int32_t>(id);
    token.special = entry.flag_or("special", false);
    token.single_word = entry.flag_or("single_word", false);
    token.lstrip = entry.flag_or("lstrip", false);
    token.rstrip = entry.flag_or("rstrip", false);
    token.normalized = entry.flag_or("normalized", !token.special);
    added.push_back(std::move(token));
  }
  return added;
}

void refuse_unsupported(const JsonView& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto found = model.find(key); found && !found->text().empty())
      found->refuse("none: tokens that mark the inside or the end of words are not supported", found->shown());
  if (const auto dropout = model.find("dropout"); dropout && dropout->json() != 0)
    dropout->refuse("none: the same text must always give the same tokens", dropout->shown());
}

BpeModel::Options read_options(const JsonView& model, const Vocabulary& vocabulary) {
  BpeModel::Options options;
  options.ignore_merges = model.flag_or("ignore_merges", false);
  options.fuse_unk = model.flag_or("fuse_unk", false);
  if (const auto unk = model.find("unk_token")) {
    options.unk = vocabulary.find(unk->text());
    if (!options.unk) unk->refuse("a token of the vocabulary", unk->shown());
  }
  if (model.flag_or("byte_fallback", false)) {
    options.byte_fallback.emplace();
    for (std::size_t byte = 0; byte < 256; ++byte)
      (*options.byte_fallback)[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  return options;
}

std::string model_type(const JsonView& model) {
  // Files written before the library knew several kinds do not say.
  return model.text_or("type", model.find("merges") ? "BPE" : "unknown");
}

}  // namespace

std::shared_ptr<const Tokenizer> read_tokenizer_json(const std::filesystem::path& path,
                                                     const TokenizerSettings& settings, bool or_null) {
  return make_tokenizer(read_json_file(path), path.string(), settings, or_null);
}

std::shared_ptr<const Tokenizer> make_tokenizer(const nlohmann::json& document, const std::string& where,
                                                const TokenizerSettings& settings, bool or_null) {
  const JsonView file(document, where);
  const JsonView model = file.at("model");
  if (const std::string type = model_type(model); type != "BPE") {
    if (or_null) return nullptr;
    throw Error(model.where() + ".type", "BPE", type,
                "the text can be given as token ids (--ids) that another program made");
  }
  refuse_unsupported(model);

  BpeParts parts;
  parts.where = where;
  parts.words = read_vocab(model.at("vocab"));
  parts.added = read_added(file);
  parts.vocabulary = join_vocabulary(model.where() + ".vocab", parts.words, parts.added, settings);
  parts.merges = read_merges(model.at("merges"), parts.vocabulary);
  parts.options = read_options(model, parts.vocabulary);
  if (const auto normalizer = file.find("normalizer")) read_normalizer(*normalizer, parts.normalizer);
  if (const auto steps = file.find("pre_tokenizer"))
    parts.options.byte_level = read_pre_tokenizer(*steps, settings.add_prefix_space, parts.pre_tokenizer);
  if (const auto decoder = file.find("decoder"))
    read_decoder(*decoder, parts.spelling);
  else
    parts.spelling.byte_level = parts.options.byte_level;

  std::optional<std::int32_t> in_front;
  if (const auto post = file.find("post_processor")) in_front = read_token_in_front(*post, parts.vocabulary);
  parts.special =
      special_ids(settings, parts.vocabulary, in_front, settings.tokenizer_class.starts_with("LlamaTokenizer"));
  parts.description = parts.options.byte_level      ? "byte-level BPE"
                      : parts.options.byte_fallback ? "BPE with byte fallback"
                                                    : "character-level BPE";
  return make_bpe_tokenizer(std::move(parts));
}

}  // namespace headscope
