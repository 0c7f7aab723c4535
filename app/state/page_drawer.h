#pragma once
// Pictures of pages (page_picture.h) drawn without a window, from what their file remembers: the page's own controller
// is given the recipe's session, and its picture is taken once all has been computed. Waits for that: no UI thread.

#include <filesystem>
#include <string>

#include "app/state/explorer.h"
#include "app/state/picture_recipe.h"
#include "core/model/model.h"

namespace headscope {

/// Draws the picture, or the film, into `out`; returns what was written. `with_recipe`: the file, or those of a series,
/// remember how they were made. Of `ctx` the stop token and the progress count. Throws Error at `where` where the
/// recipe is of a picture that only the window draws, or of matrices by hand, as what computes it, and as make_film().
std::string draw_page(const PictureRecipe& recipe, const std::string& where, const std::filesystem::path& out,
                      bool with_recipe, Explorer::Options options, const Ctx& ctx);

}  // namespace headscope
