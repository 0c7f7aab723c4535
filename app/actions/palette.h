#pragma once
// What Ctrl+K finds: actions, heads, tokens, models, masks; searched fuzzily.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/actions/action.h"
#include "app/actions/fuzzy.h"

namespace headscope {

struct PaletteItem {
  std::string title;   ///< "Layer 5 Head 1"
  std::string detail;  ///< "induction 0.87 (chance 0.03)", a shortcut, a folder
  std::string group;   ///< "Action", "Head", "Token", "Model", "Mask", or the workspace of a page
  std::function<void(AppContext&)> run;
  std::string words = {};  ///< further ones that find it, which are not shown
  std::string id = {};     ///< "file.open", "analyse/masks", "mask/window"; "" of heads, tokens and recent models
  // As the table in use says them, where it does; "" = as above.
  std::string shown = {}, shown_detail = {};
};

/// Everything that can be done now: enabled actions, then pages of workspaces, heads, tokens, models, masks. Make it
/// once when the palette opens.
std::vector<PaletteItem> palette_items(const AppContext& app);

struct PaletteHit {
  std::size_t item = 0;                ///< index into the items
  double score = 0;                    ///< larger is better
  std::vector<std::size_t> positions;  ///< bytes of the title to point out; empty when the detail alone matched
};
/// The best `most` for a query, best first, ties in the order of the items; the first of all for an empty query.
std::vector<PaletteHit> search_palette(const std::vector<PaletteItem>& items, std::string_view query,
                                       std::size_t most = 50);

}  // namespace headscope
