#include "core/text/bpe_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/text/byte_alphabet.h"
#include "core/text/pattern.h"
#include "core/text/pipeline_tokenizer.h"

namespace headscope {

namespace {

using Symbols = std::vector<std::int32_t>;
using Pair = std::pair<std::int32_t, std::int32_t>;

struct Word {
  Symbols symbols;
  std::int64_t count = 0;
};

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    const auto key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(pair.first)) << 32) |
                     static_cast<std::uint32_t>(pair.second);
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> 16);
  }
};

/// The bytes in the order of their symbols' code points: GPT-2's ids 0 to 255.
std::array<unsigned char, 256> bytes_by_symbol() {
  std::array<unsigned char, 256> bytes{};
  for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<unsigned char>(i);
  std::ranges::sort(bytes, {}, [](unsigned char byte) { return code_point_at(byte_alphabet_symbol(byte), 0).value; });
  return bytes;
}

std::vector<Word> count_words(std::span<const std::string> texts, const std::array<std::int32_t, 256>& id_of_byte) {
  const Pattern pattern = Pattern::regex(Pattern::gpt2_words(), "GPT-2's rule for words");
  std::map<std::string, std::int64_t, std::less<>> counts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i];
    if (const auto bad = first_invalid_utf8(text))
      throw Error(fmt::format("text {}", i), "valid UTF-8",
                  fmt::format("byte 0x{} at offset {}", hex_byte(static_cast<unsigned char>(text[*bad])), *bad));
    pattern.find_all(text, {0, text.size()}, [&](ByteRange range) {
      if (range.begin < range.end) ++counts[text.substr(range.begin, range.end - range.begin)];
    });
  }
  std::vector<Word> words;
  words.reserve(counts.size());
  for (const auto& [bytes, count] : counts) {
    Word& word = words.emplace_back();
    word.count = count;
    for (const char byte : bytes) word.symbols.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
  }
  return words;
}

/// Pairs by how often they occur, kept up to date while words change.
class PairCounts {
 public:
  explicit PairCounts(std::vector<Word>& words) : words_(words) {
    for (std::size_t i = 0; i < words_.size(); ++i) add(i);
    for (const auto& [pair, entry] : entries_) queue_.push({entry.count, pair});
  }

