#pragma once
// The tokenizer that a tokenizer.json (or vocab.json + merges.txt) describes: added tokens, normaliser, splitter, and
// the model that cuts words into tokens, in this order.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/text/added_tokens.h"
#include "core/text/normalizer.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/tokenizer.h"
#include "core/text/tokenizer_settings.h"
#include "core/text/vocabulary.h"
#include "core/text/word_model.h"

namespace headscope {

/// From the spelling of a token to the bytes it stands for.
struct SpellingRule {
  bool byte_level = false;                                   ///< GPT-2's byte alphabet
  bool byte_fallback = false;                                ///< "<0x0A>" is one byte
  std::vector<std::pair<std::string, std::string>> replace;  ///< "▁" by " "
  /// WordPiece's: tokens with this prefix stand inside a word, others after a space.
  std::optional<std::string> inside_prefix;
  bool strips_leading_space = false;

  /// Throws Error when the replacements make a token grow without measure.
  std::string bytes_of(const std::string& spelling) const;
};

struct PipelineParts {
  std::string where;  ///< the file, for Errors
  std::string description;
  Vocabulary vocabulary;  ///< with the added tokens
  std::unique_ptr<const WordModel> model;
  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  SpellingRule spelling;
  SpecialIds special;
};

std::shared_ptr<const Tokenizer> make_pipeline_tokenizer(PipelineParts parts);

/// ByteLevel's steps: an optional space in front of every word, and GPT-2's rule for words.
void add_byte_level_steps(std::vector<PreTokenizerStep>& steps, bool add_prefix_space, bool use_regex,
                          const std::string& where);

/// Reads a tokenizer.json. Null when it describes a kind of model that is not known and `or_null` is set.
std::shared_ptr<const Tokenizer> read_tokenizer_json(const std::filesystem::path& path,
                                                     const TokenizerSettings& settings, bool or_null);
/// The same from the text of such a file; `where` names it in Errors.
std::shared_ptr<const Tokenizer> make_tokenizer(const nlohmann::json& document, const std::string& where,
                                                const TokenizerSettings& settings, bool or_null);
/// Reads vocab.json and, where it exists, merges.txt from the folder of the settings. A vocabulary without merges must
/// consist of single characters (each is a token, anything else an Error), or of GPT-2's 256 bytes. One with <s>, </s>
/// and <mask> is RoBERTa's: those stand around every text.
std::shared_ptr<const Tokenizer> read_vocab_and_merges(const TokenizerSettings& settings);
/// Reads vocab.txt from the folder of the settings: BERT's own form, with lower case and accents as
/// tokenizer_config.json says.
std::shared_ptr<const Tokenizer> read_vocab_txt(const TokenizerSettings& settings);

}  // namespace headscope
