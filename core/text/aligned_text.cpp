#include "core/text/aligned_text.h"

#include <algorithm>
#include <numeric>

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

void AlignedTextWriter::copy(std::size_t begin, std::size_t end) {
  out_.bytes.append(source_.bytes, begin, end - begin);
  out_.origin.insert(out_.origin.end(), source_.origin.begin() + static_cast<std::ptrdiff_t>(begin),
                     source_.origin.begin() + static_cast<std::ptrdiff_t>(end));
}

void AlignedTextWriter::replace(std::size_t begin, std::size_t end, std::string_view bytes) {
  const std::int32_t first = source_.origin[begin], last = source_.origin[end];
  // Byte by byte as far as both go; what remains of the longer side belongs to the last byte, or is empty.
  for (std::size_t k = 0; k < bytes.size(); ++k)
    out_.origin.push_back(std::min(first + static_cast<std::int32_t>(k), last));
  out_.bytes.append(bytes);
}

AlignedText AlignedTextWriter::finish() {
  if (!out_.origin.empty()) out_.origin.front() = source_.origin.front();
  out_.origin.push_back(source_.origin.back());
  return std::move(out_);
}

}  // namespace headscope
