// GPT-2's own files, vocab.json and merges.txt, which RoBERTa and BART have too, and vocabularies of single characters.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/io/json_view.h"
#include "core/text/bpe.h"
#include "core/text/byte_alphabet.h"
#include "core/text/pipeline_tokenizer.h"

namespace headscope {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestMergesFile = std::size_t{256} << 20;
constexpr std::string_view kEndOfText = "<|endoftext|>";

std::vector<BpeModel::Merge> read_merges(const fs::path& path, const Vocabulary& vocabulary) {
  const std::string text = read_file(path, kLargestMergesFile);
  if (const auto bad = first_invalid_utf8(text))
    throw Error(path.string(), "valid UTF-8",
                fmt::format("byte 0x{} at offset {}", hex_byte(static_cast<unsigned char>(text[*bad])), *bad));
  std::vector<BpeModel::Merge> merges;
  int line_number = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with("#version")) continue;
    const std::string where = fmt::format("{}: line {}", path.string(), line_number);
    const auto space = line.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string::npos)
      throw Error(where, "two tokens with a space between", fmt::format("'{}'", line.substr(0, 60)));
    merges.push_back(merge_of(vocabulary, line.substr(0, space), line.substr(space + 1), where));
  }
  return merges;
}

/// Without merges every token must be one symbol, or else the merges are missing and all longer tokens would be lost.
void require_single_symbols(const fs::path& path, const std::vector<Vocabulary::Entry>& words,
                            const std::vector<AddedToken>& added) {
  std::unordered_set<std::string_view> known;
  for (const AddedToken& token : added) known.insert(token.content);
  for (const Vocabulary::Entry& word : words) {
    if (word.spelling.size() == static_cast<std::size_t>(utf8_length(word.spelling.front()))) continue;
    if (known.contains(word.spelling)) continue;
    throw Error(path.string(), "merges.txt beside it, or only tokens of one character",
                fmt::format("no merges.txt, and the token '{}' (id {})", word.spelling, word.id),
                "fetch the model's merges.txt or tokenizer.json into the same folder");
  }
}

bool has_byte_alphabet(const Vocabulary& vocabulary) {
  for (int byte = 0; byte < 256; ++byte)
    if (!vocabulary.find(byte_alphabet_symbol(static_cast<unsigned char>(byte)))) return false;
  return true;
}

/// RoBERTa's vocabulary (Liu et al., RoBERTa, 2019) has other special tokens than GPT-2's: texts stand between <s> and
/// </s>, and <mask> takes the space before it along. Says whether it is one.
bool take_roberta_specials(const std::vector<Vocabulary::Entry>& words, TokenizerSettings& settings) {
  const auto find = [&](std::string_view name) { return std::ranges::find(words, name, &Vocabulary::Entry::spelling); };
  for (const std::string_view name : {"<s>", "</s>", "<mask>"})
    if (find(name) == words.end()) return false;
  if (find(kEndOfText) != words.end()) return false;
  for (const char* name : {"<s>", "<pad>", "</s>", "<unk>"}) settings.special.emplace_back(name);
  if (std::ranges::find(settings.added, "<mask>", &AddedToken::content) == settings.added.end())
    settings.added.push_back(
        {.content = "<mask>", .id = static_cast<std::int32_t>(find("<mask>")->id), .special = true, .lstrip = true});
  if (!settings.bos) settings.bos = "<s>";
  if (!settings.eos) settings.eos = "</s>";
  return true;
}

}  // namespace

std::shared_ptr<const Tokenizer> read_vocab_and_merges(const TokenizerSettings& given) {
  const fs::path vocab_path = given.folder / "vocab.json", merges_path = given.folder / "merges.txt";
  const bool has_merges = fs::exists(merges_path);
  TokenizerSettings settings = given;
  settings.special.emplace_back(kEndOfText);  // special in every GPT-2 vocabulary, also where no file says so

  PipelineParts parts;
  std::vector<BpeModel::Merge> merges;
  BpeModel::Options options;
  parts.where = vocab_path.string();
  const std::vector<Vocabulary::Entry> words = read_vocab_json(vocab_path);
  const bool roberta = has_merges && take_roberta_specials(words, settings);
  parts.added = settings.added;
  parts.vocabulary = join_vocabulary(parts.where, words, parts.added, settings);
  if (parts.vocabulary.find(kEndOfText)) {
    if (!settings.bos) settings.bos = kEndOfText;
    if (!settings.eos) settings.eos = kEndOfText;
  }
  if (has_merges)
    merges = read_merges(merges_path, parts.vocabulary);
  else
    require_single_symbols(vocab_path, words, parts.added);

  options.byte_level = has_merges || has_byte_alphabet(parts.vocabulary);
  if (options.byte_level)
    add_byte_level_steps(parts.pre_tokenizer, settings.add_prefix_space.value_or(false), true, parts.where);
  else if (settings.unk)
    options.unk = parts.vocabulary.find(*settings.unk);
  parts.spelling.byte_level = options.byte_level;
  parts.special = special_ids(settings, parts.vocabulary, std::nullopt, roberta);
  if (roberta) parts.special.behind = parts.vocabulary.find(*settings.eos);
  parts.description = options.byte_level ? "byte-level BPE" : "single characters";
  parts.model = make_bpe(words, std::move(merges), options);
  return make_pipeline_tokenizer(std::move(parts));
}

}  // namespace headscope
