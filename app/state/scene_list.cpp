#include "app/state/scene_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "app/state/lesson_session.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/nth.h"
#include "core/base/user_folders.h"
#include "core/base/words.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_undone = 50;
constexpr const char* about_scenes = "A list of scenes, put together in the window.";

/// The file's text; "" where it is not there.
std::string text_of(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) ? read_file(file, longest_lesson) : "";
}

/// A list that is not there yet is called as its file will be: "my-scenes-2" → "My scenes 2".
LessonPages pages_of(const std::string& text, std::string id) {
  if (!text.empty()) return lesson_pages(text);
  std::ranges::replace(id, '-', ' ');
  id[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(id[0])));
  return new_lesson(id, about_scenes);
}

/// What is left of a list's file. One with nothing on it is no lesson: "", there is no file then. A file that the
/// window did not begin holds what nobody would bring back.
std::string kept_of(const LessonPages& pages, const fs::path& file) {
  if (!pages.steps.empty()) return joined(pages);
  if (head_value(pages, "about") != about_scenes)
    throw Error(file.string(), "a step to be left", "its last one taken off",
                "the window did not begin this lesson: delete its file where it is to go");
  return "";
}

void write(const fs::path& file, const std::string& text) {
  std::error_code failed;
  if (text.empty()) {
    fs::remove(file, failed);
    if (failed) throw Error(file.string(), "a file that can be taken away", failed.message());
    return;
  }
  fs::create_directories(file.parent_path(), failed);
  if (failed) throw Error(file.parent_path().string(), "a folder for lists of scenes", failed.message());
  write_file_atomically(file, text);
}

std::vector<std::string> own_ids() {
  std::vector<std::string> ids;
  const fs::path own = own_lessons_folder();
  for (const fs::path& each : lesson_files())
    if (each.parent_path() == own) ids.push_back(each.stem().string());
  std::ranges::sort(ids);
  return ids;
}

}  // namespace

void SceneList::use(const std::string& id) {
  if (id.empty() || id.starts_with('.') || fs::path(id).filename() != id || id == id_) return;
  id_ = id;
  pages_ = {};
  known_ = false;
  read();
}

fs::path SceneList::file() const {
  const fs::path folder = own_lessons_folder();
  return folder.empty() ? folder : folder / (id_ + ".md");
}

/// Each change counts: none takes the place of one that waits.
std::string SceneList::next_tag() {
  return fmt::format("scenes {}", ++tags_);
}

void SceneList::write_later(std::function<Worker::Deliver()> work) {
  ++unwritten_;
  jobs_.on_files(
      next_tag(),
      [this, work = std::move(work)](Worker::Job&) -> Worker::Deliver {
        return [this, deliver = work()] {
          --unwritten_;
          if (deliver) deliver();
        };
      },
      [this] { --unwritten_; });
}

void SceneList::read() {
  jobs_.on_files("scenes", [this, file = file(), id = id_](Worker::Job&) -> Worker::Deliver {
    return [this, id, text = file.empty() ? "" : text_of(file), others = own_ids()] {
      if (id != id_) return;
      take(text);
      others_ = others;
    };
  });
}

void SceneList::take(const std::string& text) {
  pages_ = pages_of(text, id_);
  known_ = true;
}

std::string SceneList::unused_id() const {
  const auto used = [&](const std::string& id) { return id == id_ || std::ranges::find(others_, id) != others_.end(); };
  std::string id = first_id;
  for (int n = 2; used(id); ++n) id = fmt::format("{}-{}", first_id, n);
  return id;
}

void SceneList::change(const std::string& words, Change change, std::function<void()> then) {
  if (file().empty())
    return jobs_.tell(to_say("A list of scenes needs a folder of your own: set HOME, or XDG_DATA_HOME."), "scenes",
                      Message::Level::error);
  write_later([this, file = file(), id = id_, words, change, then]() -> Worker::Deliver {
    const std::string before = text_of(file);
    LessonPages pages = pages_of(before, id);
    change(pages);
    const std::string after = kept_of(pages, file);
    if (after == before) return {};
    if (!after.empty()) parse_lesson(after, id, file.string());
    write(file, after);
    return [this, id, words, before, after, then, others = own_ids()] {
      lessons_.read_again();
      std::vector<Done>& done = done_[id];
      done.push_back({words, before, after});
      if (done.size() > most_undone) done.erase(done.begin());
      if (id != id_) return;
      take(after);
      others_ = others;
      if (then) then();
    };
  });
}

