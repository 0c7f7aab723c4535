#pragma once
// Token ids as people write them, where a model has no tokenizer or somebody wants to say the tokens themselves.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

struct WrittenIds {
  struct Stretch {
    std::size_t begin = 0, end = 0;  ///< bytes of the text
  };
  std::vector<std::int32_t> ids;
  std::vector<Stretch> stretches;  ///< where each of them stands
  std::string error;               ///< in words; empty = all of it is ids of this vocabulary. `ids` are those before it
};

/// "5 17 3": with spaces, commas or line breaks between them, in brackets or not. Ids are 0 … vocabulary − 1.
WrittenIds read_token_ids(std::string_view text, int vocabulary);
/// "5 17 3"
std::string token_ids_text(std::span<const std::int32_t> ids);

}  // namespace headscope
