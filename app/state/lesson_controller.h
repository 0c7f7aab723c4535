#pragma once
// A lesson being taken: which step, what the window shows for it, what the student answered. What steps say is told by
// the worker, of the very model that is open. The student may wander off; show_again() returns. Thread rule: the UI
// thread.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/state/answer.h"
#include "app/state/document_editor.h"
#include "app/state/run_controller.h"
#include "app/state/session_files.h"
#include "core/base/language.h"
#include "core/base/words.h"
#include "core/lesson/glossary.h"
#include "core/lesson/tell.h"

namespace headscope {

class LessonController {
 public:
  /// All outlive this.
  LessonController(JobRunner& jobs, DocumentEditor& editor, const RunController& run, SessionFiles& files)
      : jobs_(jobs), editor_(editor), run_(run), files_(files) {}

  /// Once per frame, after the others.
  void frame();

  /// Bundled ones and the user's own, in their order; read beside the UI thread when this is called first. Files that
  /// are no lessons are the message, and left out.
  const std::vector<std::shared_ptr<const Lesson>>& list();
  /// Reads the files again: somebody may be writing one.
  void read_again();
  /// In which lessons are read, where they are translated and fonts have the characters; "" = as the system speaks. One
  /// that is being taken goes on in it.
  void set_language(const std::string& language);
  /// That some lesson is translated to, by name.
  const std::set<std::string>& languages() const { return languages_; }
  /// What the words mean; read with the lessons.
  const std::vector<GlossaryEntry>& glossary() {
    list();
    return glossary_;
  }
  /// By its id, from the first step on or, "id:3", the third. Where they are not read yet, as soon as they are.
  void open(const std::string& id);
  void open(std::shared_ptr<const Lesson> lesson);
  /// The user's own text and view come back.
  void close();

  /// Null while none is taken.
  const std::shared_ptr<const Lesson>& lesson() const { return lesson_; }
  int at() const { return at_; }
  const LessonStep& step() const { return lesson_->steps[static_cast<std::size_t>(at_)]; }
  bool last() const { return at_ + 1 == static_cast<int>(lesson_->steps.size()); }
  /// Another step of the lesson; one that there is not is passed over.
  void go(int step);
  /// What the step shows, once more.
  void show_again();
  /// What the model reads, or how it is edited, is no more that of the step.
  bool wandered() const;

  /// What the step says; null while it is being told.
  std::shared_ptr<const LessonTold> told() const {
    return lesson_ && told_.asked_for(now()) ? told_.current() : nullptr;
  }
  /// Why it cannot be shown or told, or the answer not be found; "" = nothing is wrong.
  std::string error() const {
    return !wrong_.empty() ? wrong_ : told_.error().empty() ? answer_.error() : told_.error();
  }
  void answer(const LessonGuess& guess);
  /// Of the guess that was made last at this step; null while there is none, or it is being found.
  std::shared_ptr<const LessonReply> answer() const { return answer_.current(); }
  bool asking() const { return answer_.under_way(); }
  const std::optional<LessonGuess>& guess() const { return guess_; }
  /// How many of the questions so far were answered right, of how many that were answered: of the first guesses.
  std::pair<int, int> score() const;

 private:
  struct Told {
    std::shared_ptr<const Lesson> lesson;
    int step;
    std::uint64_t model;  // which reading
    bool operator==(const Told&) const = default;
  };
  struct Asked {
    Told of;
    LessonGuess guess;
    RunRequest request;  // of the step; for a question of kind `until`, of what is on the screen
    bool operator==(const Asked&) const = default;
  };
  /// The model of the step is open.
  bool at_hand() const;
  Told now() const { return {lesson_, at_, run_.results().model_reading}; }
  void show(const LessonTold& told);
  void ask();
  void end();
  void take_anew();

  JobRunner& jobs_;
  DocumentEditor& editor_;
  const RunController& run_;
  SessionFiles& files_;
  std::vector<std::shared_ptr<const Lesson>> all_;
  std::vector<GlossaryEntry> glossary_;
  std::set<std::string> languages_;
  std::string language_ = system_language();
  bool looked_ = false, read_ = false;
  bool other_language_ = false;  // than what is being taken was read in
  std::string told_why_not_;     // why lessons are not in that language: said once
  std::string wanted_;           // asked for before the files were read
  std::shared_ptr<const Lesson> lesson_;
  int at_ = 0;
  RunRequest request_;  // of the step …
  Document shown_;      // … and as it was shown
  Stack stack_ = Stack::only;
  std::string wrong_;    // why the step cannot be shown
  bool begun_ = false;   // something was shown for the lesson
  bool pinned_ = false;  // what the step looks at is shown
  std::optional<LessonGuess> guess_;
  std::vector<std::optional<bool>> first_;  // by step: whether the first guess was right
  Answer<Told, LessonTold> told_{{"lesson", to_say("reading the lesson's numbers")},
                                 Answer<Told, LessonTold>::OnFailure::keep};
  Answer<Asked, LessonReply> answer_{{"lesson answer", to_say("looking for the answer")},
                                     Answer<Asked, LessonReply>::OnFailure::keep};
};

}  // namespace headscope
