#pragma once
// From an AttentionMap to the cells of a picture: exact while they fit, pooled when they do not.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/trace/map_pyramid.h"
#include "core/trace/trace.h"
#include "viz/color/color_norm.h"
#include "viz/scene/heatmap.h"
#include "viz/scene/theme.h"

namespace headscope {

struct MapCells {
  Index bin = 1;                     ///< queries (and keys) in a cell
  Tensor values;                     ///< (row, column)
  std::vector<std::uint8_t> masked;  ///< row-major; a cell is masked when all of its weights are. Empty = none is
  Index n_query = 0, n_key = 0;      ///< of the map itself, or of the part of it
  Index query = 0, key = 0;          ///< of the map, where the first cell begins
  bool with_signs = false;           ///< the map has weights below 0, whether or not a cell shows one
  bool unfinished = false;           ///< some cells show the maximum of a wider part until their own is computed

  Index rows() const { return values.dim(0); }
  Index columns() const { return values.dim(1); }
  bool any_masked() const;
  bool any_missing() const;               ///< an unmasked NaN
  float lowest() const, highest() const;  ///< over finite unmasked cells; 0 when there is none
  bool any_negative() const { return with_signs || lowest() < 0; }
};

/// A part of a map: rows and keys, counted from the map's first.
struct MapRegion {
  Index query = 0, n_query = 0, key = 0, n_key = 0;
  bool operator==(const MapRegion&) const = default;
};

/// At most `max_cells` on a side. A factored map whose weights are too many to go through answers with the overview
/// stored during its run, which may be coarser.
MapCells map_cells(const AttentionMap& map, Index max_cells);
/// The same of a part of it, which alone is computed. REQUIRES a region inside the map, not empty.
MapCells map_cells(const AttentionMap& map, const MapRegion& region, Index max_cells);
/// The same from a pyramid, whose bins are powers of two and begin at multiples of themselves: the part is widened to
/// whole bins, as many wherever it lies. What is missing is computed for as long as `go_on` says.
MapCells map_cells(MapPyramid& pyramid, const MapRegion& region, Index max_cells, const std::function<bool()>& go_on,
                   ThreadPool* pool = nullptr);
/// The same from AttentionMap::overview(): cheap for hundreds of long maps, which is what thumbnails need.
MapCells overview_cells(const AttentionMap& map, Index max_cells);

/// What the user asked of the scale; what is not said follows from the kind of numbers.
struct Scaling {
  Scale scale = Scale::linear;
  std::optional<double> low, high;
};

/// One norm for all of `maps` (they are compared with one another). Probabilities: 0 … 1 (log: 10⁻⁴ … 1). Signed
/// weights: symmetric about 0, however large the bins are that show them. Throws Error when the range is empty, or a
/// log or per-row scale meets signed weights.
ColorNorm norm_for(std::span<const MapCells> maps, MapKind kind, const Scaling& scaling);

/// True when colours should come from a diverging map: zero lies inside the range.
inline bool is_signed(const ColorNorm& norm) {
  return norm.scale == Scale::linear && norm.low < 0;
}

/// The cells as they will be drawn in `rect`.
Heatmap heatmap_of(const MapCells& cells, const Rect& rect, const ColorNorm& norm, const Theme& theme);

/// How weights become one cell: "max-pooled", of weights with signs "pooled by largest |weight|".
const char* pooled_how(bool signed_values);
/// "max-pooled 1024 × 1024 → 512 × 512", of weights with signs "pooled by largest |weight| …"; "" for exact cells.
std::string pooling_note(const MapCells& cells);

/// The label of a position of the keys' text, printable; its number when the trace has no token there.
std::string token_label(const Trace& trace, Index position);
/// The same of the queries' text: another one in cross-attention.
std::string query_label(const Trace& trace, Index position);

/// The same as a word of a sentence: "Anna" for "␣Anna". A token of spaces alone keeps its sign.
std::string token_word(const Trace& trace, Index position);
std::string query_word(const Trace& trace, Index position);

/// What a cell says, in words: "sold looks at Anna: 0.99", with `before` "… : 0.99 → 0.31", and "sold cannot see Anna"
/// where the mask hides it (NaN).
std::string looks_at(const Trace& trace, Index query, Index key, double weight,
                     std::optional<double> before = std::nullopt);

/// The same of one number of a map: of a difference "sold looks at Anna 0.31 less".
std::string weight_says(const Trace& trace, MapKind kind, Index query, Index key, double weight);

/// "blocks.5.attn.hook_pattern[1]"; of an encoder-decoder with its stack,
/// "decoder.blocks.5.cross_attn.hook_pattern[1]".
std::string map_name(const Trace& trace, HeadId head);

/// The map, or an Error that says which heads the trace holds.
const AttentionMap& map_of(const Trace& trace, HeadId head);

}  // namespace headscope
