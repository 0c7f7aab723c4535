#pragma once
// What every tokenizer here shares: a table of its tokens, the search for special tokens in the text, and the promise
// that every byte of the text belongs to exactly one token.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/added_tokens.h"
#include "core/text/tokenizer.h"
#include "core/text/vocabulary.h"

namespace headscope {

class TableTokenizer : public Tokenizer {
 public:
  struct Entry {
    std::string bytes;    ///< what the token stands for
    std::string name;     ///< shown in place of `bytes`: special tokens, ids without a token; "" = show the bytes
    bool inside = false;  ///< goes on with a word
  };
  struct Table {
    std::vector<Entry> entries;  ///< by id
    std::vector<AddedToken> added;
    std::optional<std::int32_t> bos, eos, behind, mask;
    bool adds_bos = false;
    bool strips_leading_space = false;  ///< encode() puts a space in front of the text, so decode() takes one away
    std::string inside_prefix;  ///< "##": of what goes on with a word; decode() writes it where no word has begun
    std::string description;    ///< "byte-level BPE"; the number of tokens is appended
  };

  using Tokenizer::encode;
  std::vector<Token> encode(std::string_view text, Options options) const final;
  Token token(std::int32_t id) const final;
  std::string decode(std::span<const std::int32_t> ids) const final;
  int vocab_size() const final { return static_cast<int>(table_.entries.size()); }
  std::optional<std::int32_t> bos() const final { return table_.bos; }
  std::optional<std::int32_t> eos() const final { return table_.eos; }
  std::optional<std::int32_t> behind() const final { return table_.behind; }
  std::optional<std::int32_t> mask() const final { return table_.mask; }
  bool adds_bos() const final { return table_.adds_bos; }
  std::string describe() const final;

 protected:
  explicit TableTokenizer(Table table);
  /// Appends the tokens of `text`, a part of the whole text that begins at its byte `base` and holds no added token.
  virtual void encode_part(std::string_view text, std::int32_t base, const Options& options,
                           std::vector<Token>& out) const = 0;
  /// Throws TooManyTokens when `bytes` more, after the `before` tokens there are, cannot fit: each token takes at most
  /// `longest` of them.
  static void check_length(std::size_t bytes, std::size_t longest, std::size_t before, const Options& options);
  Token spanned(std::int32_t id, std::int32_t begin, std::int32_t end) const;

 private:
  const Entry& entry(std::int32_t id) const;
  Table table_;
  AddedTokenFinder finder_;  // of the added tokens that are looked for in the text as written
};

/// The table of a vocabulary whose token `id` stands for `bytes_of(spelling)`; special tokens and holes by name.
std::vector<TableTokenizer::Entry> table_entries(const Vocabulary& vocabulary, const std::vector<AddedToken>& added,
                                                 const std::function<std::string(const std::string&)>& bytes_of);

}  // namespace headscope
