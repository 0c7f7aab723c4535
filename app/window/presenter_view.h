#pragma once
// For who presents a lesson, in a window of its own: the step's notes, what comes next, and the time. Opened while
// presenting, on another screen where there is one; nothing of it is there while it is closed. The keys of slides and
// all actions work in it as in the first window. Thread rule: the main thread.

#include <memory>
#include <optional>
#include <string>

#include "app/actions/action.h"
#include "app/window/window.h"

namespace headscope {

class PresenterView {
 public:
  /// Opens, draws or closes it, as app.ui.presenter says; takes that back where presenting has ended or the window was
  /// closed. Between frames of `first`. `now` in seconds, any origin.
  void frame(AppContext& app, Window& first, double now);
  /// Null while it is closed.
  Window* window() { return window_.get(); }
  /// Since presenting this lesson began, or the clock was set back; 0 while nothing is presented.
  double elapsed() const { return elapsed_; }

  static constexpr double tick = 0.5;  ///< seconds between two looks at the clock

 private:
  void open(AppContext& app, Window& first);
  void draw(Ui& ui, AppContext& app);
  void clock(Ui& ui, const std::optional<int>& minutes);
  void share_of(Ui& ui, int minutes) const;
  void keys(AppContext& app) const;

  std::unique_ptr<Window> window_;
  std::shared_ptr<const Lesson> of_;  // that the clock runs for
  double begun_ = 0, elapsed_ = 0, now_ = 0;
};

/// "4:05", "1:02:03".
std::string clock_text(double seconds);

}  // namespace headscope
