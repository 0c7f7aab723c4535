#pragma once
// Two texts above one another, token by token, with a line between those that correspond.

#include <optional>
#include <span>
#include <string>

#include "core/trace/trace.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct TokenPairsOptions {
  std::string name_a = "A", name_b = "B";
  std::span<const int> partner;  ///< position of `a` → of `b`, or −1
  double width = 900;
};

/// Breaks into blocks of lines where the width ends, at places where both texts can break. Marks "a.<position>",
/// "b.<position>" are tokens, "pair.<position of a>" lines: grey between equal tokens, in the accent colour between
/// different ones; tokens without a partner are outlined. Series: partners over the positions of `a`.
Scene token_pairs_scene(const Trace& a, const Trace& b, const TokenPairsOptions& options, const Style& style);

}  // namespace headscope
