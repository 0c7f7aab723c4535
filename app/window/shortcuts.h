#pragma once
// The keys: what each does, and the list of them. Thread rule: the UI thread.

#include "app/actions/action.h"
#include "app/widgets/ui.h"

namespace headscope {

/// Runs the actions whose keys were pressed in this frame.
void run_shortcuts(AppContext& app);

/// `?`: every action that has a key, by group. Every frame; opens itself when bench.ui.keys is set.
void draw_keys(Ui& ui, AppContext& app);

}  // namespace headscope
