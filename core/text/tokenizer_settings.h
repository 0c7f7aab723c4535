#pragma once
// What the small files beside a tokenizer say: tokenizer_config.json, special_tokens_map.json, added_tokens.json and
// config.json. All are optional.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/text/added_tokens.h"
#include "core/text/vocabulary.h"

namespace headscope {

struct TokenizerSettings {
  std::optional<std::string> bos, eos, unk, mask;
  std::vector<std::string> special;  ///< every token that these files call special, bos and eos among them
  std::optional<bool> add_bos, add_prefix_space;
  std::vector<AddedToken> added;  ///< of added_tokens.json and added_tokens_decoder
  std::string tokenizer_class;    ///< "GPT2Tokenizer", "" = not given
  std::optional<std::int64_t> config_bos, config_eos;
  std::filesystem::path folder;
};

/// Throws Error when one of the files is there but broken.
TokenizerSettings read_tokenizer_settings(const std::filesystem::path& folder);

/// The vocabulary's entries and the added tokens as one list; an added token may repeat an entry, with the same id.
/// Tokens that the settings call special and that the vocabulary has are put into `added` when they are not there yet.
Vocabulary join_vocabulary(const std::string& where, std::vector<Vocabulary::Entry> entries,
                           std::vector<AddedToken>& added, const TokenizerSettings& settings);

/// What a tokenizer's own rules put around every text.
struct TextFrame {
  std::optional<std::int32_t> front, behind;
};

struct SpecialIds {
  std::optional<std::int32_t> bos, eos;
  std::optional<std::int32_t> behind;  ///< put behind every text that is read whole
  std::optional<std::int32_t> mask;    ///< stands for a token that is to be told
  bool adds_bos = false;
};
/// `added_in_front`: the id that the tokenizer's own rules put before every text. Order of belief: that id, the names
/// in tokenizer_config.json, those in special_tokens_map.json, the numbers in config.json (ignored when the vocabulary
/// has no such id: configurations of small models often carry GPT-2's 50256).
SpecialIds special_ids(const TokenizerSettings& settings, const Vocabulary& vocabulary,
                       std::optional<std::int32_t> added_in_front, bool adds_bos_by_default);

}  // namespace headscope
