#pragma once
// Pictures of pages that are drawn from a page's controls alone: what the window shows of them, and what
// `headscope-cli render --again` draws without one (page_drawer.h). Each is found by the name it has on screen.
// Thread rule: the UI thread; `build` may run on any.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/render/positions_picture.h"
#include "core/attention/mechanism.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

class MechanismController;
class PositionsController;
struct MechanismPage;

struct PagePicture {
  /// What its numbers come from; null where they have not come yet, or where there is no such picture.
  std::shared_ptr<const void> source = {};
  std::string options = {};  ///< what it depends on besides, but for the room
  std::function<Scene(Room, const Style&)> build = {};
};

/// A picture of Positions: "dials", "score maps", "wavelengths", "score curve", "why", "score by positions", and those
/// that are called as their method ("sinusoidal", "t5" …).
PagePicture positions_picture(PositionsController& controller, std::string_view id);

/// One of Mechanisms: "mechanism compare", "mechanism steps", "mechanism states", "mechanism path", "mechanism
/// machine", "curve 0" … Of matrices in a flow the room's height is that of one of them at most.
PagePicture mechanism_picture(const MechanismController& controller, std::string_view id);

/// A matrix of a mechanism's pictures and what is said of it.
struct ShownMatrix {
  std::string id, title, formula;
  MechanismAxis rows = MechanismAxis::query, columns = MechanismAxis::key;
  const MechanismStep* step = nullptr;  ///< of the page: then its cells can be pinned
  std::string hidden = {};              ///< why a cell is; "" = the rule hides it
};
std::vector<ShownMatrix> compared_matrices(const MechanismPage& page);
std::vector<ShownMatrix> step_matrices(const MechanismPage& page);
/// REQUIRES page.recurrence.
std::vector<ShownMatrix> state_matrices(const MechanismPage& page);

}  // namespace headscope
