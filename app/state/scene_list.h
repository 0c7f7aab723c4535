#pragma once
// What is to be presented, scene by scene, without writing a lesson: a list of states of the window that the window
// itself writes. The list is a lesson's file among one's own lessons, so it is presented, exported and checked as any
// lesson is, and whoever wants prose, notes or questions in it writes them with any editor; the steps that are there
// stay as they are. Each change reads the file, changes it, writes it whole, beside the UI thread. Thread rule: the UI
// thread.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/state/job_runner.h"
#include "app/state/lesson_controller.h"
#include "core/lesson/lesson_pages.h"

namespace headscope {

class SceneList {
 public:
  /// Both outlive this.
  SceneList(JobRunner& jobs, LessonController& lessons) : jobs_(jobs), lessons_(lessons) {}

  static constexpr const char* first_id = "my-scenes";
  /// The list that is meant from now on: the name of its file. It need not be there yet. An id that is no plain file
  /// name is passed over.
  void use(const std::string& id);
  const std::string& id() const { return id_; }
  /// Empty where there is no folder for one's own files.
  std::filesystem::path file() const;
  /// Reads the file again, and which others there are.
  void read();
  /// Something was read: till then pages() is of nothing.
  bool known() const { return known_; }
  const LessonPages& pages() const { return pages_; }
  /// Ids of one's own lessons, this one among them.
  const std::vector<std::string>& others() const { return others_; }
  /// An id that none of them has: "my-scenes-2".
  std::string unused_id() const;

  // Changes of the file, in their order. One that cannot be made (the file was changed by another program, or would be
  // no lesson) is the message, and the file stays as it is.
  /// At the end, and says so. `block` as lesson_show_block() writes it.
  void add(const std::string& title, const std::string& block);
  void rename(std::size_t step, const std::string& title);
  void rename_list(const std::string& title);
  /// Up by one (−1) or down (+1); past an end nothing happens.
  void move(std::size_t step, int by);
  void remove(std::size_t step);
  /// The file as it was before the last of this list's changes. What cannot be written can be undone later; where
  /// another program has changed the file, nothing can any more, which is said once.
  void undo();
  /// What that would take back, in words: "removed: Head 0.2"; "" = nothing, or a change is still to be written.
  std::string undoable() const;

  /// As a lesson, from that step on; `then` when it is taken.
  void present(std::size_t step, std::function<void()> then = {});

 private:
  struct Done {
    std::string words, before, after;  // the file
  };
  using Change = std::function<void(LessonPages&)>;
  void change(const std::string& words, Change change, std::function<void()> then = {});
  /// In their order; each counts as unwritten until it is delivered or has failed.
  void write_later(std::function<Worker::Deliver()> work);
  /// The place of a step that was there when it was asked for. Throws Error.
  static std::size_t place_of(const LessonPages& pages, std::size_t step, const std::string& text);
  void take(const std::string& text);
  std::string next_tag();

  JobRunner& jobs_;
  LessonController& lessons_;
  std::string id_ = first_id;
  LessonPages pages_;
  bool known_ = false;
  std::vector<std::string> others_;
  std::map<std::string, std::vector<Done>> done_;  // by list
  int tags_ = 0, unwritten_ = 0;
};

}  // namespace headscope
