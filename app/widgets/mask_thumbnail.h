#pragma once
// A mask as a small picture to click: cells that are seen in colour, its name below. Thread rule: the UI thread.

#include "app/widgets/ui.h"
#include "core/trace/attention_rule.h"

namespace headscope {

struct ThumbnailTouch {
  bool clicked = false, hovered = false;
};
/// `side` logical pixels; `cells` rows and columns are drawn. `id` names it for tests.
ThumbnailTouch mask_thumbnail(const Ui& ui, const char* id, const AttentionRule& rule, std::string_view name,
                              bool chosen, double side = 44, Index cells = 10);

}  // namespace headscope
