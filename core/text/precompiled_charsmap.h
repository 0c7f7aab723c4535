#pragma once
// SentencePiece's compiled table of characters and what becomes of them ("Precompiled" in tokenizer.json): the size of
// a trie in bytes, the trie (a double array of 32-bit units, Yata's Darts-clone), and the replacements, each ended by a
// zero byte. Read as the tokenizers library reads it, which is not quite as SentencePiece does: a grapheme of fewer
// than six bytes is replaced as a whole by what its shortest beginning in the table becomes, others character by
// character.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

class PrecompiledCharsmap {
 public:
  /// The bytes of the table. Throws Error, naming `where`, when they cannot be one.
  PrecompiledCharsmap(std::string_view table, const std::string& where);
  /// What the shortest beginning of `text` that the table has becomes.
  std::optional<std::string_view> replacement(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

/// The bytes that `text` stands for. Throws Error, naming `where`, when it is no Base64 (RFC 4648).
std::string bytes_from_base64(std::string_view text, const std::string& where);

}  // namespace headscope
