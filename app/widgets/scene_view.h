#pragma once
// Shows a Scene in the window: the same marks that the PNG and SVG printers draw, crisp at any zoom, and tells which of
// them the pointer is on. Heatmaps go through viz/gl, everything else through Dear ImGui's draw list.
//
// A view holds the scene's textures: keep one per place where a scene is shown, make a new scene only when its numbers
// or its look change, and destroy it before the Window.
// Thread rule: the UI thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/widgets/ui.h"
#include "viz/gl/heatmap_painter.h"
#include "viz/scene/scene.h"

namespace headscope {

/// Where the scene lies in its view.
struct SceneCamera {
  double zoom = 1;     ///< × the fitted size
  Point offset{0, 0};  ///< of the scene's corner from the fitted place, logical pixels of the window
  bool operator==(const SceneCamera& other) const {
    return zoom == other.zoom && offset.x == other.offset.x && offset.y == other.offset.y;
  }
};

struct SceneViewOptions {
  bool fit_width = true;   ///< shrink so that the scene is no wider than the view
  bool fit_height = true;  ///< … and no higher; off: the view is as high as the scene needs, the column scrolls
  double largest = 1;      ///< most that fitting may enlarge
  bool centered = false;   ///< a narrow scene stands in the middle of the view, not at its left
  bool zoomable = false;   ///< wheel zooms at the pointer, dragging pans, double click on free ground resets
  double most_zoom = 64;
  bool pannable = true;  ///< off: dragging is the panel's own, the wheel still zooms
  bool tooltips = true;  ///< show a mark's own tooltip while hovered
};

/// The pointer, or what stands for it: while Tab has led to the view, the mark that the arrow keys have reached is
/// hovered, and Enter and Space click it.
struct SceneTouch {
  const Mark* mark = nullptr;  ///< topmost mark with an id under the pointer; nullptr = none. Lives as the scene does
  std::optional<Cell> cell;    ///< of a heatmap
  Point at;                    ///< pointer, scene coordinates
  bool hovered = false;        ///< the pointer is on the view
  bool pressed = false, held = false;  ///< the left button went down on the view; it still is
  bool clicked = false, right_clicked = false, double_clicked = false;

  // Where the scene was drawn, for panels that paint something over it.
  ImVec2 origin{0, 0};  ///< window place of the scene's (0, 0)
  float pixels = 1;     ///< window pixels in a logical pixel of the scene
  ImVec2 window(Point p) const {
    return {origin.x + static_cast<float>(p.x) * pixels, origin.y + static_cast<float>(p.y) * pixels};
  }
};

class SceneView {
 public:
  SceneView();
  ~SceneView();
  SceneView(SceneView&&) noexcept;
  SceneView& operator=(SceneView&&) noexcept;

  /// What is shown from now on; nullptr = nothing. Numbers that were shown before are not uploaded again.
  void show(std::shared_ptr<const Scene> scene);
  const std::shared_ptr<const Scene>& scene() const;

  /// Draws into the next `size` (logical pixels; 0 = what is left of the window) and reports the pointer. `id` names
  /// the view; its marks are named "id/mark" for tests.
  SceneTouch draw(Ui& ui, const char* id, SceneCamera& camera, const SceneViewOptions& options = {}, double width = 0,
                  double height = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A scene without heatmaps, at its own size, in a frame that keeps nothing of it.
void draw_marks(const Ui& ui, const Scene& scene, ImVec2 origin);

/// The topmost mark with an id at `p`: inside a filled box, a heatmap or a text, or within `reach` of a line or a
/// curve. A text without a tooltip gives way to the heatmap that it is written on.
const Mark* mark_at(const Scene& scene, Point p, double reach, const TextMeasure& measure);

}  // namespace headscope
