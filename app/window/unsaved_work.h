#pragma once
// What would be lost if the program ended now: kept on the disk in intervals, offered by the next start, asked about
// before quitting. Draws the offer (a bar that is in nobody's way) and the question. Thread rule: the UI thread.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/state/kept_work.h"
#include "app/state/recovery.h"
#include "app/widgets/ui.h"

namespace headscope {

class UnsavedWork {
 public:
  static constexpr double session_seconds = 5, training_seconds = 30;  ///< at most so much is lost
  static constexpr double again_seconds = 60;  ///< after which a session is tried again that could not be written

  /// `root`: see Recovery; empty = nothing is kept, but asked about still. The others must outlive this.
  UnsavedWork(JobRunner& jobs, const DocumentEditor& editor, SessionFiles& files, const std::filesystem::path& root);
  /// `tab`: where it is seen again.
  void add(KeptWork& work, int tab) { work_ = &work, tab_ = tab; }

  /// Once per frame; `now` in seconds, any origin.
  void frame(double now);
  /// Something waits to be kept, though nothing happens: another frame within a second or so, please.
  bool pending() const { return pending_; }
  /// What would be lost, a line each.
  std::vector<std::string> words() const;

  /// True when the window may close: nothing would be lost, or the question was answered. Else it is asked.
  bool may_close();
  bool answered() const { return answer_ != Answer::none; }
  /// Leaves all for the next start, whatever was answered: a signal came. `turn` makes a turn of the loop.
  void leave_all(const std::function<void()>& turn);
  /// The last thing before the end: does what was answered. `turn` as above. Throws where not all could be kept: the
  /// question is open again.
  void finish(const std::function<void()>& turn);

  void draw(Ui& ui, AppContext& app);

 private:
  enum class Answer { none, keep, drop };
  void draw_offer(Ui& ui, AppContext& app);
  void draw_question(Ui& ui);
  void keep_session();

  JobRunner& jobs_;
  const DocumentEditor& editor_;
  SessionFiles& files_;
  std::unique_ptr<Recovery> recovery_;
  KeptWork* work_ = nullptr;
  int tab_ = 0;
  Session kept_;  // as it was written last
  std::string kept_words_, kept_training_;
  double session_at_ = -1, training_at_ = -1;
  bool pending_ = false, ask_ = false;
  Answer answer_ = Answer::none;
};

}  // namespace headscope
