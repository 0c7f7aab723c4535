#pragma once
// What leaves the window: pictures and numbers of what is on screen, to files and to the clipboard. Drawn and written
// by a job of the runner, which outlives it; the message says what was written, or why not. Thread rule: the UI thread.

#include <functional>
#include <string>
#include <vector>

#include "app/state/film.h"
#include "app/state/job_runner.h"
#include "app/state/results.h"
#include "app/state/view_picture.h"
#include "viz/scene/token_axis.h"

namespace headscope {

/// The view on screen: as PNG, SVG, PDF, or its numbers as CSV.
void export_view(JobRunner& jobs, const AppState& state, const Results& results, const ExportOptions& options);
/// A film of the head on screen (recipe_picture.h), which runs the open model for every picture. `with_recipe`: its
/// file remembers how it was made.
void export_film(JobRunner& jobs, const LoadedModel& model, const PictureRecipe& film,
                 const std::filesystem::path& file, bool with_recipe);
/// A film of these pictures, each drawn by a function; `recipe` is what it remembers.
void export_film(JobRunner& jobs, const std::string& theme_id, const FilmFile& out, const std::string& recipe,
                 std::vector<std::function<Scene(const Style&)>> pictures, const ExportOptions& options);
/// What a picture of a page is called in a file: "Head ablation · effects". `id`: of the picture, which is no title.
std::string picture_title(const std::string& page, const std::string& title, const std::string& id);
/// A bare picture of a page as a picture for a file: below its title, within margins.
std::function<Scene(const Style&)> for_file(std::function<Scene(const Style&)> bare, const std::string& title);
/// The same of any other picture.
void export_scene(JobRunner& jobs, const std::string& theme_id, std::function<Scene(const Style&)> build,
                  const ExportOptions& options);

/// For the clipboard: numbers as lines of cells with tabs between them, or the words under a picture (caption.h), which
/// `put` takes on this thread; or the picture, which another program holds (clipboard.h).
enum class Copy { picture, numbers, caption };
using PutText = std::function<void(const std::string&)>;
/// `note`: as in ExportOptions, of the picture.
void copy_view(JobRunner& jobs, const AppState& state, const Results& results, Copy what, double scale,
               const PictureNote& note, PutText put);
void copy_scene(JobRunner& jobs, const std::string& theme_id, std::function<Scene(const Style&)> build, Copy what,
                double scale, const PictureNote& note, PutText put);

}  // namespace headscope
