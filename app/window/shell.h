#pragma once
// What stands around every workspace: the top bar (name, model, workspaces, status, palette, export) and three columns
// whose borders can be dragged. Knows where panels go, not what they are: each column is a function that is called with
// its child window open.
// Thread rule: the UI thread.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/widgets/ui.h"
#include "app/window/model_badge.h"

namespace headscope {

/// Widths are logical pixels; the middle column takes the rest and never less than `least_middle`.
struct ShellLayout {
  double left = 372, right = 350;
  bool left_open = true, right_open = true;
  bool left_over_lesson = false;  ///< which of the two is shown where both have no room
  static constexpr double least_side = 240, most_side = 640, least_middle = 520;
  bool operator==(const ShellLayout&) const = default;
};

struct ShellModel {
  std::string name, details;  ///< "gpt2-small", "12 layers × 12 heads · 124M"; name "" = nothing open
};

struct ShellWorkspace {
  std::string title;
  bool enabled = true;
  std::string why_not;  ///< tooltip of one that is not enabled
};

struct ShellContent {
  ShellModel model;
  std::optional<ModelBadge> badge;  ///< beside the model's name
  std::vector<ShellWorkspace> workspaces;
  int workspace = 0;
  std::vector<std::pair<std::string, bool>> status;  ///< pieces of the status line; true = a number, set in mono
  double progress = -1;                              ///< 0 … 1 while the worker is busy; < 0 = idle
  bool stoppable = false;                            ///< it takes long enough to offer to stop it …
  std::function<void()> stop;                        ///< … which this does
  std::function<void()> again;                       ///< takes up what was stopped; empty = nothing was
  std::function<void(Ui&)> left, middle, right;
  std::function<void(Ui&)> lesson;  ///< a column before all others; shares the left one's place where both have no room
  std::function<void(Ui&)> model_menu, export_menu;  ///< drawn inside an open popup
  bool keeps_right = false;                          ///< also while presenting
  bool few_words = false;                            ///< of the lesson: its column may be slim while presenting
  bool presenting = false;                           ///< only the middle, and the lesson beside it, larger
  bool open_model_menu = false;                      ///< as if its button had been pressed
};

/// What was clicked in the top bar, for the app to act on.
struct ShellEvents {
  int workspace = -1;  ///< chosen; -1 = none
  bool palette = false, badge = false;
};

/// Draws everything into the whole window.
ShellEvents draw_shell(Ui& ui, const ShellContent& content, ShellLayout& layout);

}  // namespace headscope
