#pragma once
// The program: window, explorer, settings, and what stands around the columns. What the columns hold is given to it, so
// that the shell and the panels need not know one another.
//
// Order of life: the window first, since everything that draws holds GL objects; then the explorer, whose worker wakes
// it. Whoever holds SceneViews lets them go before the App. Thread rule: the main thread.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/state/explorer.h"
#include "app/state/settings.h"
#include "app/window/file_dialog.h"
#include "app/window/get_model_page.h"
#include "app/window/lesson_panel.h"
#include "app/window/model_picker.h"
#include "app/window/pages.h"
#include "app/window/palette_overlay.h"
#include "app/window/presenter_view.h"
#include "app/window/shell.h"
#include "app/window/unsaved_work.h"
#include "app/window/window.h"
#include "app/window/window_options.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class App {
 public:
  /// Opens the window and the model, the session or the bundled example. Throws Error when there is no display, or when
  /// a theme or a session named on the command line is no good; a model that cannot be opened is a message inside.
  explicit App(const AppOptions& options);
  ~App();  ///< stops what runs and waits for it

  /// One more tab, which outlives the last frame; the first is shown at the start unless the options name another.
  void add(Workspace& workspace);
  /// Until the user closes the window (asked first, where something would be lost), or AppOptions::stop; or, for a
  /// screenshot, until nothing runs any more and the picture is written. Saves the settings. Throws Error when a file
  /// cannot be written or a screenshot asked for of a model that cannot be opened, Cancelled when a screenshot was
  /// stopped; whatever ends it, unsaved work is left for the next start.
  void run();

  /// One turn of the loop without waiting: results in, one frame out.
  void frame();
  /// The same without a frame: nobody looks while work goes on.
  void turn();
  /// Nothing runs and nothing new is to be shown.
  bool settled();

  AppContext context() { return {*explorer_, settings_, requests_}; }
  Window& window() { return *window_; }
  Explorer& explorer() { return *explorer_; }
  Settings& settings() { return settings_; }
  UiRequests& requests() { return requests_; }
  PresenterView& presenter() { return presenter_; }

 private:
  void draw(Ui& ui);
  ShellContent content();
  void remember();
  void write_settings();
  void screenshot();
  void leave();
  void show_until_closed();
  /// All that was answered is done. False where something could not be kept: the window stays, and says why.
  bool ended();
  SessionWindow session_window() const;
  std::vector<ControlsRecord::Number> control_numbers() const;
  void show(const SessionWindow& window);

  AppOptions options_;
  Settings settings_, known_settings_;  // … as this window read or wrote them last
  UiRequests requests_;
  std::unique_ptr<Window> window_;
  std::unique_ptr<Explorer> explorer_;
  std::unique_ptr<UnsavedWork> unsaved_;
  std::optional<std::stop_callback<std::function<void()>>> wake_on_stop_;
  std::vector<Workspace*> workspaces_;
  PaletteOverlay palette_;
  FileDialog files_;
  ModelPicker picker_;
  GetModelPage get_model_;
  SettingsPage settings_page_;
  AboutPage about_;
  ModelPage about_model_;
  StepsPage steps_;
  ScenesPage scenes_;
  LessonPanel lesson_;
  LessonsPage lessons_;
  GlossaryPage glossary_;
  Copying copying_;
  PresenterView presenter_;  // its window goes before the one it stands beside
  bool changed_ = true;
};

}  // namespace headscope
