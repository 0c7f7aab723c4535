#include "core/text/sentencepiece_model.h"

#include <algorithm>
#include <bit>

namespace headscope {

namespace {

/// Protocol Buffers' encoding: a field is its number and kind, then a varint, four bytes, or a length and bytes.
class Message {
 public:
  void put(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
  }
  void put(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  }
  void put(int field, const std::string& bytes) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(bytes.size());
    bytes_ += bytes;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace

std::string serialized(const SentencePieceParts& parts) {
  Message model, trainer, normalizer;
  int unknown = -1;
  bool bytes = false;
  for (std::size_t id = 0; id < parts.pieces.size(); ++id) {
    const SentencePieceParts::Piece& piece = parts.pieces[id];
    if (piece.type == SentencePieceParts::unknown && unknown < 0) unknown = static_cast<int>(id);
    bytes = bytes || piece.type == SentencePieceParts::byte;
    Message one;
    one.put(1, piece.text);
    one.put(2, piece.score);
    one.put(3, std::int64_t{piece.type});
    model.put(1, one.bytes());
  }
  trainer.put(3, std::int64_t{parts.unigram ? 1 : 2});  // model_type
  trainer.put(35, std::int64_t{bytes});                 // byte_fallback
  trainer.put(40, std::int64_t{std::max(unknown, 0)});
  trainer.put(41, std::int64_t{parts.bos});
  trainer.put(42, std::int64_t{parts.eos});
  trainer.put(43, std::int64_t{-1});  // pad_id
  const auto name = [&](int field, int id) {
    if (id >= 0 && static_cast<std::size_t>(id) < parts.pieces.size())
      trainer.put(field, parts.pieces[static_cast<std::size_t>(id)].text);
  };
  name(45, unknown);
  name(46, parts.bos);
  name(47, parts.eos);
  normalizer.put(1, std::string("identity"));
  normalizer.put(3, std::int64_t{parts.space_in_front});
  normalizer.put(4, std::int64_t{parts.joins_spaces});
  normalizer.put(5, std::int64_t{1});  // spaces are written "▁"
  model.put(2, trainer.bytes());
  model.put(3, normalizer.bytes());
  return model.bytes();
}

}  // namespace headscope
