#pragma once
// Ctrl K: one line to find any action, head, token, model or mask. Thread rule: the UI thread.

#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/actions/palette.h"
#include "app/widgets/ui.h"

namespace headscope {

class PaletteOverlay {
 public:
  /// Every frame; opens itself when bench.ui.palette is set.
  void draw(Ui& ui, AppContext& app);

 private:
  std::vector<PaletteItem> items_;
  static constexpr std::size_t most_hits = 50;
  std::vector<PaletteHit> hits_;  // of the query, as it was last changed
  std::string query_;
  int chosen_ = 0;
};

}  // namespace headscope
