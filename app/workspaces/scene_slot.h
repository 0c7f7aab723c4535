#pragma once
// A place in a panel that shows a scene made on the worker: asks for a new one when what it depends on has changed,
// shows the last one until it comes, and never computes on the UI thread. Thread rule: the UI thread.

#include <functional>
#include <memory>
#include <string>

#include "app/state/answer.h"
#include "app/state/page_picture.h"
#include "app/widgets/scene_view.h"
#include "core/base/words.h"

namespace headscope {

class SceneSlot {
 public:
  /// `tag` names the job: a newer picture of the same place takes an older one's turn.
  explicit SceneSlot(std::string tag) : answer_({std::move(tag), to_say("drawing")}) {}

  using Build = std::function<Scene(const Style&)>;
  /// Asks for `build` when `source` (what the numbers come from), `options`, the theme or the language differ from the
  /// last call.
  void want(JobRunner& jobs, const Ui& ui, std::shared_ptr<const void> source, const std::string& options, Build build);
  /// The same of a picture of a page in a room, which a file can remember and the command line draw again. `id` as in
  /// draw().
  void want(JobRunner& jobs, const Ui& ui, const char* id, PagePicture picture, Room room);
  /// The same with a picture for the screen that may be unfinished, while `build`, for files, is not. With `waits` it
  /// is asked for when the one under way has come, so that a picture that is moved all the time is seen to move.
  /// `shown` must not take long.
  using BuildShown = std::function<Scene(const Style&, const Ctx&)>;
  void want(JobRunner& jobs, const Ui& ui, std::shared_ptr<const void> source, const std::string& options, Build build,
            BuildShown shown, bool waits);
  /// The last scene answers what was wanted last.
  bool current() const { return answer_.current() != nullptr; }
  /// One is being made.
  bool under_way(const JobRunner& jobs) const { return answer_.under_way() && !jobs.was_stopped(answer_.tag()); }
  /// The last scene that came, in the next room of width × height logical pixels.
  SceneTouch draw(Ui& ui, const char* id, const SceneViewOptions& view, double width, double height);
  /// Forgets the picture and what it was made from, until the next want().
  void let_go(JobRunner& jobs);
  const Scene* scene() const { return answer_.last().get(); }
  SceneCamera camera;

 private:
  struct Key {
    std::shared_ptr<const void> source;
    std::string options, look;
    bool operator==(const Key&) const = default;
  };
  void want_key(JobRunner& jobs, Key key, const Theme& theme, Build build, BuildShown shown);
  Answer<Key, Scene> answer_;
  std::shared_ptr<const Build> build_;  // of what was last wanted: for files
  Room room_ = {0, 0};
  std::function<Scene(Room, const Style&)> in_room_;  // likewise; none where no file can remember it
  SceneView view_;
};

}  // namespace headscope
