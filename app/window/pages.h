#pragma once
// Pages that concern the program rather than a model: settings, what it is made of, the steps that can be undone. Each
// is drawn every frame and shows itself when asked. Thread rule: the UI thread.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/render/picture.h"
#include "app/state/picture_recipe.h"
#include "app/widgets/ui.h"
#include "core/cuda/device_choice.h"

namespace headscope {

/// Ctrl+,: what is chosen applies at once and is written down when the page closes.
class SettingsPage {
 public:
  void draw(Ui& ui, AppContext& app);

 private:
  /// A line for a folder, and what is wrong with it.
  struct Folder {
    std::string text, problem;
  };
  void folder(Ui& ui, const char* label, const char* hint, Folder& line, std::filesystem::path& setting);
  void model_folders(Ui& ui, AppContext& app);
  void device(Ui& ui, AppContext& app);
  void language(Ui& ui, AppContext& app);
  Folder models_, documents_, added_;
  std::shared_ptr<std::optional<Cards>> cards_;  // looked for whenever the page opens: none, until they are found
  std::set<std::string> tables_;                 // languages that have a table of words, likewise
  bool open_ = false;
};

class AboutPage {
 public:
  void draw(Ui& ui, AppContext& app);
};

/// Ctrl+I: how the open model was checked, layer by layer, and what it is: extents, parameters, files, keys of its
/// configuration.
class ModelPage {
 public:
  void draw(Ui& ui, AppContext& app);

 private:
  int shown_ = 0;  ///< its part
};

/// F8: the list of scenes, to be presented. Titles are written where they stand; each change is in the file at once,
/// and can be taken back.
class ScenesPage {
 public:
  void draw(Ui& ui, AppContext& app);

 private:
  void which(Ui& ui, AppContext& app);
  void row(Ui& ui, AppContext& app, std::size_t step);
  void follow(const SceneList& scenes);
  void leave(SceneList& scenes);
  LessonPages of_;                  // what the titles below were read from
  std::string title_;               // of the list, as it is being written
  std::vector<std::string> names_;  // of the scenes, likewise
};

/// Every step, done or undone; a click goes there.
class StepsPage {
 public:
  void draw(Ui& ui, AppContext& app);
};

/// Shift+F1, or a word found in the palette: what it means, the lesson that teaches it, the page that shows it.
class GlossaryPage {
 public:
  void draw(Ui& ui, AppContext& app);

 private:
  void entry(Ui& ui, AppContext& app, const GlossaryEntry& entry);
  void list(Ui& ui, const std::vector<GlossaryEntry>& all);
  std::string term_, filter_;
};

/// What files say of the open model, where the workspace on screen shows what it computes; else "".
std::string model_note_on_screen(const AppContext& app);
/// A recipe with the session of this moment.
PictureRecipe recipe_on_screen(const AppContext& app, PictureRecipe recipe);
/// What files say of the model, and how the picture was made, unless the user wants no recipes in files.
PictureNote note_on_screen(const AppContext& app, PictureRecipe recipe);

/// What a picture of a page is called in a file, "Head ablation · effects", and the picture with that above it.
std::string title_on_screen(const AppContext& app, const ShownPicture& picture);
std::function<Scene(const Style&)> file_picture(const AppContext& app, const ShownPicture& picture);
/// What a recipe says of a picture of the page, null = of Explore's view: `recipe` with that.
PictureRecipe recipe_of(const Ui& ui, const AppContext& app, const ShownPicture* picture, PictureRecipe recipe);

/// Does what `bench.ui.copy` asks for: of the head of Explore, else of the largest picture on screen.
class Copying {
 public:
  void draw(Ui& ui, AppContext& app);

 private:
  bool asked_ = false;  // the pictures of this frame are being collected
};

}  // namespace headscope
