#pragma once
// The lesson that is taken, in a column of its own beside what it shows; and the list of lessons. Thread rule: the UI
// thread.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "app/actions/action.h"
#include "app/widgets/ui.h"

namespace headscope {

/// The keys of slides, as remote controls have them: space, arrows, page up and down. In whichever window is the
/// current one.
void slide_keys(AppContext& app);
/// What stands between asterisks in the accent's colour, in the font that is named.
void emphasised(const Ui& ui, std::string_view text, Color color, const Font& font);

/// Prose, question, answer, and the way on. Draws nothing while no lesson is taken.
class LessonPanel {
 public:
  void draw(Ui& ui, AppContext& app);

  /// In a window that has no room for both the workspace's left column may stand in its place, till the next step.
  bool behind(const LessonController& lessons) const {
    return behind_ && step_ == std::pair{lessons.lesson(), lessons.at()};
  }
  void put_behind(const LessonController& lessons, bool on) { behind_ = on, step_ = {lessons.lesson(), lessons.at()}; }

 private:
  void prose(const Ui& ui, const LessonTold& told) const;
  void question(Ui& ui, LessonController& lessons, const LessonTold& told);
  void tokens(Ui& ui, LessonController& lessons, const LessonTold& told) const;
  void heads(Ui& ui, LessonController& lessons, const LessonTold& told) const;
  void number(Ui& ui, LessonController& lessons);
  void reply(Ui& ui, LessonController& lessons) const;
  void shown_edits(const Ui& ui, const AppContext& app) const;
  void way_on(Ui& ui, AppContext& app) const;

  std::string typed_;
  using Step = std::pair<std::shared_ptr<const Lesson>, int>;
  bool behind_ = false;
  Step step_;  // that it is behind at
  Step of_;    // lesson and step that it was typed at
};

/// Every lesson with its minutes where it says any, in their order; a click takes it.
class LessonsPage {
 public:
  void draw(Ui& ui, AppContext& app);
};

}  // namespace headscope
