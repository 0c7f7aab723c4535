#pragma once
// A picture of a page, or a film of one, drawn once more by the window's own pages with nobody in front of them and
// nothing on a screen: the session that its file remembers is opened in a window of the same size, what takes a press
// of Start is started where it had come to its end, and once nothing runs any more the picture is written as the
// window exports it. Knows no page. Thread rule: the main thread.

#include "app/state/picture_recipe.h"
#include "app/window/app.h"
#include "app/window/window_options.h"

namespace headscope {

/// Of options.again, with what the window has to be like for it in `options`. Throws Error where the file has no
/// recipe, where another program draws it, nobody can, or it holds too little, and where the table that it is said by,
/// which is in use from here on, is not there.
PictureRecipe prepare_page_again(AppOptions& options);

/// Draws it into options.out. Progress goes to standard error where that is a terminal.
/// Throws Error where the session no longer gives the picture, Cancelled. REQUIRES the App made of these options, with
/// its workspaces.
void draw_page_again(App& app, const AppOptions& options, const PictureRecipe& recipe);

}  // namespace headscope
