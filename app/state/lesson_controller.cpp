#include "app/state/lesson_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "app/state/lesson_session.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nearest_names.h"

namespace headscope {

const std::vector<std::shared_ptr<const Lesson>>& LessonController::list() {
  if (std::exchange(looked_, true)) return all_;
  jobs_.on_files("lessons", [this](Worker::Job&) -> Worker::Deliver {
    std::vector<std::shared_ptr<const Lesson>> found;
    std::string wrong;
    for (const std::filesystem::path& file : lesson_files()) {
      try {
        found.push_back(std::make_shared<const Lesson>(read_lesson(file)));
      } catch (const Error& error) {
        wrong = error.what();
      }
    }
    return [this, found = std::move(found), wrong] {
      all_ = found;
      read_ = true;
      if (!wrong.empty()) jobs_.show({Message::Level::error, wrong, "lessons"});
      if (const std::string id = std::exchange(wanted_, ""); !id.empty()) open(id);
    };
  });
  return all_;
}

void LessonController::open(const std::string& id) {
  list();
  if (!read_) {
    wanted_ = id;
    return;
  }
  const auto colon = id.find(':');
  const auto found = std::ranges::find(all_, id.substr(0, colon), [](const auto& each) { return each->id; });
  if (found == all_.end()) {
    std::vector<std::string> names;
    for (const auto& each : all_) names.push_back(each->id);
    const Error unknown("lesson", "one of those that there are", "\"" + excerpt(id, 60) + "\"",
                        nearest_names_hint(id, names));
    return jobs_.show({Message::Level::error, unknown.what(), "lessons"});
  }
  open(*found);
  int step = 0;
  if (colon != std::string::npos &&
      std::from_chars(id.data() + colon + 1, id.data() + id.size(), step).ec == std::errc())
    go(step - 1);
}

void LessonController::open(std::shared_ptr<const Lesson> lesson) {
  lesson_ = std::move(lesson);
  first_.assign(lesson_->steps.size(), std::nullopt);
  at_ = -1;
  go(0);
}

void LessonController::close() {
  if (!lesson_) return;
  lesson_.reset();
  told_.let_go(jobs_);
  answer_.let_go(jobs_);
  files_.take_back();
}

void LessonController::go(int step) {
  if (!lesson_ || step < 0 || step >= static_cast<int>(lesson_->steps.size())) return;
  at_ = step;
  guess_.reset();
  answer_.let_go(jobs_);
  show_again();
}

void LessonController::show_again() {
  pinned_ = false;
  try {
    request_ = lesson_request(step().scene);
    // What it looks at is known when the text has been read; till then its model, text and page are shown.
    show(told() ? *told() : LessonTold{});
    pinned_ = told() != nullptr;
  } catch (const Error& error) {
    jobs_.show({Message::Level::error, error.what(), "lesson"});
  }
}

void LessonController::show(const LessonTold& told) {
  files_.show_aside(lesson_session(step().scene, told, fmt::format("lesson {}, line {}", lesson_->id, step().line)));
}

bool LessonController::at_hand() const {
  return run_.results().model.model && run_.results().model_folder == request_.model &&
         run_.results().model_device == jobs_.device();
}

bool LessonController::wandered() const {
  const Document& now = editor_.document();
  return now.model != request_.model || now.text != request_.text || now.source != request_.source ||
         now.image != request_.image || now.edits != request_.edits;
}

void LessonController::frame() {
  if (!lesson_ || !at_hand()) return;
  told_.want(jobs_, now(),
             [step = step(), request = request_, stack = lesson_stack(step().scene),
              model = run_.results().model](const Ctx& ctx) {
               return tell(step, std::make_shared<LessonRun>(model, request, stack, ctx.backend, ctx.stop));
             });
  if (const auto told = this->told(); told && !pinned_) {
    pinned_ = true;
    if (!wandered()) show(*told);
  }
  // Whether what was to be reached is reached is asked of every new run.
  if (step().question && step().question->kind == LessonQuestion::Kind::until && wandered()) {
    guess_ = LessonGuess(0.0);
    ask_again();
  } else if (guess_) {
    ask_again();
  }
  if (const auto found = answer()) {
    std::optional<bool>& first = first_[static_cast<std::size_t>(at_)];
    const bool until = step().question->kind == LessonQuestion::Kind::until;
    if (!first && (found->right || !until)) first = found->right;
  }
}

void LessonController::answer(const LessonGuess& guess) {
  if (!lesson_ || !step().question) return;
  guess_ = guess;
}

void LessonController::ask_again() {
  RunRequest request = request_;
  const Document& document = editor_.document();
  const bool until = step().question->kind == LessonQuestion::Kind::until;
  if (until) {  // of what is on the screen, as long as it is the step's model
    if (document.model != request_.model || !document.ids.empty()) return;
    request.text = document.text;
    request.source = document.source;
    request.edits = document.edits;
  }
  answer_.want(jobs_, Asked{now(), *guess_, request.edits, request.text},
               [step = step(), request, stack = lesson_stack(step().scene), model = run_.results().model,
                guess = *guess_](const Ctx& ctx) {
                 return answered(step, std::make_shared<LessonRun>(model, request, stack, ctx.backend, ctx.stop),
                                 guess);
               });
}

std::pair<int, int> LessonController::score() const {
  const auto right = std::ranges::count(first_, std::optional<bool>(true));
  const auto wrong = std::ranges::count(first_, std::optional<bool>(false));
  return {static_cast<int>(right), static_cast<int>(right + wrong)};
}

}  // namespace headscope
