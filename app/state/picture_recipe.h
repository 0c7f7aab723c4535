#pragma once
// How a picture was made, in the picture's own file (viz/export/recipe_note.h): the command that drew it, or what the
// window showed, so that it can be drawn again, or opened and looked at from another side. Captures have one, too
// (core/io/trace_file.h).

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/state/session.h"

namespace headscope {

/// Of a film that the window made: its pictures differ in one value of their recipe.
struct RecipeFilm {
  std::string place;                ///< of the value in the recipe's JSON, as a pointer (RFC 6901)
  std::vector<std::string> values;  ///< what stands there from picture to picture: JSON
  double seconds = 0.1;             ///< how long a picture stands
  bool back = false;                ///< to the end and back
  bool operator==(const RecipeFilm&) const = default;
};

/// Of a picture that is drawn from its page's controls alone (page_picture.h).
struct RecipePicture {
  std::string id;                ///< by which the page draws it: "dials"
  double width = 0, height = 0;  ///< of the room that it was given, logical pixels
  bool operator==(const RecipePicture&) const = default;
};

/// Of one that the window draws (app/window/page_again.h): what it depends on besides the session.
struct RecipeShown {
  std::string id;                        ///< of the picture on its page: "lens"
  int width = 0, height = 0;             ///< of the window, pixels …
  double scale = 1;                      ///< … of which so many are a logical one
  bool lesson = false, present = false;  ///< a lesson stood beside it; one large picture was shown
  bool started = false;                  ///< what takes a press of Start had come to its end
  std::string passing = {};              ///< what of it no session holds, in words: then it cannot be drawn again
  bool operator==(const RecipeShown&) const = default;
};

struct PictureRecipe {
  std::string program = {};  ///< version of Headscope that drew it
  std::string device = {};  ///< that computed it (Backend::name()), "CPU f32, AVX-512"; "" = none did, or an older file
  std::string weights = {};   ///< the model's as they are stored, "BF16+F32"; likewise
  std::string language = {};  ///< of the table of words that it is said by (window_words.h); "" = English, without one

  // Of headscope-cli: the words of its command line, without the file that it wrote …
  std::vector<std::string> command = {};
  std::filesystem::path folder = {};  ///< … and where they were given

  /// What the window showed, or would show of the command's model, text and edits. Nullopt where there is none.
  std::optional<Session> session = {};
  // Of the window:
  double dpi = 96;         ///< of a PNG
  bool all_heads = false;  ///< the grid of all heads instead of the selected one
  bool for_print = true;   ///< white paper; else the theme of the session's view
  std::string page =
      {};  ///< the picture is not the view of Explore but this one's of the session's workspace, by title
  std::optional<RecipePicture> picture = {};  ///< of that page, where it can be drawn without the window
  std::optional<RecipeShown> shown = {};      ///< … and where only the window draws it
  std::optional<RecipeFilm> film = {};        ///< what differs in a film, whose session is that of its first picture
  bool operator==(const PictureRecipe&) const = default;
};

/// One line of ASCII, {"type": "headscope picture", "version": 1, …}. "" where a path or a text is no UTF-8, which JSON
/// cannot hold.
std::string to_json(const PictureRecipe& recipe);
/// What computed it: "CPU f32, AVX-512, weights F32"; "" = not known.
std::string computed_by(const PictureRecipe& recipe);
/// Throws Error at `where` on anything else, or of a newer version.
PictureRecipe picture_recipe_from_json(const std::string& json, const std::string& where);

/// That of a .png, .svg, .pdf, .csv, .gif, .apng or of a capture (.safetensors), whose models and pictures are looked
/// for as those of a session beside it (session.h). Throws Error where there is none, and from the file system.
PictureRecipe read_picture_recipe(const std::filesystem::path& file);

/// The words of a command line without the last option of these names that was given `value`, however that was joined
/// to it: "-o", "--out" and "a.png" take "-o a.png", "-oa.png", "--out a.png", "--out=a.png" out. `brief` may be "".
/// Words behind "--" stay.
std::vector<std::string> without_option(std::vector<std::string> words, const std::string& brief,
                                        const std::string& full, const std::string& value);
/// … without the last of these words.
std::vector<std::string> without_word(std::vector<std::string> words, const std::string& word);
/// The words of a command that draws pictures over and over, as far as a recipe may hold them: `drawn` is the first of
/// them, `recorded` what its picture remembers, which has the text that was read in place of the file's name. As they
/// are where the file's name changes from picture to picture.
std::vector<std::string> as_recorded(const std::vector<std::string>& words, const std::vector<std::string>& drawn,
                                     const std::vector<std::string>& recorded);
/// Before "--", where there is one, else at the end.
void add_words(std::vector<std::string>& words, const std::vector<std::string>& more);

}  // namespace headscope
