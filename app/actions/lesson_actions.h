#pragma once
// The actions of lessons, of lists of scenes, and of presenting either: parts of actions().

#include <vector>

#include "app/actions/action.h"

namespace headscope {

void add_presenting(std::vector<Action>& all);  ///< of the menu View
void add_lessons(std::vector<Action>& all);     ///< of the menu Help

/// What a list calls the state on screen: "Head 0.2 · sold", "Logit lens", and which edits are on.
std::string scene_title(const AppContext& app, const Session& session);

}  // namespace headscope
