// vocab.txt, BERT's own file, and ESM's: a piece per line, its id the line's number (Devlin et al., BERT, 2019). What
// else there is to say stands in tokenizer_config.json, or is as it was for BERT.

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/io/json_view.h"
#include "core/text/pipeline_tokenizer.h"

namespace headscope {

namespace {

constexpr std::size_t largest_vocab_file = std::size_t{64} << 20;

nlohmann::json vocabulary_of(const std::filesystem::path& path) {
  const std::string text = read_file(path, largest_vocab_file);
  if (const auto bad = first_invalid_utf8(text))
    throw Error(path.string(), "valid UTF-8",
                fmt::format("byte 0x{} at offset {}", hex_byte(static_cast<unsigned char>(text[*bad])), *bad));
  nlohmann::json vocab = nlohmann::json::object();
  std::int32_t id = 0;
  for (std::size_t at = 0; at < text.size(); ++id) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string piece = text.substr(at, end - at);
    if (piece.ends_with('\r')) piece.pop_back();
    vocab[piece] = id;  // of a piece that stands twice the last counts
    at = end + 1;
  }
  return vocab;
}

/// The residues of ESM: whatever the vocabulary has is a token wherever it stands, and what it lacks an unknown one, as
/// long as it goes on.
std::shared_ptr<const Tokenizer> residues(const nlohmann::json& vocab, const std::string& where,
                                          const TokenizerSettings& given) {
  TokenizerSettings settings = given;
  settings.bos = settings.bos.value_or("<cls>");
  if (!settings.mask && vocab.contains("<mask>")) settings.mask = "<mask>";
  nlohmann::json added = nlohmann::json::array();
  for (const auto& [piece, id] : vocab.items())
    if (!piece.empty())
      added.push_back({{"id", id},
                       {"content", piece},
                       {"special", piece.starts_with('<') && piece.ends_with('>')},
                       {"normalized", false}});
  return make_tokenizer({{"added_tokens", added},
                         {"normalizer", nullptr},
                         {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
                         {"post_processor",
                          {{"type", "BertProcessing"},
                           {"sep", nlohmann::json::array({"<eos>", vocab.at("<eos>")})},
                           {"cls", nlohmann::json::array({"<cls>", vocab.at("<cls>")})}}},
                         {"decoder", {{"type", "Fuse"}}},
                         {"model", {{"type", "WordLevel"}, {"unk_token", "<unk>"}, {"vocab", vocab}}}},
                        where, settings, false);
}

}  // namespace

std::shared_ptr<const Tokenizer> read_vocab_txt(const TokenizerSettings& given) {
  const std::filesystem::path path = given.folder / "vocab.txt", config = given.folder / "tokenizer_config.json";
  const nlohmann::json vocab = vocabulary_of(path);
  if (!vocab.contains("[CLS]") && vocab.contains("<cls>") && vocab.contains("<eos>") && vocab.contains("<unk>"))
    return residues(vocab, path.string(), given);
  bool lowercase = true, chinese = true;
  nlohmann::json accents;  // null: as `lowercase`
  std::error_code ignored;
  if (std::filesystem::exists(config, ignored)) {
    const nlohmann::json document = read_json_file(config);
    const JsonView file(document, config.string());
    lowercase = file.flag_or("do_lower_case", lowercase);
    chinese = file.flag_or("tokenize_chinese_chars", chinese);
    if (const auto found = file.find("strip_accents")) accents = found->flag();
  }

  const std::string unknown = given.unk.value_or("[UNK]"), front = "[CLS]", behind = "[SEP]";
  TokenizerSettings settings = given;
  if (!settings.mask && vocab.contains("[MASK]")) settings.mask = "[MASK]";
  nlohmann::json added = nlohmann::json::array();
  for (const std::string& name : {std::string("[PAD]"), unknown, front, behind, settings.mask.value_or("[MASK]")})
    if (const auto found = vocab.find(name); found != vocab.end())
      added.push_back({{"id", *found}, {"content", name}, {"special", true}, {"normalized", false}});
  for (const std::string& name : {unknown, front, behind})
    if (!vocab.contains(name)) throw Error(path.string(), fmt::format("a line {}", name), "none");

  return make_tokenizer({{"added_tokens", added},
                         {"normalizer",
                          {{"type", "BertNormalizer"},
                           {"clean_text", true},
                           {"handle_chinese_chars", chinese},
                           {"strip_accents", accents},
                           {"lowercase", lowercase}}},
                         {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                         {"post_processor",
                          {{"type", "BertProcessing"},
                           {"sep", nlohmann::json::array({behind, vocab.at(behind)})},
                           {"cls", nlohmann::json::array({front, vocab.at(front)})}}},
                         {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                         {"model",
                          {{"type", "WordPiece"},
                           {"unk_token", unknown},
                           {"continuing_subword_prefix", "##"},
                           {"max_input_chars_per_word", 100},
                           {"vocab", vocab}}}},
                        path.string(), settings, false);
}

}  // namespace headscope
