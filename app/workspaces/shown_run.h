#pragma once
// Which numbers the pictures of a head show: the edited run, the one before, or the difference, in tokens or words,
// with or without the first key; and what one cell of them says, in words. Thread rule: the UI thread; as_viewed() any.

#include <memory>
#include <optional>
#include <string>

#include "app/workspaces/page_context.h"

namespace headscope {

/// The run whose maps are shown, what they are subtracted from (null: nothing is), and whose words the axes are
/// (null: tokens).
struct ShownRun {
  std::shared_ptr<const Trace> trace, minus;
  std::shared_ptr<const TracedRun> words;
};
/// REQUIRES a run on screen.
ShownRun shown_run(const PageContext& c);

/// The whole of the run that is shown, whichever stack is looked at: of a difference that after the edits.
std::shared_ptr<const Trace> shown_whole(const PageContext& c);

/// The run with this head's map as the view wants it; the trace itself when it is shown as it is.
std::shared_ptr<const Trace> as_viewed(const ShownRun& run, HeadId head, FirstToken mode);

/// The selected head's map in the run on screen; nullptr without one.
const AttentionMap* selected_map(const PageContext& c);

/// The row whose weights are shown: the pinned one, else the one pointed at, else the last. REQUIRES a row.
Index shown_query(const PageContext& c, const AttentionMap& map);

struct CellWords {
  std::string words;       ///< "sold looks at Anna: 0.99"; with edits "… 0.99 → 0.31"
  std::string provenance;  ///< "query 22, key 8 · blocks.0.attn.hook_pattern[2][22, 8] = 0.9913"
  std::string source;      ///< "headscope cpu f32"
};
/// What the selected head's weight from one token to another says. nullopt outside the map.
std::optional<CellWords> cell_words(const PageContext& c, Index query, Index key);

/// How an enabled edit takes the head out, for beside its name: "taken out", "taken out at 3 … 5"; "" = it is not.
std::string taken_out(const std::vector<Intervention>& edits, HeadId head);

}  // namespace headscope
