#include "core/text/pipeline_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/text/byte_alphabet.h"
#include "core/text/table_tokenizer.h"

namespace headscope {

namespace {

// Words up to this long are encoded once per text and remembered: natural text repeats itself, random text does not.
constexpr std::size_t kLongestRememberedWord = 64;
// Rules of a file may make its tokens grow: what one may become, and all together.
constexpr std::size_t kMostBytesOfToken = std::size_t{1} << 16, kMostBytesOfTokens = std::size_t{1} << 29;
constexpr std::size_t kWordsBetweenLooks = 256;

/// Bytes of normalised text that no token of the vocabulary is longer than; 0 = there is no such number: the model has
/// none, white space goes to an added token beside it, or words are dropped.
std::size_t longest_token(const PipelineParts& parts, const std::vector<AddedToken>& normalized) {
  std::size_t longest = parts.model->longest_piece();
  if (longest == 0) return 0;
  for (const PreTokenizerStep& step : parts.pre_tokenizer)
    if (const auto* split = std::get_if<SplitStep>(&step); split && split->behavior == SplitStep::Behavior::removed)
      return 0;
  for (const AddedToken& token : normalized) {
    if (token.lstrip || token.rstrip) return 0;
    longest = std::max(longest, token.content.size());
  }
  return longest;
}

class PipelineTokenizer final : public TableTokenizer {
 public:
  PipelineTokenizer(Table table, PipelineParts&& parts, std::vector<AddedToken> normalized, std::size_t longest)
      : TableTokenizer(std::move(table)),
        where_(std::move(parts.where)),
        model_(std::move(parts.model)),
        normalizer_(std::move(parts.normalizer)),
        pre_tokenizer_(std::move(parts.pre_tokenizer)),
        longest_(longest),
        normalized_finder_(std::move(normalized)) {}

 protected:
  void encode_part(std::string_view part, std::int32_t base, const Options& options,
                   std::vector<Token>& out) const override {
    // A normaliser may shorten the text: then its length tells only after it.
    if (longest_ > 0 && normalizer_.empty()) check_length(part.size(), longest_, out.size(), options);
    AlignedText text = normalize(normalizer_, AlignedText::of(part, base), options.stop);
    if (longest_ > 0) check_length(text.bytes.size(), longest_, out.size(), options);
    std::size_t at = 0, look = 0;
    while (const auto match = normalized_finder_.find(text.bytes, look, options.parse_special, options.stop, at)) {
      if (match->begin > at) encode_words(text.slice(at, match->begin), options.stop, out);
      out.push_back(spanned(match->id, text.origin[std::max(match->begin, at)], text.origin[match->end]));
      at = match->end;  // what an earlier one took of it is read once more, as by the tokenizers package
      look = match->content_end;
    }
    if (at > 0) text = text.slice(at, text.bytes.size());
    encode_words(std::move(text), options.stop, out);
  }

 private:
  void encode_words(AlignedText text, const std::stop_token& stop, std::vector<Token>& out) const {
    const Words words = split_into_words(pre_tokenizer_, std::move(text), stop);
    const std::string_view bytes = words.text.bytes;
    std::unordered_map<std::string_view, ByteRange> remembered;  // word → its pieces
    std::vector<WordModel::Piece> pieces, scratch;
    std::size_t count = 0;
    for (const ByteRange range : words.ranges) {
      if (++count % kWordsBetweenLooks == 0 && stop.stop_requested()) throw Cancelled();
      const std::string_view word = bytes.substr(range.begin, range.end - range.begin);
      if (word.size() > kLongestRememberedWord) {
        scratch.clear();
        model_->encode(word, scratch, stop);
        append(scratch, words.text, range.begin, out);
        continue;
      }
      const auto [known, is_new] = remembered.try_emplace(word);
      if (is_new) {
        known->second.begin = pieces.size();
        model_->encode(word, pieces);
        known->second.end = pieces.size();
      }
      append(std::span(pieces).subspan(known->second.begin, known->second.end - known->second.begin), words.text,
             range.begin, out);
    }
  }

