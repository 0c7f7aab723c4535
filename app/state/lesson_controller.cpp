#include "app/state/lesson_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "app/state/lesson_session.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nearest_names.h"
#include "core/lesson/translation.h"

namespace headscope {

const std::vector<std::shared_ptr<const Lesson>>& LessonController::list() {
  if (!std::exchange(looked_, true)) read_again();
  return all_;
}

void LessonController::set_language(const std::string& wanted) {
  const std::string language = wanted.empty() ? system_language() : wanted;
  if (language == language_) return;
  language_ = language;
  other_language_ = true;
  if (looked_) read_again();
}

void LessonController::read_again() {
  jobs_.on_files("lessons", [this, language = language_](Worker::Job&) -> Worker::Deliver {
    std::vector<std::shared_ptr<const Lesson>> found;
    std::set<std::string> languages;
    std::string wrong, why_not;
    for (const std::filesystem::path& file : lesson_files()) {
      for (const std::filesystem::path& each : translations_of(file)) languages.insert(language_of(each));
      try {
        found.push_back(std::make_shared<const Lesson>(read_lesson_in(file, language, why_not)));
      } catch (const Error& error) {
        wrong += (wrong.empty() ? "" : "\n") + std::string(error.what());
      }
    }
    std::vector<GlossaryEntry> words;
    try {
      words = read_glossary(language, why_not);
    } catch (const Error& error) {
      wrong += (wrong.empty() ? "" : "\n") + std::string(error.what());
    }
    return
        [this, found = std::move(found), languages = std::move(languages), words = std::move(words), wrong, why_not] {
          all_ = found;
          languages_ = languages;
          glossary_ = words;
          read_ = true;
          if (!wrong.empty())
            jobs_.show({Message::Level::error, wrong, "lessons"});
          else if (!why_not.empty() && std::exchange(told_why_not_, why_not) != why_not)
            jobs_.show({Message::Level::info, why_not, "lessons"});
          if (std::exchange(other_language_, false)) take_anew();
          if (const std::string id = std::exchange(wanted_, ""); !id.empty()) open(id);
        };
  });
}

/// The lesson that is being taken, where it is, as it has been read last.
void LessonController::take_anew() {
  if (!lesson_) return;
  const auto found = std::ranges::find(all_, lesson_->id, [](const auto& each) { return each->id; });
  if (found == all_.end() || (*found)->language == lesson_->language) return;
  const int at = at_;
  const auto first = first_;
  open(*found);
  go(at);
  if (first.size() == first_.size()) first_ = first;
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
  begun_ = files_.aside();
  first_.assign(lesson_->steps.size(), std::nullopt);
  at_ = -1;
  go(0);
}

void LessonController::close() {
  if (!lesson_) return;
  end();
  files_.take_back();
}

void LessonController::end() {
  lesson_.reset();
  told_.let_go(jobs_);
  answer_.let_go(jobs_);
}

void LessonController::go(int step) {
  if (!lesson_ || step < 0 || step >= static_cast<int>(lesson_->steps.size())) return;
  at_ = step;
  guess_.reset();
  answer_.let_go(jobs_);
  show_again();
}

void LessonController::show_again() {
  wrong_.clear();
  try {
    request_ = lesson_request(step().scene);
    stack_ = lesson_stack(step().scene);
    // What it looks at is known when the text has been read; till then its model, text and page are shown.
    show(told() ? *told() : LessonTold{});
    pinned_ = told() != nullptr;
  } catch (const Error& error) {
    wrong_ = error.what();
  }
}

void LessonController::show(const LessonTold& told) {
  Session session = lesson_session(step().scene, told, fmt::format("lesson {}, line {}", lesson_->id, step().line));
  shown_ = session.document;
  begun_ = true;
  files_.show_aside(std::move(session));
}

bool LessonController::at_hand() const {
  return run_.results().model.model && run_.results().model_folder == request_.model &&
         run_.results().model_device == jobs_.device();
}

bool LessonController::wandered() const {
  Document now = editor_.document();
  // What is looked at is nobody's business.
  now.selected = shown_.selected, now.query = shown_.query, now.key = shown_.key;
  now.stack = shown_.stack, now.by_hand = shown_.by_hand;
  return now != shown_;
}

void LessonController::frame() {
  if (lesson_ && begun_ && !files_.aside()) end();  // a session was opened in its place
  if (!lesson_ || !wrong_.empty() || !at_hand()) return;
  if (!told_.asked_for(now()))
    told_.want(jobs_, now(),
               [step = step(), request = request_, stack = stack_, model = run_.results().model](const Ctx& ctx) {
                 return tell(step, std::make_shared<LessonRun>(model, request, stack, ctx.backend, ctx.stop));
               });
  if (const auto told = this->told(); told && !pinned_) {
    pinned_ = true;
    try {
      if (!wandered()) show(*told);
    } catch (const Error& error) {
      wrong_ = error.what();
    }
  }
  if (step().question) ask();
  if (const auto found = answer()) {
    std::optional<bool>& first = first_[static_cast<std::size_t>(at_)];
    if (!first && (found->right || step().question->kind != LessonQuestion::Kind::until)) first = found->right;
  }
}

void LessonController::answer(const LessonGuess& guess) {
  if (!lesson_ || !step().question) return;
  guess_ = guess;
}

/// What was guessed; whether what was to be reached is reached is asked of every new run.
void LessonController::ask() {
  const bool until = step().question->kind == LessonQuestion::Kind::until;
  if (until ? !wandered() || editor_.document().model != request_.model : !guess_) return;
  const Asked asked{now(), until ? LessonGuess(0.0) : *guess_, until ? run_.request() : request_};
  if (answer_.asked_for(asked)) return;
  answer_.want(jobs_, asked, [step = step(), asked, stack = stack_, model = run_.results().model](const Ctx& ctx) {
    return answered(step, std::make_shared<LessonRun>(model, asked.request, stack, ctx.backend, ctx.stop), asked.guess);
  });
}

std::pair<int, int> LessonController::score() const {
  const auto right = std::ranges::count(first_, std::optional<bool>(true));
  const auto wrong = std::ranges::count(first_, std::optional<bool>(false));
  return {static_cast<int>(right), static_cast<int>(right + wrong)};
}

}  // namespace headscope
