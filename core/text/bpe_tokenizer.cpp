#include "core/text/bpe_tokenizer.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/byte_alphabet.h"
#include "core/text/table_tokenizer.h"

namespace headscope {

namespace {

// Words up to this long are encoded once per text and remembered: natural text repeats itself, random text does not.
constexpr std::size_t kLongestRememberedWord = 64;

class BpeTokenizer final : public TableTokenizer {
 public:
  BpeTokenizer(Table table, BpeModel model, BpeParts&& parts, std::vector<AddedToken> normalized)
      : TableTokenizer(std::move(table)),
        where_(std::move(parts.where)),
        model_(std::move(model)),
        normalizer_(std::move(parts.normalizer)),
        pre_tokenizer_(std::move(parts.pre_tokenizer)),
        normalized_finder_(std::move(normalized)) {}

 protected:
  void encode_part(std::string_view part, std::int32_t base, bool with_special,
                   std::vector<Token>& out) const override {
    AlignedText text = normalize(normalizer_, AlignedText::of(part, base));
    std::size_t at = 0;
    while (const auto match = normalized_finder_.find(text.bytes, at, with_special)) {
      if (match->begin > at) encode_words(text.slice(at, match->begin), out);
      out.push_back(spanned(match->id, text.origin[match->begin], text.origin[match->end]));
      at = match->end;
    }
    if (at > 0) text = text.slice(at, text.bytes.size());
    encode_words(std::move(text), out);
  }

 private:
  void encode_words(AlignedText text, std::vector<Token>& out) const {
    const Words words = split_into_words(pre_tokenizer_, std::move(text));
    const std::string_view bytes = words.text.bytes;
    std::unordered_map<std::string_view, ByteRange> remembered;  // word → its pieces
    std::vector<BpeModel::Piece> pieces, scratch;
    for (const ByteRange range : words.ranges) {
      const std::string_view word = bytes.substr(range.begin, range.end - range.begin);
      if (word.size() > kLongestRememberedWord) {
        scratch.clear();
        model_.encode(word, scratch);
        append(scratch, words.text, range.begin, out);
        continue;
      }
      const auto [known, is_new] = remembered.try_emplace(word);
      if (is_new) {
        known->second.begin = pieces.size();
        model_.encode(word, pieces);
        known->second.end = pieces.size();
      }
      append(std::span(pieces).subspan(known->second.begin, known->second.end - known->second.begin), words.text,
             range.begin, out);
    }
  }

  void append(std::span<const BpeModel::Piece> pieces, const AlignedText& text, std::size_t word_begin,
              std::vector<Token>& out) const {
    for (const BpeModel::Piece& piece : pieces) {
      const std::int32_t begin = text.origin[word_begin + piece.begin], end = text.origin[word_begin + piece.end];
      if (piece.id < 0)
        throw Error(
            "text", fmt::format("characters that the vocabulary of {} can express", where_),
            fmt::format(
                "'{}' at byte {}",
                visible_label(std::string_view(text.bytes).substr(word_begin + piece.begin, piece.end - piece.begin)),
                begin));
      out.push_back(spanned(piece.id, begin, end));
    }
  }

  std::string where_;
  BpeModel model_;
  std::vector<NormalizerStep> normalizer_;
  std::vector<PreTokenizerStep> pre_tokenizer_;
  AddedTokenFinder normalized_finder_;
};

}  // namespace

std::string SpellingRule::bytes_of(const std::string& spelling) const {
  if (byte_fallback)
    if (const auto byte = byte_token(spelling)) return std::string(1, static_cast<char>(*byte));
  if (byte_level)
    if (auto bytes = bytes_from_alphabet(spelling)) return *std::move(bytes);
  std::string bytes = spelling;
  for (const auto& [from, to] : replace) bytes = replace_all(bytes, from, to);
  return bytes;
}

std::shared_ptr<const Tokenizer> make_bpe_tokenizer(BpeParts parts) {
  TableTokenizer::Table table;
  table.entries = table_entries(parts.vocabulary, parts.added,
                                [&](const std::string& spelling) { return parts.spelling.bytes_of(spelling); });
  table.bos = parts.special.bos;
  table.eos = parts.special.eos;
  table.adds_bos = parts.special.adds_bos;
  table.strips_leading_space = parts.spelling.strips_leading_space;
  table.description = parts.description;

  // Two searches: first for tokens as written, then, between those and in normalised text, for the others, which are
  // normalised themselves.
  std::vector<AddedToken> normalized;
  for (const AddedToken& token : parts.added)
    if (token.normalized) {
      normalized.push_back(token);
      normalized.back().content = normalize(parts.normalizer, AlignedText::of(token.content, 0)).bytes;
    }
  table.added = parts.added;

  std::vector<std::pair<std::string, std::int32_t>> words;
  words.reserve(parts.words.size());
  for (const Vocabulary::Entry& word : parts.words) {
    if (!parts.options.byte_level)
      words.emplace_back(word.spelling, word.id);
    else if (auto bytes = bytes_from_alphabet(word.spelling))  // what is not in the alphabet cannot come from text
      words.emplace_back(*std::move(bytes), word.id);
  }
  BpeModel model(std::move(words), std::move(parts.merges), parts.options);
  return std::make_shared<BpeTokenizer>(std::move(table), std::move(model), std::move(parts), std::move(normalized));
}

BpeModel::Merge merge_of(const Vocabulary& vocabulary, const std::string& left, const std::string& right,
                         const std::string& where) {
  const auto id = [&](const std::string& spelling) {
    if (const auto found = vocabulary.find(spelling)) return *found;
    throw Error(where, "a merge of two tokens into a third, all in the vocabulary",
                fmt::format("'{}' + '{}', and no token '{}'", left, right, spelling));
  };
  return {id(left), id(right), id(left + right)};
}

void add_byte_level_steps(std::vector<PreTokenizerStep>& steps, bool add_prefix_space, bool use_regex,
                          const std::string& where) {
  if (add_prefix_space) steps.emplace_back(PrefixStep{.prefix = " "});
  if (use_regex) steps.emplace_back(SplitStep{.pattern = Pattern::regex(Pattern::gpt2_words(), where)});
}

}  // namespace headscope