  struct Best {
    Pair pair;
    std::int64_t count = 0;
  };
  /// The pair to merge next; count 0 when there is none.
  Best best() {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      const std::int64_t now = entries_[top.pair].count;
      if (now == top.count) return {top.pair, now};
      // The queue holds old counts. Counts only shrink between two pushes of a pair, so the true one belongs lower.
      queue_.pop();
      if (now > 0) queue_.push({now, top.pair});
    }
    return {};
  }

  /// Replaces `pair` by `made` in every word that has it.
  void merge(const Pair& pair, std::int32_t made) {
    std::vector<std::size_t> affected = std::move(entries_[pair].words);
    std::ranges::sort(affected);
    affected.erase(std::unique(affected.begin(), affected.end()), affected.end());
    std::vector<Pair> grown;
    for (const std::size_t i : affected) {
      Symbols& symbols = words_[i].symbols;
      for (std::size_t k = 0; k + 1 < symbols.size(); ++k)
        entries_[{symbols[k], symbols[k + 1]}].count -= words_[i].count;
      merge_in(symbols, pair, made);
      add(i);
      for (std::size_t k = 0; k + 1 < symbols.size(); ++k)
        if (symbols[k] == made || symbols[k + 1] == made) grown.push_back({symbols[k], symbols[k + 1]});
    }
    std::ranges::sort(grown);
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    for (const Pair& each : grown) queue_.push({entries_[each].count, each});
  }

 private:
  struct Candidate {
    std::int64_t count = 0;
    Pair pair;
    bool operator<(const Candidate& other) const {  // the largest is taken first
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  struct Entry {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  // that hold or once held the pair; may repeat
  };

  void add(std::size_t i) {
    const Word& word = words_[i];
    for (std::size_t k = 0; k + 1 < word.symbols.size(); ++k) {
      Entry& entry = entries_[{word.symbols[k], word.symbols[k + 1]}];
      entry.count += word.count;
      if (entry.words.empty() || entry.words.back() != i) entry.words.push_back(i);
    }
  }

  static void merge_in(Symbols& symbols, const Pair& pair, std::int32_t made) {
    std::size_t write = 0;
    for (std::size_t read = 0; read < symbols.size(); ++write) {
      const bool match = read + 1 < symbols.size() && symbols[read] == pair.first && symbols[read + 1] == pair.second;
      symbols[write] = match ? made : symbols[read];
      read += match ? 2 : 1;
    }
    symbols.resize(write);
  }

  std::vector<Word>& words_;
  std::unordered_map<Pair, Entry, PairHash> entries_;
  std::priority_queue<Candidate> queue_;
};

std::string spelling(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += byte_alphabet_symbol(static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

TrainedBpe train_bpe(std::span<const std::string> texts, const BpeTrainerOptions& options) {
  const int specials = options.masks ? 2 : 1;
  if (options.vocab_size < 256 + specials)
    throw Error("vocab_size",
                fmt::format("at least {} tokens: 256 bytes and {}", 256 + specials,
                            options.masks ? "two special ones" : "end-of-text"),
                fmt::format("{}", options.vocab_size));
  TrainedBpe bpe;
  std::array<std::int32_t, 256> id_of_byte{};
  for (const unsigned char byte : bytes_by_symbol()) {
    id_of_byte[byte] = static_cast<std::int32_t>(bpe.tokens.size());
    bpe.tokens.emplace_back(1, static_cast<char>(byte));
  }
  std::vector<Word> words = count_words(texts, id_of_byte);
  PairCounts pairs(words);
  while (static_cast<int>(bpe.tokens.size()) + specials < options.vocab_size) {
    const auto [pair, count] = pairs.best();
    if (count < std::max<std::int64_t>(options.at_least, 1)) break;
    const auto made = static_cast<std::int32_t>(bpe.tokens.size());
    bpe.tokens.push_back(nth(bpe.tokens, pair.first) + nth(bpe.tokens, pair.second));
    bpe.merges.push_back(pair);
    pairs.merge(pair, made);
  }
  bpe.tokens.emplace_back(TrainedBpe::end_of_text);
  bpe.masks = options.masks;
  bpe.ends = options.ends;
  if (options.masks) bpe.tokens.emplace_back(TrainedBpe::mask);
  return bpe;
}

std::string tokenizer_json(const TrainedBpe& bpe) {
  using nlohmann::ordered_json;
  const std::string end(TrainedBpe::end_of_text);
  const std::int32_t end_id = bpe.end_of_text_id();
  ordered_json vocab = ordered_json::object(), merges = ordered_json::array();
  for (std::int32_t id = 0; id < end_id; ++id) vocab[spelling(nth(bpe.tokens, id))] = id;
  vocab[end] = end_id;
  if (bpe.masks) vocab[std::string(TrainedBpe::mask)] = bpe.mask_id();
  // A mask takes the space before it along, as the word that it stands for would.
  const auto added = [](const std::string& name, std::int32_t id, bool takes_space) {
    return ordered_json{{"id", id},        {"content", name},     {"single_word", false}, {"lstrip", takes_space},
                        {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  ordered_json added_tokens = ordered_json::array({added(end, end_id, false)});
  if (bpe.masks) added_tokens.push_back(added(std::string(TrainedBpe::mask), bpe.mask_id(), true));
  for (const auto& [left, right] : bpe.merges)
    merges.push_back({spelling(nth(bpe.tokens, left)), spelling(nth(bpe.tokens, right))});
  const ordered_json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const ordered_json special = {{"SpecialToken", {{"id", end}, {"type_id", 0}}}};
  const ordered_json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const ordered_json second = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}};
  ordered_json single = ordered_json::array({special, text}),
               pair = ordered_json::array({special, text, special, second});
  if (bpe.masks) single.push_back(special), pair.push_back(special);
  if (bpe.ends) single = {text, special}, pair = {text, special, second, special};
  const ordered_json in_front = {
      {"type", "TemplateProcessing"},
      {"single", single},
      {"pair", pair},
      {"special_tokens", {{end, {{"id", end}, {"ids", {end_id}}, {"tokens", {end}}}}}},
  };
  const ordered_json document = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", in_front},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", merges}}},
  };
  return document.dump(1) + "\n";
}

std::shared_ptr<const Tokenizer> make_tokenizer(const TrainedBpe& bpe) {
  return make_tokenizer(nlohmann::json::parse(tokenizer_json(bpe)), "trained tokenizer", {}, false);
}

void save_tokenizer(const TrainedBpe& bpe, const std::filesystem::path& folder) {
  const std::string end(TrainedBpe::end_of_text);
  nlohmann::ordered_json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                     {"bos_token", end},
                                     {"eos_token", end},
                                     {"clean_up_tokenization_spaces", false}};
  if (bpe.masks) settings["mask_token"] = std::string(TrainedBpe::mask);
  write_file_atomically(folder / "tokenizer.json", tokenizer_json(bpe));
  write_file_atomically(folder / "tokenizer_config.json", settings.dump(1) + "\n");
}

}  // namespace headscope
