#include "core/text/table_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

std::vector<AddedToken> looked_for_as_written(std::vector<AddedToken> added) {
  std::erase_if(added, [](const AddedToken& token) { return token.normalized; });
  return added;
}

/// A rule that removes text (a splitter's "Removed", a stripped end) leaves bytes that no token covers; the token after
/// them takes them, the last token what is left at the end. Bytes that are read twice are of the first token.
void close_gaps(std::vector<Token>& tokens, std::size_t text_size) {
  int covered = 0;
  for (Token& token : tokens) {
    token.begin = covered;
    covered = token.end = std::max(covered, token.end);
  }
  if (!tokens.empty()) tokens.back().end = static_cast<int>(text_size);
}

}  // namespace

TooManyTokens::TooManyTokens(std::size_t least, std::size_t most)
    : Error("text", fmt::format("at most {} tokens", most), fmt::format("at least {}", least)), at_least(least) {}

void TableTokenizer::check_length(std::size_t bytes, std::size_t longest, std::size_t before, const Options& options) {
  const std::size_t at_least = before + (bytes + longest - 1) / longest;
  if (at_least > options.most_tokens) throw TooManyTokens(at_least, options.most_tokens);
}

TableTokenizer::TableTokenizer(Table table) : table_(std::move(table)), finder_(looked_for_as_written(table_.added)) {}

std::vector<Token> TableTokenizer::encode(std::string_view text, Options options) const {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2))
    throw Error("text", "at most 1 GiB", fmt::format("{} bytes", text.size()));
  if (const auto bad = first_invalid_utf8(text))
    throw Error("text", "valid UTF-8",
                fmt::format("byte 0x{} at offset {} of {}", hex_byte(static_cast<unsigned char>(text[*bad])), *bad,
                            text.size()),
                "convert the text to UTF-8, or give token ids instead");
  std::vector<Token> tokens;
  std::size_t at = 0, look = 0;
  const auto plain = [&](std::size_t end) {
    if (end > at) encode_part(text.substr(at, end - at), static_cast<std::int32_t>(at), options, tokens);
  };
  while (const auto match = finder_.find(text, look, options.parse_special, options.stop, at)) {
    if (options.stop.stop_requested()) throw Cancelled();
    plain(match->begin);
    tokens.push_back(spanned(match->id, static_cast<std::int32_t>(std::max(match->begin, at)),
                             static_cast<std::int32_t>(match->end)));
    at = match->end;  // what an earlier one took of it is read once more, as by the tokenizers package
    look = match->content_end;
  }
  plain(text.size());
  close_gaps(tokens, text.size());
  return tokens;
}

const TableTokenizer::Entry& TableTokenizer::entry(std::int32_t id) const {
  if (id < 0 || id >= vocab_size())
    throw Error("token id", fmt::format("a number from 0 to {}", vocab_size() - 1), fmt::format("{}", id));
  return nth(table_.entries, id);
}

Token TableTokenizer::token(std::int32_t id) const {
  return spanned(id, -1, -1);
}

Token TableTokenizer::spanned(std::int32_t id, std::int32_t begin, std::int32_t end) const {
  const Entry& known = entry(id);
  Token token;
  token.id = id;
  token.bytes = known.bytes;
  token.label = known.name.empty() ? visible_label(known.bytes) : known.name;
  token.begin = begin;
  token.end = end;
  return token;
}

std::string TableTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  bool begun = false;
  for (const std::int32_t id : ids) {
    const Entry& each = entry(id);
    if (!begun && each.inside) text += table_.inside_prefix;
    text += each.bytes;
    begun = begun || each.name.empty();
  }
  if (table_.strips_leading_space && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string TableTokenizer::describe() const {
  return fmt::format("{}, {} tokens", table_.description, vocab_size());
}

std::vector<TableTokenizer::Entry> table_entries(const Vocabulary& vocabulary, const std::vector<AddedToken>& added,
                                                 const std::function<std::string(const std::string&)>& bytes_of) {
  std::vector<TableTokenizer::Entry> entries(static_cast<std::size_t>(vocabulary.size()));
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    TableTokenizer::Entry& entry = nth(entries, id);
    if (const std::string& spelling = vocabulary.spelling(id); spelling.empty())
      entry.name = fmt::format("<no token {}>", id);
    else
      entry.bytes = bytes_of(spelling);
  }
  for (const AddedToken& token : added) {
    TableTokenizer::Entry& entry = nth(entries, token.id);
    entry =
        token.special ? TableTokenizer::Entry{"", excerpt(token.content)} : TableTokenizer::Entry{token.content, ""};
  }
  return entries;
}

}  // namespace headscope