  void append(std::span<const WordModel::Piece> pieces, const AlignedText& text, std::size_t word_begin,
              std::vector<Token>& out) const {
    for (const WordModel::Piece& piece : pieces) {
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
  std::unique_ptr<const WordModel> model_;
  std::vector<NormalizerStep> normalizer_;
  std::vector<PreTokenizerStep> pre_tokenizer_;
  std::size_t longest_;  // see longest_token()
  AddedTokenFinder normalized_finder_;
};

}  // namespace

std::string SpellingRule::bytes_of(const std::string& spelling) const {
  if (byte_fallback)
    if (const auto byte = byte_token(spelling)) return std::string(1, static_cast<char>(*byte));
  if (byte_level)
    if (auto bytes = bytes_from_alphabet(spelling)) return *std::move(bytes);
  if (inside_prefix && !inside_prefix->empty() && spelling.starts_with(*inside_prefix))
    return spelling.substr(inside_prefix->size());
  std::string bytes = (inside_prefix ? " " : "") + spelling;
  for (const auto& [from, to] : replace) {
    std::size_t times = 0;
    for (auto at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + from.size())) ++times;
    if (bytes.size() > kMostBytesOfToken || times * to.size() > kMostBytesOfToken)
      throw Error("tokenizer: decoder", fmt::format("rules that make at most {} bytes of a token", kMostBytesOfToken),
                  fmt::format("more of '{}'", excerpt(spelling, 60)));
    if (times > 0) bytes = replace_all(bytes, from, to);
  }
  return bytes;
}

std::shared_ptr<const Tokenizer> make_pipeline_tokenizer(PipelineParts parts) {
  TableTokenizer::Table table;
  std::size_t total = 0;
  const auto counted = [&](std::string bytes) {
    total += bytes.size();
    if (total > kMostBytesOfTokens)
      throw Error(parts.where, fmt::format("rules that make at most {} bytes of all tokens", kMostBytesOfTokens),
                  "more");
    return bytes;
  };
  table.entries = table_entries(parts.vocabulary, parts.added, [&](const std::string& spelling) {
    return counted(parts.spelling.bytes_of(spelling));
  });
  // Where tokens are spelled in bytes' alphabet, an added word is not, even if all its letters are of that.
  if (!parts.spelling.byte_level)
    for (const AddedToken& token : parts.added)
      if (!token.special) nth(table.entries, token.id).bytes = counted(parts.spelling.bytes_of(token.content));
  if (const auto& prefix = parts.spelling.inside_prefix; prefix && !prefix->empty()) {
    table.inside_prefix = *prefix;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(table.entries.size()); ++id)
      if (TableTokenizer::Entry& entry = nth(table.entries, id); entry.name.empty())
        entry.inside = id < parts.vocabulary.size() && parts.vocabulary.spelling(id).starts_with(*prefix);
  }
  table.bos = parts.special.bos;
  table.behind = parts.special.behind;
  table.mask = parts.special.mask;
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
      normalized.back().content = counted(normalize(parts.normalizer, AlignedText::of(token.content, 0)).bytes);
      // The tokenizers package then finds it between any two characters.
      if (normalized.back().content.empty())
        throw Error(parts.where + ": added_tokens", "tokens of which the normalizer leaves something",
                    fmt::format("'{}', of which it leaves nothing", visible_label(excerpt(token.content))),
                    "the text can be given as token ids (--ids) that another program made");
    }
  table.added = parts.added;

  const std::size_t longest = longest_token(parts, normalized);
  return std::make_shared<PipelineTokenizer>(std::move(table), std::move(parts), std::move(normalized), longest);
}

void add_byte_level_steps(std::vector<PreTokenizerStep>& steps, bool add_prefix_space, bool use_regex,
                          const std::string& where) {
  if (add_prefix_space) steps.emplace_back(PrefixStep{.prefix = " "});
  if (use_regex) steps.emplace_back(SplitStep{.pattern = Pattern::regex(Pattern::gpt2_words(), where)});
}

}  // namespace headscope
