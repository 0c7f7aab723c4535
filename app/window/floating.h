#pragma once
// What comes and goes above the columns: popups, and the one message. Thread rule: the UI thread.

#include <string>

#include "app/actions/action.h"
#include "app/widgets/ui.h"

namespace headscope {

/// A popup in the upper middle of the window, `width` logical pixels wide; true while it is open: then
/// ImGui::EndPopup().
bool begin_floating(const Ui& ui, const char* id, double width, double top);

/// One row of a list: title on the left, detail on the right, both cut to fit. True when clicked. `english`: its id and
/// its name for tests, "" = the title.
bool result_row(const Ui& ui, const std::string& title, const std::string& detail, bool chosen,
                const std::string& english = "");

/// The message at the lower edge; a click or Escape takes it away. There is never more than one.
void draw_message(Ui& ui, AppContext& app);

}  // namespace headscope
