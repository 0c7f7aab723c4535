#pragma once
// What normalisers do to single characters, each as the tokenizers library defines it.

#include <cstdint>
#include <optional>
#include <string>

namespace headscope {

/// What a character becomes ("" = it goes), or nullopt when it stays.
using CharacterRule = std::optional<std::string> (*)(std::int32_t character);

/// Simple lower case, character by character ("İ" alone becomes two characters, as Unicode's full mapping has it).
std::optional<std::string> lower_case(std::int32_t character);
/// Combining marks go (StripAccents).
std::optional<std::string> without_marks(std::int32_t character);
/// Marks that take no room go (BertNormalizer's strip_accents).
std::optional<std::string> without_nonspacing_marks(std::int32_t character);
/// Control characters go, white space becomes a space (BertNormalizer's clean_text).
std::optional<std::string> clean_text(std::int32_t character);
/// A space on each side of an ideograph (BertNormalizer's handle_chinese_chars).
std::optional<std::string> ideographs_apart(std::int32_t character);
/// SentencePiece's rules for machine translation (Nmt): control characters go, special spaces become a space.
std::optional<std::string> nmt(std::int32_t character);

}  // namespace headscope
