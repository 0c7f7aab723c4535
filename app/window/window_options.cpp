#include "app/window/window_options.h"

#include <charconv>

#include "core/base/error.h"

namespace headscope {

std::pair<int, int> parse_size(const std::string& text) {
  const auto cross = text.find_first_of("xX");
  const auto number = [&](std::size_t begin, std::size_t end) {
    int value = 0;
    const char *first = text.data() + begin, *last = text.data() + end;
    const auto [stop, failed] = std::from_chars(first, last, value);
    const bool good = failed == std::errc() && stop == last && value >= 320 && value <= 16384;
    if (!good) throw OptionError("--size", "WIDTHxHEIGHT with sides of 320 … 16384, as in 1600x1000", "'" + text + "'");
    return value;
  };
  if (cross == std::string::npos) number(0, 0);
  return {number(0, cross), number(cross + 1, text.size())};
}

}  // namespace headscope
