#pragma once
// A picture of a trace as a plain value, and its way to a file. `headscope-cli render` and the window's export both end
// here, so that they write the same bytes for the same request.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/trace.h"
#include "viz/color/color_norm.h"
#include "viz/export/raster.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct SpokenWords;

struct PictureRequest {
  enum class Kind {
    map,
    arcs,
    bars,     ///< the weights of one query
    patches,  ///< the same laid over the picture whose patches the keys are, or the sound whose stretches they are
    steps,    ///< scores → mask → softmax; needs factored maps
    split,    ///< one score by dimension, or by rotary pair; needs factored maps
  };
  /// None: the grid of all, or, with a query, that token's row in all; one: `kind`; several: their maps side by side.
  std::vector<HeadId> heads;
  Kind kind = Kind::map;
  Scaling scaling;
  std::optional<Index> query, key;  ///< pointed out; bars and split need a query, split a key
  double threshold = 0.05;          ///< arcs below it are not drawn
  bool skip_first = false;          ///< key 0, where sinks drown everything else, is left out …
  bool renormalize = false;         ///< … and each row divided by what is left of it
  bool rotary = false;              ///< split: by rotary pairs
  bool values = true;               ///< numbers inside cells
  bool smooth = false;              ///< patches: weights run from one to the next instead of standing flat
  std::shared_ptr<const SpokenWords> spoken = {};  ///< over a sound: its words where they were said
  int columns = 0;                                 ///< of several heads; 0 = by their number
};

/// Whether the first key's part in what is drawn follows skip_first and renormalize: in grids, steps and scores it
/// stands as it is.
bool leaves_out_first(const PictureRequest& request);

/// Throws Error when the trace lacks a head, a row, or the factors that the picture needs, or the scale does not suit
/// the weights.
Scene picture_scene(const Trace& trace, const PictureRequest& request, const Style& style);

enum class FileKind { png, svg, pdf, csv };
/// By the ending, in capitals or not; nullopt for any other.
std::optional<FileKind> kind_of_file(const std::filesystem::path& path);

/// A .gif or .apng, in capitals or not: pictures one after another (viz/export/animation.h).
bool is_film(const std::filesystem::path& path);

/// What a picture's file tells besides what it shows; "" = nothing.
struct PictureNote {
  std::string model = {};   ///< model_note() (core/analysis/certificate.h), behind where the numbers come from
  std::string recipe = {};  ///< to_json() (app/state/picture_recipe.h)
};

/// Writes a scene as PNG, SVG or PDF by the file's ending, with `note` in the file's metadata. Returns what was
/// written, "head.png  1280 × 960 pixels, 96 dpi". Throws Error on another ending, on limits of size, and from the file
/// system.
std::string write_picture(const Scene& scene, const std::filesystem::path& path, const OutputSize& size,
                          const PictureNote& note = {});

/// What a picture's file says: where its numbers come from, and of its model.
std::string description_of(const Scene& scene, const std::string& model_note);

/// The same, and a .csv of the picture's numbers (viz/export/csv.h), whose note lies beside it (recipe_note.h).
std::string write_scene(const Scene& scene, const std::filesystem::path& path, const OutputSize& size,
                        const PictureNote& note = {});

/// The whole way: scene and file, or the numbers of the one head, or of one token in all heads, as CSV. A width in
/// pixels that is smaller than the picture makes a picture of fewer labels, not of smaller ones. Returns what was
/// written. Throws as above, and Error for a CSV of anything else. Any thread.
std::string export_picture(const Trace& trace, const PictureRequest& request, const std::string& theme,
                           const std::filesystem::path& path, const OutputSize& size, const PictureNote& note = {});

}  // namespace headscope
