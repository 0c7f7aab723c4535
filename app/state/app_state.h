#pragma once
// Everything the window shows that is not a result: plain values, owned by the UI thread. `Document` is what undo goes
// back over and, with `View`, what a session file holds; `Hover` lives for a moment.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/run/run_request.h"
#include "core/tensor/tensor.h"
#include "viz/color/color_norm.h"

namespace headscope {

/// Queries, keys and values made by hand in the Mechanisms workspace.
struct MatricesByHand {
  Tensor q, k, v;       ///< (n, d), (m, d), (m, d_v): small, never written to
  double scale = 0;     ///< of the scores; 0 = 1/√d
  std::string mask;     ///< spec
  std::string example;  ///< id of the worked example whose numbers these are; "" = one's own
};

/// What is being looked at, and what is changed about it.
struct Document {
  std::filesystem::path model;           ///< folder; empty = none open yet
  std::string text;                      ///< used while `ids` is empty
  std::vector<std::int32_t> ids;         ///< given directly
  std::string source;                    ///< what an encoder-decoder's encoder reads; `text` is its target
  std::vector<std::int32_t> source_ids;  ///< given directly in its place
  std::filesystem::path image;           ///< what a model of pictures reads; the text stays for one of texts
  std::filesystem::path sound;           ///< what a model of speech reads in place of a source, likewise
  std::optional<bool> add_bos;           ///< empty: as the tokenizer says
  bool parse_special = false;            ///< names of special tokens in the text are those tokens
  std::vector<MaskedPosition> masked;    ///< what an encoder is asked for in this very text, ascending
  HeadId selected;
  Stack stack = Stack::only;        ///< whose heads are looked at; `only` in models of one stack
  std::optional<Index> query, key;  ///< pinned row, and in it a pinned cell
  std::vector<Intervention> edits;  ///< in order; a later one wins
  /// What to read of a text that is longer than the model's context.
  RunRequest::TooLong too_long = RunRequest::TooLong::refuse;
  /// Null until somebody made some; no part of a session file. The same ones are the same object.
  std::shared_ptr<const MatricesByHand> by_hand;

  bool operator==(const Document&) const = default;
};

/// What a model is asked to read and how it is edited, all of it: what the document holds for models of another kind,
/// too.
RunRequest request_of(const Document& document);
/// The document of which that is asked; nothing in it is selected.
Document document_of(const RunRequest& request);

/// `heads`: the row of one token in every head. `picture`: that row over the picture whose patches the keys are.
enum class HeadView { map, arcs, row, steps, qk, heads, picture };
/// What to do with key 0, where sinks drown everything else.
enum class FirstToken { show, hide, renormalize };
/// What stands along the axes: tokens as the model reads them, or words (core/trace/words.h).
enum class TextUnit { tokens, words };
/// Which heads a temperature or a mask of the side panel is meant for.
enum class EditScope { head, layer, all };

/// Which heads the atlas shows, in which order, in what colour.
struct AtlasView {
  std::string coloring = "map";  ///< "map", "class", "effect", or the id of a metric
  std::string sort;              ///< "" = layer by layer, else the id of a metric; largest first
  bool ascending = false;
  std::string only_class;     ///< "" = all heads, else the id of a class
  std::string filter_metric;  ///< "" = all heads, else only those with filter_low ≤ value ≤ filter_high
  double filter_low = 0, filter_high = 0;
  bool operator==(const AtlasView&) const = default;
};

/// What the left button does on the cells of a head's map.
enum class MapTool { style, weight, mask };
/// Which run the head's pictures show while edits are on.
enum class Shown { after, before, difference };

struct View {
  HeadView head_view = HeadView::map;
  MapTool map_tool = MapTool::style;
  Shown shown = Shown::after;
  Scale scale = Scale::linear;
  FirstToken first_token = FirstToken::show;
  TextUnit text_unit = TextUnit::tokens;
  double arcs_threshold = 0.05;
  bool smooth_picture = false;  ///< weights over a picture run from one patch to the next
  bool follow_row = false;  ///< the pinned row stays in sight on the map; what is looked for there is looked for in it
  AtlasView atlas;
  EditScope edit_scope = EditScope::head;
  /// Tokens whose logits are compared, first − second; empty: the two most probable ones before the edits.
  std::optional<std::pair<std::int32_t, std::int32_t>> contrast;
  std::string theme = "dark";                                    ///< "dark", "light", "projector"
  double left_width = 340, right_width = 320, row_height = 130;  ///< of the panels, logical pixels
  bool left_open = true, right_open = true, row_open = true;
  bool operator==(const View&) const = default;
};

/// What the pointer is over, in any panel: every panel shows it.
struct Hover {
  std::optional<HeadId> head;
  std::optional<Index> query, key;
  bool operator==(const Hover&) const = default;
};

struct AppState {
  Document document;
  View view;
  Hover hover;
};

/// The words of session files, menus and the command line; parse gives nullopt for anything else.
std::string_view name(HeadView view);
std::optional<HeadView> parse_head_view(std::string_view text);
std::string_view name(MapTool tool);
std::optional<MapTool> parse_map_tool(std::string_view text);
std::string_view name(Shown shown);
std::optional<Shown> parse_shown(std::string_view text);
std::string_view name(FirstToken mode);
std::optional<FirstToken> parse_first_token(std::string_view text);
std::string_view name(TextUnit unit);
std::optional<TextUnit> parse_text_unit(std::string_view text);
std::string_view name(EditScope scope);
std::optional<EditScope> parse_edit_scope(std::string_view text);
std::string_view name(RunRequest::TooLong what);
std::optional<RunRequest::TooLong> parse_too_long(std::string_view text);
/// The text itself when it names a theme of the window.
std::optional<std::string> parse_theme(std::string_view text);

/// The heads that `scope` means while `selected` is selected, of the stack that is looked at.
HeadTarget target_of(EditScope scope, HeadId selected, Stack stack);
/// What the enabled edits make of one head: 1 and "" when they leave it alone. `edits` are those of the head's stack
/// (edits_of).
double temperature_of(const std::vector<Intervention>& edits, HeadId head);
std::string mask_of(const std::vector<Intervention>& edits, HeadId head);
/// Sets τ or the mask for `target` the way a slider does: enabled edits of the same kind that the new one covers go,
/// and it comes last. τ = 1 or mask "" is the model's own, which needs an edit only to overrule one that reaches
/// further (the mask `own` is the same as ""). τ is cut to its range; a mask's spec that does not parse throws Error.
void set_temperature(std::vector<Intervention>& edits, const HeadTarget& target, double tau);
void set_mask(std::vector<Intervention>& edits, const HeadTarget& target, const std::string& spec,
              const std::string& own = "causal");

}  // namespace headscope
