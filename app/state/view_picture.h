#pragma once
// The view on screen as a picture for a file.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/render/picture.h"
#include "app/state/app_state.h"
#include "core/run/target_rules.h"
#include "core/trace/words.h"

namespace headscope {

struct ExportOptions {
  std::filesystem::path file;  ///< .png, .svg, .pdf or .csv
  double dpi = 192;            ///< of a PNG
  bool for_print = true;       ///< white paper; else the theme on screen
  bool all_heads = false;      ///< the grid of all heads instead of the selected one
  PictureNote note = {};       ///< what the file says besides
};

/// Whether the view takes the scores of the selected head, for which its map has to be factored.
bool shows_scores(const View& view);
/// Whether it can be over words, and is wanted so.
bool shows_words(const View& view, bool all_heads);

/// The head on screen and how it is drawn: what is needed to draw the view of Explore on any thread.
struct ViewSource {
  std::shared_ptr<const Trace> trace;
  std::optional<WordGroups> words = {};  ///< of the trace's tokens, where words are shown
  Document document;
  View view;
  bool rotary = false, all_heads = false;
  std::shared_ptr<const Trace> whole = {};         ///< the run that `trace` is a part of …
  std::shared_ptr<const TargetRules> target = {};  ///< … and its model's, of speech: for the times of its words

  /// What to draw, over words where those are shown.
  std::pair<std::shared_ptr<const Trace>, PictureRequest> settled(const ExportOptions& options) const;
};
/// Writes it; returns what was written. Throws Error.
std::string export_view(const ViewSource& source, const ExportOptions& options);

/// What `headscope-cli render` would be asked for to draw this view of `trace`. Steps and q·k need a trace whose map of
/// the selected head is factored. `rotary`: the model turns its queries and keys.
PictureRequest view_picture(const Document& document, const View& view, const Trace& trace, bool rotary,
                            const ExportOptions& options);

}  // namespace headscope
