#pragma once
// The part of a map that is looked at: the wheel and the hand choose it, the panel has a picture of it made. The
// picture is never enlarged, so its labels keep their size. Thread rule: the UI thread.

#include <optional>

#include "app/widgets/scene_view.h"
#include "viz/scene/map_cells.h"

namespace headscope {

class MapPart {
 public:
  /// How many queries and keys the whole has. A part stays inside it.
  void of(Index n_query, Index n_key);
  /// What is shown; nullopt = all of it.
  std::optional<MapRegion> region() const;
  bool whole() const { return !part_; }
  static constexpr const char* in_words = "the part of a map that the wheel had chosen";
  void reset() { part_.reset(); }

  /// How a view is drawn whose wheel and hand choose the part.
  static SceneViewOptions view();
  /// The wheel zooms, and a drag pans where `drag`. `map`: where the part, or the whole, lies in the scene. True when
  /// something changed.
  bool follow(const SceneTouch& touch, const Rect& map, bool drag);
  /// "Whole map", below the mark "minimap". Before the view: ImGui::SetNextItemAllowOverlap().
  void reset_button(Ui& ui, const SceneTouch& touch, const Scene& scene);
  /// The first query and key that are shown come here, as far as the map reaches.
  void place(double query, double key);
  /// Press or drag on the mark "minimap" of head_map_scene(): that place comes into the middle. True while the hand is
  /// on it.
  bool use_minimap(const SceneTouch& touch, const Scene& scene);
  /// The query, or the key, comes into sight.
  void reveal(Index query);
  void reveal_key(Index key);
  /// The cell comes into sight; where it would be too small there, in a part of `count` queries and keys round it.
  void show(Index query, Index key, std::optional<Index> count);

 private:
  /// In positions; the fractions of a slow drag are kept.
  struct Part {
    double query = 0, key = 0;     ///< first ones
    Index n_query = 0, n_key = 0;  ///< how many
  };
  void zoom(const SceneTouch& touch, const Rect& map, double lines);

  std::optional<Part> part_;
  Index n_query_ = 0, n_key_ = 0;
  bool on_minimap_ = false;  // the button went down there
};

}  // namespace headscope
