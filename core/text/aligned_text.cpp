#include "core/text/aligned_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace headscope {

AlignedText AlignedText::of(std::string_view text, std::int32_t base) {
  AlignedText aligned;
  aligned.bytes = text;
  aligned.origin.resize(text.size() + 1);
  std::iota(aligned.origin.begin(), aligned.origin.end(), base);
  return aligned;
}

AlignedText AlignedText::slice(std::size_t begin, std::size_t end) const {
  AlignedText part;
  part.bytes = bytes.substr(begin, end - begin);
  part.origin.assign(origin.begin() + static_cast<std::ptrdiff_t>(begin),
                     origin.begin() + static_cast<std::ptrdiff_t>(end) + 1);
  return part;
}

void AlignedTextWriter::check_room(std::size_t more) const {
  if (more > most_ - out_.bytes.size())
    throw Error("tokenizer", fmt::format("rules that make at most {} bytes of this text", most_), "more",
                "a rule of tokenizer.json that replaces text makes it grow; is the file what it should be?");
}

void AlignedTextWriter::copy(std::size_t begin, std::size_t end) {
  check_room(end - begin);
  out_.bytes.append(source_.bytes, begin, end - begin);
  out_.origin.insert(out_.origin.end(), source_.origin.begin() + static_cast<std::ptrdiff_t>(begin),
                     source_.origin.begin() + static_cast<std::ptrdiff_t>(end));
}

void AlignedTextWriter::replace(std::size_t begin, std::size_t end, std::string_view bytes) {
  check_room(bytes.size());
  const std::int32_t first = source_.origin[begin], last = source_.origin[end];
  // Byte by byte as far as both go; what remains of the longer side belongs to the last byte, or is empty.
  for (std::size_t k = 0; k < bytes.size(); ++k)
    out_.origin.push_back(std::min(first + static_cast<std::int32_t>(k), last));
  out_.bytes.append(bytes);
}

AlignedText AlignedTextWriter::finish() {
  out_.origin.push_back(source_.origin.back());
  return std::move(out_);
}

}  // namespace headscope
