#pragma once
// Files as the window opens and writes them: the dialog, a path that was dropped or named.
// Thread rule: the UI thread.

#include <functional>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/state/file_browser.h"
#include "app/widgets/ui.h"
#include "app/window/film_form.h"

namespace headscope {

/// Browses folders inside the window: opens models and sessions, saves sessions, exports the view, or a film of it.
class FileDialog {
 public:
  /// Opens itself when bench.ui.dialog asks for one that it knows.
  void draw(Ui& ui, AppContext& app);

 private:
  using Kind = UiRequests::Dialog;
  void open(Kind kind, AppContext& app);
  void confirm(Ui& ui, AppContext& app);
  std::filesystem::path target() const;
  void picture_menu(Ui& ui, AppContext& app);
  void export_options(Ui& ui, AppContext& app);
  void film_options(Ui& ui, AppContext& app);
  void looks(Ui& ui, AppContext& app, bool has_looks, bool has_pixels);
  /// What is exported: the picture on screen that was chosen; null = the head of Explore, or all heads.
  const ShownPicture* picture(const Ui& ui, const AppContext& app) const;
  void choose(const std::string& picture, const AppContext& app);
  /// `step` on a copy of the browser, beside this thread; the copy takes the browser's place when it is done.
  void browse(AppContext& app, std::function<void(FileBrowser&)> step);
  bool exporting() const { return kind_ == Kind::export_view || kind_ == Kind::export_film; }
  bool saving() const { return kind_ == Kind::save_session || exporting(); }
  void rename();
  /// What a name that has none is given.
  const char* ending() const;
  Kind kind_ = Kind::none;
  FileBrowser browser_;
  std::vector<FileBrowser::Place> places_;
  bool reading_ = false;
  std::filesystem::path chosen_;
  std::string name_, error_;
  std::filesystem::path named_to_replace_;  ///< a file that is there; once more, and it is written over
  int format_ = 0, dpi_ = 1, ground_ = 0;   ///< what an export was last asked for
  std::string picture_;                     ///< of Explore this_head or all_heads, else the id of one on screen
  std::string named_;                       ///< the name that was proposed for it
  FilmForm film_;
  PageFilm page_film_;
  std::string film_of_;  ///< the picture that it was offered
  int film_format_ = 0, film_dpi_ = 0;
  bool has_picture_ = false;  ///< there is something to export
};

/// What is opened for a path as somebody gave it: a folder, a file where its folder stands for another, the name of a
/// bundled model ("tiny-llama") or of one in the Hugging Face cache ("org/name"). Throws Error, which names the path,
/// when there is no such thing.
std::filesystem::path place_of_model(const std::filesystem::path& path);
/// Opens a model's folder, or a session file, and remembers it.
void open_path(const std::filesystem::path& path, AppContext& app);

}  // namespace headscope
