#pragma once
// Text that was normalised for a tokenizer, and where each of its bytes came from. A token covers a range of the
// normalised bytes; the boundaries of that range lead back to the original text. Because only boundaries are kept, the
// spans of consecutive tokens can neither overlap nor leave a hole, whatever a normaliser did.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

struct AlignedText {
  std::string bytes;                 ///< valid UTF-8
  std::vector<std::int32_t> origin;  ///< bytes.size() + 1 boundaries in the original text; never decreases

  /// `text` itself, standing at byte `base` of the original.
  static AlignedText of(std::string_view text, std::int32_t base);
  AlignedText slice(std::size_t begin, std::size_t end) const;
};

/// Writes a changed copy of an AlignedText from left to right. Skipped source bytes fall to what was written before
/// them; those at the start to nothing, so that one can tell that the text does not begin there. Rules of a file may
/// make a text grow without end (ten that each double it make a thousand of one): throws Error past four times the
/// original and 16 MiB.
class AlignedTextWriter {
 public:
  explicit AlignedTextWriter(const AlignedText& source)
      : source_(source),
        most_(4 * static_cast<std::size_t>(source.origin.back() - source.origin.front()) + (std::size_t{16} << 20)) {
    out_.bytes.reserve(source.bytes.size());
    out_.origin.reserve(source.origin.size());
  }
  /// Source bytes [begin, end), unchanged.
  void copy(std::size_t begin, std::size_t end);
  /// `bytes` in place of source bytes [begin, end); begin == end inserts, with an empty span.
  void replace(std::size_t begin, std::size_t end, std::string_view bytes);
  std::size_t written() const { return out_.bytes.size(); }
  AlignedText finish();

 private:
  void check_room(std::size_t more) const;
  const AlignedText& source_;
  std::size_t most_;  // bytes
  AlignedText out_;
};

/// Half-open range of bytes.
struct ByteRange {
  std::size_t begin = 0, end = 0;
};

}  // namespace headscope
