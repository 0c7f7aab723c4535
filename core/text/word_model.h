#pragma once
// What cuts one word (what a pre-tokenizer leaves, or a whole text) into tokens: "model" in tokenizer.json.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

namespace headscope {

class WordModel {
 public:
  /// Of a long word, before one asks again whether to stop.
  static constexpr std::size_t steps_between_looks = 1 << 16;
  /// One token of a word; id −1 stands for what nothing in the vocabulary can express.
  struct Piece {
    std::int32_t id = -1;
    std::uint32_t begin = 0, end = 0;  ///< bytes of the word
  };
  virtual ~WordModel() = default;
  /// Appends the pieces of `word` (valid UTF-8, or any bytes where the model is of bytes) to `out`; they cover it
  /// without gaps. Thread-safe. Throws Cancelled when `stop` is requested (a word may be millions of letters long).
  virtual void encode(std::string_view word, std::vector<Piece>& out, const std::stop_token& stop = {}) const = 0;
  /// Bytes that no piece is longer than; 0 = there is no such number, since what is unknown becomes one piece.
  virtual std::size_t longest_piece() const = 0;
};

}  // namespace headscope
