#include "core/trace/head_id.h"

#include <fmt/format.h>

#include <charconv>

namespace headscope {

std::string to_string(HeadId head) {
  return fmt::format("{}.{}", head.layer, head.head);
}

std::optional<HeadId> parse_head_id(std::string_view text) {
  const char* const end = text.data() + text.size();
  HeadId id;
  const auto layer = std::from_chars(text.data(), end, id.layer);
  if (layer.ec != std::errc() || layer.ptr == end || *layer.ptr != '.' || text.front() == '-') return std::nullopt;
  const char* const rest = layer.ptr + 1;
  const auto head = std::from_chars(rest, end, id.head);
  if (head.ec != std::errc() || head.ptr != end || *rest == '-') return std::nullopt;
  return id;
}

}  // namespace headscope
