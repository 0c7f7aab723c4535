#pragma once
// The pictures and tables that are on screen, as what can draw them once more: for a file, in the colours of paper.
// Collected anew in every frame while somebody asks for them. Thread rule: the UI thread; `build` may run on any.

#include <functional>
#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/table.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct ShownPicture {
  std::string id;     ///< of the view: "lens"
  std::string title;  ///< of the scene; else the id
  double area = 0;    ///< on screen, logical pixels squared
  std::function<Scene(const Style&)> build;
  /// Of one that is drawn from its page's controls alone (app/state/page_picture.h): the room it was given, logical
  /// pixels, and what draws it in any. 0 and none of others.
  double room_width = 0, room_height = 0;
  std::function<Scene(double width, double height, const Style&)> in_room = {};
  std::string passing = {};  ///< as of all of them, of this one alone
};

struct ShownPictures {
  bool asked = false;  ///< the export dialog is open
  std::vector<ShownPicture> all;
  // Said anew in every frame by whoever shows such a thing:
  std::string passing;   ///< what of them no session holds, in words: "a training"
  bool started = false;  ///< what takes a press of Start has come to its end

  void add(const std::string& id, const std::string& title, double area, std::function<Scene(const Style&)> build) {
    if (asked) all.push_back({id, title.empty() ? id : title, area, std::move(build), 0, 0, {}});
  }
  /// What of the picture no session holds, once it is among them.
  void pass(const std::string& id, const std::string& what) {
    for (ShownPicture& each : all)
      if (each.id == id) each.passing = what;
  }
  /// A list that a panel writes itself: `cells` makes all of its rows, also those that are scrolled out of sight.
  void add_table(const std::string& id, const std::string& title, std::function<Table()> cells) {
    add(id, title, 1, [cells = std::move(cells)](const Style& style) { return table_scene(cells(), style); });
  }
};

}  // namespace headscope
