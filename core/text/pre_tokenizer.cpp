#include "core/text/pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "core/base/nth.h"
#include "core/text/byte_alphabet.h"

namespace headscope {

namespace {

struct Part {
  ByteRange range;
  bool match = false;
};

std::vector<Part> parts_of(const SplitStep& step, const std::string& text, ByteRange word,
                           const std::stop_token& stop) {
  std::vector<Part> parts;
  std::size_t done = word.begin;
  const auto keep = [&](ByteRange match) {
    if (match.begin != done) parts.push_back({{done, match.begin}, step.invert});
    parts.push_back({match, !step.invert});
    done = match.end;
  };
  step.pattern.find_all(text, word, keep, stop);
  if (done != word.end) parts.push_back({{done, word.end}, step.invert});
  return parts;
}

/// Joins a match to its neighbour on one side; of several matches in a row only the nearest is joined.
void join(std::vector<Part>& parts, bool with_next) {
  if (with_next) std::reverse(parts.begin(), parts.end());
  std::vector<Part> joined;
  bool previous_match = false;
  for (const Part& part : parts) {
    if (part.match && !previous_match && !joined.empty()) {
      ByteRange& range = joined.back().range;
      range = {std::min(range.begin, part.range.begin), std::max(range.end, part.range.end)};
    } else {
      joined.push_back(part);
    }
    previous_match = part.match;
  }
  if (with_next) std::reverse(joined.begin(), joined.end());
  parts = std::move(joined);
}

void split(const SplitStep& step, Words& words, const std::stop_token& stop) {
  std::vector<ByteRange> ranges;
  for (const ByteRange word : words.ranges) {
    std::vector<Part> parts = parts_of(step, words.text.bytes, word, stop);
    switch (step.behavior) {
      case SplitStep::Behavior::isolated:
        break;
      case SplitStep::Behavior::removed:
        std::erase_if(parts, [](const Part& part) { return part.match; });
        break;
      case SplitStep::Behavior::merged_with_previous:
        join(parts, false);
        break;
      case SplitStep::Behavior::merged_with_next:
        join(parts, true);
        break;
      case SplitStep::Behavior::contiguous: {
        std::vector<Part> runs;
        for (const Part& part : parts) {
          if (!runs.empty() && runs.back().match == part.match)
            runs.back().range.end = part.range.end;
          else
            runs.push_back(part);
        }
        parts = std::move(runs);
        break;
      }
    }
    for (const Part& part : parts)
      if (part.range.begin != part.range.end) ranges.push_back(part.range);
  }
  words.ranges = std::move(ranges);
}

void prefix(const PrefixStep& step, Words& words) {
  AlignedTextWriter out(words.text);
  std::vector<ByteRange> ranges;
  const std::string& bytes = words.text.bytes;
  for (const ByteRange word : words.ranges) {
    const std::size_t begin = out.written();
    const std::string_view content = std::string_view(bytes).substr(word.begin, word.end - word.begin);
    const bool has_prefix = content.starts_with(step.prefix) || (step.replace_spaces && content.starts_with(' '));
    const bool wanted = step.scheme == PrefixStep::Scheme::always ||
                        (step.scheme == PrefixStep::Scheme::first && words.text.origin[word.begin] == 0);
    if (wanted && !has_prefix) out.replace(word.begin, word.begin, step.prefix);
    std::size_t done = word.begin;
    while (step.replace_spaces) {
      const std::size_t found = content.find(' ', done - word.begin);
      if (found == std::string_view::npos) break;
      const std::size_t space = word.begin + found;
      out.copy(done, space);
      out.replace(space, space + 1, step.prefix);
      done = space + 1;
    }
    out.copy(done, word.end);
    ranges.push_back({begin, out.written()});
  }
  words = {out.finish(), std::move(ranges)};
}

void write_as_alphabet(Words& words) {
  static const auto symbols = [] {
    std::array<std::string, 256> all;
    for (std::size_t byte = 0; byte < all.size(); ++byte)
      all[byte] = byte_alphabet_symbol(static_cast<unsigned char>(byte));
    return all;
  }();
  AlignedTextWriter out(words.text);
  for (ByteRange& word : words.ranges) {
    const std::size_t begin = out.written();
    for (std::size_t at = word.begin; at < word.end; ++at)
      out.replace(at, at + 1, nth(symbols, static_cast<unsigned char>(words.text.bytes[at])));
    word = {begin, out.written()};
  }
  words.text = out.finish();
}

}  // namespace

Words split_into_words(const std::vector<PreTokenizerStep>& steps, AlignedText text, const std::stop_token& stop) {
  Words words{std::move(text), {}};
  if (!words.text.bytes.empty()) words.ranges.push_back({0, words.text.bytes.size()});
  for (const PreTokenizerStep& step : steps) {
    if (const auto* cut = std::get_if<SplitStep>(&step))
      split(*cut, words, stop);
    else if (const auto* front = std::get_if<PrefixStep>(&step))
      prefix(*front, words);
    else
      write_as_alphabet(words);
  }
  return words;
}

}  // namespace headscope
