#pragma once
// The view of Explore that a recipe remembers, drawn from a run anew: for `render --again`, and for films. Any thread.

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

#include "app/state/film.h"
#include "app/state/view_picture.h"
#include "core/model/model.h"

namespace headscope {

/// What the model is asked for. REQUIRES recipe.session, as the others.
RunRequest request_of(const PictureRecipe& recipe);
/// Draws it of the whole trace of that run; returns what was written. Throws Error.
std::string draw_recipe(const PictureRecipe& recipe, const LoadedModel& model,
                        const std::shared_ptr<const Trace>& whole, const std::filesystem::path& out,
                        const PictureNote& note);

/// A film that was made of such views, every picture a run. `with_recipe`: the file, or those of a series, remember how
/// they were made. Returns what was written; throws as make_film(). REQUIRES recipe.film.
std::string draw_film(const PictureRecipe& recipe, const LoadedModel& model, const std::filesystem::path& out,
                      bool with_recipe, const Ctx& ctx);

}  // namespace headscope
