#pragma once
// What a page draws with and acts on; made anew for each call. Thread rule: the UI thread.

#include <imgui.h>

#include "app/actions/action.h"
#include "app/widgets/ui.h"

namespace headscope {

struct PageContext {
  Ui& ui;
  Workbench& bench;
  Explorer& explorer() const { return bench.explorer; }
  const AppState& state() const { return bench.explorer.state(); }
  const Results& results() const { return bench.explorer.results(); }
  /// The trace on screen, or null.
  const Trace* trace() const { return results().run ? results().run->trace.get() : nullptr; }
  /// Logical width that is left in this column.
  double room() const { return static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale); }
};

}  // namespace headscope