std::size_t SceneList::place_of(const LessonPages& pages, std::size_t step, const std::string& text) {
  if (step < pages.steps.size() && pages.steps[step] == text) return step;
  const auto found = std::ranges::find(pages.steps, text);
  if (found == pages.steps.end())
    throw Error("scene \"" + excerpt(step_title(text), 60) + "\"", "as it was in the file when the list was read",
                "another text", "the file was changed meanwhile: open the list again");
  return static_cast<std::size_t>(found - pages.steps.begin());
}

void SceneList::add(const std::string& title, const std::string& block) {
  change(
      say("added: {}", title),
      [text = with_title("## Scene\n", title) + "\n" + block + "\n"](LessonPages& pages) {
        pages.steps.push_back(text);
      },
      [this, title] {
        jobs_.tell(say_later("Scene {} of “{}”: {}", pages_.steps.size(), head_value(pages_, "title"), title),
                   "scenes");
      });
}

void SceneList::rename(std::size_t step, const std::string& title) {
  if (step >= pages_.steps.size()) return;
  change(say("renamed: {}", step_title(pages_.steps[step])),
         [step, title, text = pages_.steps[step]](LessonPages& pages) {
           std::string& there = pages.steps[place_of(pages, step, text)];
           there = with_title(there, title);
         });
}

void SceneList::rename_list(const std::string& title) {
  change(said("renamed the list"), [title](LessonPages& pages) { set_lesson_title(pages, title); });
}

void SceneList::move(std::size_t step, int by) {
  if (step >= pages_.steps.size()) return;
  // Beside which one it stands is looked up then: another move of it may wait to be written.
  change(say("moved: {}", step_title(pages_.steps[step])), [step, by, text = pages_.steps[step]](LessonPages& pages) {
    const std::size_t from = place_of(pages, step, text);
    const auto to = static_cast<std::ptrdiff_t>(from) + by;
    if (to >= 0 && to < std::ssize(pages.steps))
      std::swap(pages.steps[from], pages.steps[static_cast<std::size_t>(to)]);
  });
}

void SceneList::remove(std::size_t step) {
  if (step >= pages_.steps.size()) return;
  change(say("removed: {}", step_title(pages_.steps[step])), [step, text = pages_.steps[step]](LessonPages& pages) {
    pages.steps.erase(pages.steps.begin() + static_cast<std::ptrdiff_t>(place_of(pages, step, text)));
  });
}

std::string SceneList::undoable() const {
  const auto done = done_.find(id_);
  return unwritten_ > 0 || done == done_.end() || done->second.empty() ? "" : done->second.back().words;
}

void SceneList::undo() {
  if (undoable().empty()) return;
  write_later([this, file = file(), id = id_, last = done_[id_].back()]() -> Worker::Deliver {
    if (const std::string now = text_of(file); now != last.after)
      return [this, file, id, now] {
        done_.erase(id);  // none of it leads back from what is there now
        if (id == id_) take(now);
        const Error changed(file.string(), "as the window wrote it", "another text",
                            "another program changed it meanwhile; it stays as it is, and cannot be undone from here");
        jobs_.show({Message::Level::error, changed.what(), "scenes"});
      };
    write(file, last.before);
    return [this, id, text = last.before] {
      lessons_.read_again();
      done_[id].pop_back();  // what was changed since then comes after this
      if (id == id_) take(text);
    };
  });
}

void SceneList::present(std::size_t step, std::function<void()> then) {
  jobs_.on_files(next_tag(), [this, file = file(), step, then](Worker::Job&) -> Worker::Deliver {
    if (text_of(file).empty())
      throw Error("scenes", "a scene on the list", "none", "F7 puts on it what is on the screen");
    return [this, lesson = std::make_shared<const Lesson>(read_lesson(file)), step, then] {
      lessons_.open(lesson);
      lessons_.go(static_cast<int>(std::min(step, lesson->steps.size() - 1)));
      if (then) then();
    };
  });
}

}  // namespace headscope
