#pragma once
// A head of a model, and how it is written everywhere: "1.0" is head 0 of layer 1.

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace headscope {

struct HeadId {
  int layer = 0, head = 0;
  auto operator<=>(const HeadId&) const = default;
};

/// "1.0"
std::string to_string(HeadId head);
/// nullopt for whatever is not two counts with a point between them. Says nothing of which heads a model has.
std::optional<HeadId> parse_head_id(std::string_view text);

}  // namespace headscope
