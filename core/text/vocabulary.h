#pragma once
// The tokens of a tokenizer by id and by the spelling its files use for them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/nth.h"

namespace headscope {

class Vocabulary {
 public:
  struct Entry {
    std::string spelling;
    std::int64_t id = 0;
  };
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  /// Throws Error (naming `where`, the token and the id) for an empty list, a negative, repeated or far too large id,
  /// or a repeated spelling. Ids may leave some holes, as published vocabularies do, but not so many that a short file
  /// could ask for unbounded memory.
  Vocabulary(const std::string& where, std::vector<Entry> entries);

  std::int32_t size() const { return static_cast<std::int32_t>(spellings_.size()); }  ///< largest id + 1
  std::optional<std::int32_t> find(std::string_view spelling) const;
  /// "" for an id that no token has.
  const std::string& spelling(std::int32_t id) const { return nth(spellings_, id); }

 private:
  std::vector<std::string> spellings_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // views into spellings_, whose strings never move
};

/// {"token": id, …}. Throws Error naming the file and the token.
std::vector<Vocabulary::Entry> read_vocab_json(const std::filesystem::path& path);

/// The byte that "<0x0A>" names.
std::optional<unsigned char> byte_token(std::string_view spelling);

}  // namespace headscope
