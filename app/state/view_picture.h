#pragma once
// The view on screen as a picture for a file.

#include <filesystem>

#include "app/render/picture.h"
#include "app/state/app_state.h"

namespace headscope {

struct ExportOptions {
  std::filesystem::path file;   ///< .png, .svg or .csv
  double dpi = 192;             ///< of a PNG
  bool for_print = true;        ///< white paper; else the theme on screen
  bool all_heads = false;       ///< the grid of all heads instead of the selected one
  std::string model_note = {};  ///< what the file says of the model (core/analysis/certificate.h); "" = nothing
};

/// What `headscope-cli render` would be asked for to draw this view of `trace`. Steps and q·k need a trace whose map of
/// the selected head is factored. `rotary`: the model turns its queries and keys.
PictureRequest view_picture(const Document& document, const View& view, const Trace& trace, bool rotary,
                            const ExportOptions& options);

}  // namespace headscope
