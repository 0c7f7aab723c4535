#include "app/cli/table_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <string_view>

namespace headscope::cli {

namespace {
/// Cells that a UTF-8 string takes in a terminal.
int display_width(std::string_view text) {
  int width = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t step = utf8proc_iterate(bytes, left, &code);
    if (step <= 0) {  // a broken byte shows as one replacement character
      ++width, ++bytes, --left;
      continue;
    }
    width += utf8proc_charwidth(code);
    bytes += step;
    left -= step;
  }
  return width;
}
}  // namespace

std::string aligned(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& left) {
  std::vector<int> widths(left.size());
  for (const auto& line : lines)
    for (std::size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], display_width(line[c]));

  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const std::string padding(static_cast<std::size_t>(widths[c] - display_width(line[c])), ' ');
      text += (c > 0 ? "  " : "") + (left[c] ? line[c] + padding : padding + line[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return (value < 0 ? "-" : "") + digits;
}

std::string byte_size(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, unit);
}

}  // namespace headscope::cli
