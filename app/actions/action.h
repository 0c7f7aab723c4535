#pragma once
// Everything the user can do, as one list: the menu, the keys, the palette and lessons all read it. A new action is one
// entry of a table in actions.cpp.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/controls_record.h"
#include "app/state/explorer.h"
#include "app/state/exports.h"
#include "app/state/settings.h"
#include "app/state/workspace_list.h"
#include "core/base/words.h"

namespace headscope {

/// What only the window can do: an action asks by setting it, the window answers and clears it.
struct UiRequests {
  enum class Dialog { none, open_model, open_session, save_session, export_view, export_film };
  Dialog dialog = Dialog::none;
  bool palette = false;                                 ///< open it
  bool models = false, get_model = false;               ///< open the menu of models; the page that fetches one
  bool keys = false;                                    ///< show the list of keys
  bool settings = false, about = false, steps = false;  ///< show these pages
  bool settings_changed = false;                        ///< they are worth writing down now
  bool lessons = false;                                 ///< show the list of lessons
  std::optional<std::string> language;  ///< the window is said in this one from now on, "" = the system's
  std::optional<std::string> glossary;  ///< show this term, "" = all of them
  std::string clipboard;                ///< put this text there; "" = nothing
  bool presenting = false;              ///< one large picture and a lesson's prose, nothing else
  bool spotlight = false;               ///< while presenting, all but what the step is about is dimmed
  bool presenter = false;               ///< while presenting, notes and time in a window of their own
  bool scenes = false;                  ///< show the list of scenes
  bool add_edit = false;                ///< open the form for a new edit
  std::optional<Copy> copy;             ///< of the picture on screen
  bool focus_prompt = false;            ///< put the cursor into the prompt editor
  bool reset_zoom = false;              ///< of the head's picture
  int strong_cell = 0;                  ///< go on by so many from the strongest cell of the map, or back
  bool find_on_map = false;             ///< put the cursor into the field that finds words on the map
  bool quit = false;
  int workspace = 0;  ///< the tab that is shown, of workspace_list; stays
  /// What the workspaces can show besides themselves, for the palette; Settings::pages says which one each shows.
  struct Page {
    int workspace;
    std::string of;  ///< id of the workspace
    std::string id, title, group, detail;
  };
  std::vector<Page> pages;
  enum class Generation { none, step, run };
  Generation generation = Generation::none;  ///< of the Generate workspace: one token, or go on until asked again
  bool sideways_taken = false;  ///< said anew in every frame: left and right walk something else than the heads
  bool arrows_taken = false;    ///< said anew in every frame: up and down belong to a list, not to the heads
  std::optional<std::map<std::string, std::string>> controls;    ///< put these on, as SessionWindow::controls
  std::function<std::vector<ControlsRecord::Number>()> numbers;  ///< of the controls of the page that is shown
  // While nobody sits in front of it:
  bool collect_pictures = false;           ///< of every frame what can be drawn once more
  bool press_start = false;                ///< what takes a press of Start runs by itself
  bool about_model = false;                ///< show the page about the open model
  std::optional<double> measured_seconds;  ///< how long a time may be that is measured unasked; else the usual
};

/// What an action works on; everything outlives the call.
struct AppContext {
  Explorer& explorer;
  Settings& settings;
  UiRequests& ui;
  /// Space and arrows go from step to step of a lesson.
  bool slides() const { return ui.presenting && explorer.lessons.lesson(); }
};

struct Action {
  std::string id;        ///< "view.scale.log": stable, for lessons and tests
  std::string title;     ///< "Logarithmic scale": English, by which it is found and named
  std::string shortcut;  ///< "Ctrl+Shift+Z", "Left", "?"; "" = none. Further ones after " or ".
  std::string group;     ///< of the menu: one of action_groups
  std::function<void(AppContext&)> run;
  std::function<bool(const AppContext&)> enabled;  ///< empty = always
  std::function<bool(const AppContext&)> checked;  ///< of a choice: whether it is on; empty = not a choice
  std::function<std::string()> spoken = {};        ///< a title that is put together; empty = the title as it is said
  std::string shown() const;                       ///< the title as the table in use says it
  bool is_enabled(const AppContext& app) const { return !enabled || enabled(app); }
  bool is_checked(const AppContext& app) const { return checked && checked(app); }
};

inline constexpr const char* action_groups[] = {to_say("File"), to_say("Edit"), to_say("Go"), to_say("View"),
                                                to_say("Help")};

/// All of them, in the order of menus. Ids and shortcuts are unique.
const std::vector<Action>& actions();
/// nullptr when there is none.
const Action* find_action(std::string_view id);

/// A key with what must be held. `key` is an ASCII capital or digit, "Left", "Right", "Up", "Down", "Home", "End",
/// "Escape", "Enter", "Space", "?", "[", "]", "+", "-", ",", or "F1" … "F12".
struct Shortcut {
  bool ctrl = false, shift = false, alt = false;
  std::string key;
  bool operator==(const Shortcut&) const = default;
  /// True when it also works while a text is being typed: Ctrl or Alt is held, or the key is Escape or F1 … F12.
  bool while_typing() const;
};
/// "Ctrl+Z or Ctrl+Y" → both; what is no shortcut is left out.
std::vector<Shortcut> parse_shortcuts(std::string_view text);
/// The action of a key; nullptr when none has it. Does not ask whether it is enabled.
const Action* action_for(const Shortcut& pressed);

}  // namespace headscope
