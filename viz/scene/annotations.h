#pragma once
// What surrounds every picture: title block, colour bar, caption. One place, so that all pictures look like one family.

#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/heatmap.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

inline constexpr double margin = 24;      ///< free ground round every picture
inline constexpr double slim_margin = 6;  ///< … of a panel, on its own ground: what letters may be wider than measured
inline constexpr double narrowest = 340;  ///< room that a title block may always use

/// A short fact about a head, "induction 0.87", in the fixed hue of its class.
struct Badge {
  std::string text;  ///< "" = none
  Color color;
};

struct Header {
  std::string title;  ///< "Layer 5 · Head 1"
  Badge badge;
  std::string subtitle;                                    ///< one line, elided
  std::vector<std::pair<std::string, std::string>> facts;  ///< ("Entropy", "0.94 nats")
};

/// Draws from y downwards in [x, x + width]; returns the lower end.
double add_header(Scene& scene, const Header& header, double x, double y, double width, const Style& style);

struct ColorBar {
  std::string label;  ///< "attention weight"
  ColorNorm norm;
  const Colormap* colormap = nullptr;
  double highest = 0;                    ///< largest value shown: a range that cuts it off says so
  bool masked = false, missing = false;  ///< explain these colours too …
  std::string masked_text = to_say("masked"), missing_text = to_say("not a number");  ///< … in these words
};

/// Draws from y downwards in [x, x + width]; returns the lower end.
double add_color_bar(Scene& scene, const ColorBar& bar, double x, double y, double width, const Style& style);

/// Small lines of text, wrapped; returns the lower end.
double add_caption(Scene& scene, const std::string& text, double x, double y, double width, const Style& style);

/// "Layer 1 · Head 0"
std::string head_title(HeadId head);
/// "gpt2 · 14 tokens · When Mary and John …"
std::string describe_run(const Trace& trace);
/// What the numbers are, for the colour bar: "attention weight" or "effective weight".
std::string describe_weights(MapKind kind, Scale scale);

/// A colour of the same hue that can be read on `ground`.
Color readable(Color color, Color ground, const Theme& theme);

}  // namespace headscope
