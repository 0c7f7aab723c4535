#pragma once
// Text ↔ token ids, with the byte span of every token in the text.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/trace/trace.h"

namespace headscope {

/// A text of more tokens than were asked for, told from its length before it was read.
struct TooManyTokens : Error {
  TooManyTokens(std::size_t at_least, std::size_t most);
  std::size_t at_least;
};

class Tokenizer {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  struct Options {
    bool parse_special = false;  ///< read "<|endoftext|>" in the text as the special token
    /// A text that has more tokens than this even if each is the longest of the vocabulary is refused early, with
    /// TooManyTokens. (A text that has not may still give more.)
    std::size_t most_tokens = unlimited;
    std::stop_token stop = {};
  };
  virtual ~Tokenizer() = default;

  /// Tokens of `text`, no BOS added. Spans are byte offsets into `text`; the spans of tokens that share one character
  /// nest inside it, so every byte of the text belongs to exactly one token. Throws Error on invalid UTF-8 (names the
  /// byte offset), Cancelled when a stop is requested.
  virtual std::vector<Token> encode(std::string_view text, Options options) const = 0;
  std::vector<Token> encode(std::string_view text) const { return encode(text, Options{}); }
  /// A token by id, spans −1. Throws Error when id is outside [0, vocab_size()).
  virtual Token token(std::int32_t id) const = 0;
  /// The bytes that a sequence of ids stands for (specials give nothing). Where encode() puts a space in front of every
  /// text (Llama), one leading space is taken away again: decode(encode(text)) is the text.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  virtual int vocab_size() const = 0;
  virtual std::optional<std::int32_t> bos() const = 0;
  virtual std::optional<std::int32_t> eos() const = 0;
  /// True when the model was trained with BOS before every text and runs should add it (Llama: yes, GPT-2: no).
  virtual bool adds_bos() const = 0;
  /// Behind every text that an encoder reads, and between two of them ("[SEP]").
  virtual std::optional<std::int32_t> behind() const { return std::nullopt; }
  /// What stands in place of a token that is to be told ("[MASK]").
  virtual std::optional<std::int32_t> mask() const { return std::nullopt; }
  virtual std::string describe() const = 0;  ///< "byte-level BPE, 50257 tokens"
};

/// Of a model's path (core/io/model_location.h): a GGUF file's own, tokenizer.bin beside a llama2.c file, else in the
/// folder. Finds tokenizer.json, or tokenizer.model, or vocab.json + merges.txt in a model folder (in this order),
/// honouring tokenizer_config.json, special_tokens_map.json, added_tokens.json and the bos and eos ids of config.json.
/// A vocab.json without merges.txt is a vocabulary of single characters. Returns null when the folder has none of them
/// (the model then runs on --ids only). Throws Error on a broken file, and, naming the key, on one that asks for what
/// is not supported.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace headscope
