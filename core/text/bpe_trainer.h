#pragma once
// Learns a byte-level BPE vocabulary from texts: starting from the 256 bytes, the most frequent pair of neighbouring
// symbols becomes a new symbol, again and again (Sennrich, Haddow & Birch 2016; bytes in GPT-2's alphabet and order:
// Radford et al. 2019). Texts are first cut into words by GPT-2's rule; nothing is merged across two words.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/tokenizer.h"

namespace headscope {

struct BpeTrainerOptions {
  int vocab_size = 512;       ///< all tokens: 256 bytes, the merges, and the special tokens, at least one
  std::int64_t at_least = 2;  ///< a pair seen fewer times is not merged, so that the vocabulary may stay smaller
  bool masks = false;         ///< for encoders: one token more, "[MASK]", and end-of-text behind every text too
  bool ends = false;          ///< for encoder-decoders: end-of-text stands behind every text, and not in front of it
};

/// What was learned. Ids: bytes in the order of GPT-2's alphabet, then one per merge in order, then end-of-text, and
/// last, where it is asked for, the token that masks others.
struct TrainedBpe {
  static constexpr std::string_view end_of_text = "<|endoftext|>";
  static constexpr std::string_view mask = "[MASK]";
  bool masks = false, ends = false;
  std::vector<std::string> tokens;                            ///< the bytes of every token, the names of the last
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;  ///< merge i makes token 256 + i

  std::int32_t end_of_text_id() const { return static_cast<std::int32_t>(tokens.size()) - (masks ? 2 : 1); }
  std::int32_t mask_id() const { return static_cast<std::int32_t>(tokens.size()) - 1; }  ///< REQUIRES masks
};

/// Deterministic: of several pairs with the highest count, the one with the smallest left id is merged, then with the
/// smallest right id. Overlapping pairs count ("aaa" holds "aa" twice) and are merged from the left. Throws Error when
/// a text is not valid UTF-8 or vocab_size is below 257.
TrainedBpe train_bpe(std::span<const std::string> texts, const BpeTrainerOptions& options);

/// tokenizer.json: the form that load_tokenizer() and Hugging Face's tokenizers read. With end-of-text put in front of
/// every text (or where the options say), as the models were trained.
std::string tokenizer_json(const TrainedBpe& bpe);
/// The tokenizer that load_tokenizer() makes of tokenizer_json().
std::shared_ptr<const Tokenizer> make_tokenizer(const TrainedBpe& bpe);
/// tokenizer.json and tokenizer_config.json in `folder`, each written atomically. Throws Error when it cannot be
/// written.
void save_tokenizer(const TrainedBpe& bpe, const std::filesystem::path& folder);

}  // namespace headscope
