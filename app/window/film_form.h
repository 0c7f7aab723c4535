#pragma once
// Films of what the window shows: what an export is asked for, and pages filmed number by number.
// Thread rule: the UI thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/state/film.h"
#include "app/widgets/ui.h"

namespace headscope {

/// What changes, from where to where, and how it plays.
class FilmForm {
 public:
  /// What can change in the picture.
  void offer(std::vector<FilmChoice> choices);
  void draw(Ui& ui, bool series);
  bool ready() const { return !choices_.empty() && problem_.empty(); }
  int pictures() const { return static_cast<int>(values_.size()); }
  /// REQUIRES ready(). Throws Error where one of its pictures cannot be.
  PictureRecipe film(double dpi, bool for_print) const;

 private:
  void choose(std::size_t which);
  void read(bool series);
  std::vector<FilmChoice> choices_;
  std::size_t chosen_ = 0;
  std::string from_, to_, pictures_, seconds_;  // as they are typed
  int factors_ = 0, back_ = 0;
  std::vector<std::string> values_;  // of what is typed …
  double wait_ = 0.1;
  std::string problem_;  // … or why there are none
};

/// A film of a page's picture: the window puts the page's control to one number after another, takes the picture each
/// time once nothing runs any more, and puts back what was there. The pictures are drawn and written by a job.
class PageFilm {
 public:
  struct Asked {
    PictureRecipe film;
    std::string picture;  ///< id of the one on screen
    std::filesystem::path file;
    bool with_recipe = true;
  };
  void start(AppContext& app, Asked asked);
  bool running() const { return asked_.has_value(); }
  void draw(Ui& ui, AppContext& app);

 private:
  void put(AppContext& app);
  void stop(AppContext& app, const Worded& why);
  std::optional<Asked> asked_;
  std::map<std::string, std::string> own_;  // controls before
  std::vector<std::function<Scene(const Style&)>> taken_;
  std::uint64_t stops_ = 0;
  int quiet_ = 0;
};

}  // namespace headscope
