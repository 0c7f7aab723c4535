#pragma once
// Films, for the command line and for the window: the values that something takes from picture to picture, and the
// pictures put together into one file. Any thread.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/state/controls_record.h"
#include "app/state/picture_recipe.h"
#include "core/base/special_values.h"
#include "core/trace/trace.h"

namespace headscope {

inline constexpr int most_film_pictures = 2000;
inline constexpr double most_film_bytes = 2e9;                                    ///< of all its pictures
inline constexpr double shortest_film_picture = 0.02, longest_film_picture = 60;  ///< seconds

/// Numbers from one to another by equal steps, or by equal factors; of six digits, so that none ends in a tail of
/// rounding. `whole`: each rounded to a whole one, of neighbours that are the same one. REQUIRES 1 ≤ pictures ≤
/// most_film_pictures, and with `logarithmic` both ends above 0.
struct FilmRange {
  double from = 0, to = 1;
  int pictures = 24;
  bool logarithmic = false, whole = false;
};
std::vector<std::string> film_values(const FilmRange& range);

/// A .png, .svg or .pdf, of which a film becomes many: NAME-07.png.
bool is_film_series(const std::filesystem::path& file);
/// The file of one picture of such a series.
std::filesystem::path numbered(const std::filesystem::path& file, std::size_t number, std::size_t count);

struct FilmFile {
  std::filesystem::path file;  ///< .gif or .apng, or of a series
  double seconds = 0.1;        ///< how long a picture stands
  bool back = false;           ///< to the end and back, for a film without a jump; not of a series
};
/// `draw(i, file)` draws each of `count` pictures into a file, one after another: a PNG of which the film takes a
/// frame, or the series' own. `recipe` is asked once, with the file of the first, for what the film remembers. Returns
/// what was written, "t.gif  46 pictures, 4.6 s". Throws Error from the file system, as encode_gif() and on more than
/// most_film_bytes, Cancelled once `stop` is requested: then no film is written, of a series what was drawn.
std::string make_film(const FilmFile& out, std::size_t count,
                      const std::function<void(std::size_t, const std::filesystem::path&)>& draw,
                      const std::function<std::string(const std::filesystem::path&)>& recipe,
                      const std::stop_token& stop);

/// A number of a picture's recipe that can differ from picture to picture.
struct FilmChoice {
  PictureRecipe picture = {};               ///< that holds the number
  std::string name = {};                    ///< for people: "Temperature of head 0.1", "rotary › distance"
  std::string place = {};                   ///< RecipeFilm::place
  std::string around = {};                  ///< JSON of what stands there, with {} for the number
  FilmRange range = {};                     ///< to begin with
  double low = -infinity, high = infinity;  ///< what its control takes, where that is known
  std::vector<std::string> instead = {};    ///< JSON that stands for 1, 2 …, where no number does
  double seconds = 0.1;                     ///< how long a picture stands, to begin with
};
/// Of the view of a head, whose trace is given, the temperature of that head, of its layer and of all (as the slider of
/// the side panel sets it), then the numbers of its edits, how many words of the text are read, the selected head, what
/// is pinned, and the threshold of arcs. Of a page's picture `numbers`, those of its controls.
std::vector<FilmChoice> film_choices(const PictureRecipe& picture, const Trace* trace,
                                     const std::vector<ControlsRecord::Number>& numbers);
/// The recipe of a film over these values. Throws Error where one of its pictures cannot be.
PictureRecipe film_of(const FilmChoice& choice, const std::vector<std::string>& values, double seconds, bool back);
/// The recipe of one picture of a film. Throws Error where its values do not fit. REQUIRES recipe.film and i below the
/// number of its values.
PictureRecipe picture_of_film(const PictureRecipe& recipe, std::size_t i);

/// Whether a window whose session is this one shows what that picture of a film is of.
bool shows_picture_of(const PictureRecipe& film, std::size_t i, const Session& session);

}  // namespace headscope
