#pragma once

#include <memory>
#include <string>

#include "core/edits/edit.h"
#include "core/edits/text_pairing.h"

namespace headscope {

/// The pattern that the heads had on another text, or (`text` empty) on this one before any edit. Rows without a
/// partner in the other text are left alone. A row takes the weights of its partner row at paired keys; what that row
/// gave to keys without a partner (or, where pairs cross, to later ones) is shared by the others in proportion. A row
/// that gave all to those is left alone.
struct FreezePattern {
  std::string text;
  TextPairing align = {};
  bool operator==(const FreezePattern&) const = default;
};
std::shared_ptr<const Edit> edit_of(FreezePattern value);

}  // namespace headscope
