#include "app/state/token_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
constexpr std::string_view between_ids = " \t\r\n,;[]()";
}  // namespace

WrittenIds read_token_ids(std::string_view text, int vocabulary) {
  WrittenIds out;
  for (std::size_t at = text.find_first_not_of(between_ids); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(between_ids, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    std::int64_t id = 0;
    const auto [rest, failure] = std::from_chars(word.data(), word.data() + word.size(), id);
    const bool number = rest == word.data() + word.size() && failure != std::errc::invalid_argument;
    if (!number || failure == std::errc::result_out_of_range || id < 0 || id >= vocabulary) {
      const std::string shown = printable(std::string(word), 24);
      out.error = number ? say("{} is no id of this model: its vocabulary has {} tokens, 0 … {}.", shown, vocabulary,
                               vocabulary - 1)
                         : say("“{}” is no token id: whole numbers from 0 to {} stand here, with spaces or commas "
                               "between them.",
                               shown, vocabulary - 1);
      return out;
    }
    out.ids.push_back(static_cast<std::int32_t>(id));
    out.stretches.push_back({at, end});
    at = text.find_first_not_of(between_ids, end);
  }
  return out;
}

std::string token_ids_text(std::span<const std::int32_t> ids) {
  return fmt::format("{}", fmt::join(ids, " "));
}

}  // namespace headscope
