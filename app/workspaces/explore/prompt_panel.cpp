#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/panels.h"
#include "app/workspaces/shown_run.h"
#include "core/run/masked_tokens.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

/// How much attention each key of the selected head receives, 0 … 1 of the largest.
std::vector<double> attention_received(const PageContext& c) {
  const Trace* trace = c.trace();
  std::vector<double> shades(c.positions().tokens.size(), -1);
  const HeadId head = c.state().document.selected;
  for (const AttentionMap& map : trace->maps) {
    if (map.layer() != head.layer || map.head() != head.head) continue;
    const std::vector<double>& mass = map.stats().column_mass;
    std::vector<double> received(shades.size(), 0);
    for (std::size_t i = 0; i < mass.size(); ++i)
      if (const auto at = static_cast<std::size_t>(c.shown(static_cast<Index>(i))); at < received.size())
        received[at] += mass[i];
    const double largest = received.empty() ? 0 : *std::ranges::max_element(received);
    for (std::size_t i = 0; i < shades.size(); ++i) shades[i] = largest > 0 ? received[i] / largest : 0;
  }
  return shades;
}

/// Where the pinned token looks in the selected head: its row, as strong as the map's cells. Below 0: masked.
std::vector<double> row_of_pinned(const PageContext& c, const AttentionMap& map, Index query) {
  const WordGroups* words = c.words();
  std::vector<double> row;
  double largest = 0;
  for (Index k = 0; k < static_cast<Index>(c.positions().tokens.size()); ++k) {
    const bool masked = !words && map.masked(query, k);
    const float weight = words    ? weight_in_words(map, *words, c.shown(query), k)
                         : masked ? std::numeric_limits<float>::quiet_NaN()
                                  : map.weight(query, k);
    row.push_back(std::isnan(weight) ? -1 : std::abs(static_cast<double>(weight)));
    largest = std::max(largest, row.back());
  }
  // Weights that are no shares of 1 are shown beside their largest.
  if (map.place().kind == MapKind::effective && largest > 0)
    for (double& weight : row) weight = weight < 0 ? weight : weight / largest;
  return row;
}

/// The row that the strip is shaded by; nullopt while it is shaded by what every token receives.
std::optional<Index> pinned_row(const PageContext& c, const AttentionMap* map) {
  const auto query = c.state().document.query;
  return map && query && *query < map->n_query() ? query : std::nullopt;
}

/// The queries of another text: a click pins one.
void query_strip(const PageContext& c) {
  const std::vector<Token>& tokens = c.trace()->query_tokens;
  const float gap = c.ui.px(3);
  const auto visible_rows = ImGui::BeginChild(
      "queries", {0, std::min(c.ui.px(118), c.ui.px(26) * std::ceil(static_cast<float>(tokens.size()) / 5 + 1))},
      ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened);
  if (visible_rows) {
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {gap, gap});
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto position = static_cast<Index>(i);
      if (i > 0) {
        ImGui::SameLine(0, gap);
        if (ImGui::GetCursorScreenPos().x + c.ui.px(token_chip_width(c.ui, tokens[i].label)) > right) ImGui::NewLine();
      }
      ChipOptions chip;
      chip.shade = -1;
      chip.selected = c.state().document.query == position;
      chip.hovered = c.state().hover.query == position;
      const Touch touch = token_chip(c.ui, tokens[i].label, "query token " + std::to_string(i), chip);
      if (touch.hovered) c.hovered.query = position;
      if (touch.clicked) c.editor.pin(chip.selected ? std::nullopt : std::optional(position));
    }
    ImGui::PopStyleVar();
  }
  ImGui::EndChild();
}

/// What an encoder is asked: tokens at random, as in its training, or none.
void mask_row(const PageContext& c) {
  const Document& document = c.state().document;
  const Trace& trace = *c.trace();
  if (button(c.ui, "Mask 15 %", c.ui.px(24))) {
    // Drawn anew with every press: the seed counts what is masked now, so that undo and a session give the same again.
    std::uint64_t seed = 1;
    for (const MaskedPosition& each : document.masked) seed = seed * 31 + static_cast<std::uint64_t>(each.position) + 1;
    std::vector<Token> whole = trace.tokens;
    for (Token& token : whole)
      if (token.original >= 0) token.id = token.original;
    const std::vector<std::int32_t> marks = marks_of(c.results().model.tokenizer.get());
    std::vector<MaskedPosition> drawn = document.masked;
    for (int turn = 0; turn < 16 && drawn == document.masked; ++turn)  // few tokens leave little choice
      drawn = draw_masked(whole, marks, trace.model.dims.vocab, seed + static_cast<std::uint64_t>(turn));
    c.editor.set_masked(std::move(drawn));
  }
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) {
    const auto kept =
        std::ranges::count_if(trace.tokens, [](const Token& t) { return t.masked && t.id == t.original; });
    const auto asked = std::ranges::count(trace.tokens, true, &Token::masked);
    tooltip(c.ui, {"as training draws them: of the drawn tokens 80 % are masked, 10 % replaced by another, 10 % stay",
                   fmt::format("now asked for: {}, of which {} stand there as they are", asked, kept),
                   "right click a token, or K, masks the one"});
  }
  if (document.masked.empty()) return;
  ImGui::SameLine(0, c.ui.px(8));
  if (button(c.ui, "Show all", c.ui.px(24))) c.editor.set_masked({});
}

void token_strip(const PageContext& c) {
  const WordGroups* words = c.words();
  const Trace& trace = c.positions();
  const AttentionMap* map = selected_map(c);
  const std::optional<Index> pinned = pinned_row(c, map);
  const std::vector<double> shades = pinned ? row_of_pinned(c, *map, *pinned) : attention_received(c);
  const float gap = c.ui.px(3);
  const Document& document = c.state().document;
  const auto visible_rows = ImGui::BeginChild(
      "tokens", {0, std::min(c.ui.px(118), c.ui.px(26) * std::ceil(static_cast<float>(trace.tokens.size()) / 5 + 1))},
      ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened);
  if (visible_rows) {
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;  // left of a scroll bar
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {gap, gap});
    for (std::size_t i = 0; i < trace.tokens.size(); ++i) {
      const auto position = static_cast<Index>(i);
      // What is pinned and hovered are tokens: of a word its last, where the model has read all of it.
      const Index token = words ? words->tokens_of(position).end - 1 : position;
      const auto here = [&](std::optional<Index> other) { return other && c.shown(*other) == position; };
      if (i > 0) {
        ImGui::SameLine(0, gap);
        const float width = c.ui.px(token_chip_width(c.ui, trace.tokens[i].label));
        if (ImGui::GetCursorScreenPos().x + width > right) ImGui::NewLine();
      }
      ChipOptions chip;
      chip.shade = shades[i];
      chip.faint = pinned && shades[i] < 0;
      chip.asked = trace.tokens[i].masked;
      const bool both = !trace.between_texts();  // the strip is of the queries, too
      chip.selected = both && here(document.query);
      chip.hovered = here(c.state().hover.key) || (both && here(c.state().hover.query));
      const Touch touch = token_chip(c.ui, trace.tokens[i].label, "token " + std::to_string(i), chip);
      if (touch.hovered) {
        c.hovered.key = token;
        if (const auto says = pinned ? cell_words(c, *pinned, token) : std::nullopt)
          tooltip(c.ui, {says->words, says->provenance, says->source});
      }
      if (touch.clicked && !trace.between_texts())
        c.editor.pin(here(document.query) ? std::nullopt : std::optional(token));
      const Index first = words ? words->tokens_of(position).begin : position;
      if (touch.right_clicked && can_mask(document, c.results(), first))
        c.editor.toggle_masked(static_cast<int>(first), static_cast<int>(token - first + 1));
    }
    ImGui::PopStyleVar();
  }
  ImGui::EndChild();
}

}  // namespace

namespace {

/// A text that is edited, and the tokens of the run on screen that it was read as. They are queries and keys of the
/// stack that is looked at, or one of both: of cross-attention the target's are queries, the source's keys.
struct Written {
  const std::string& text;
  const Trace* read;  // null without a run
  bool queries = true, keys = true;
  bool current() const { return read && read->text == text; }
};

/// The tokens as stretches of the text, while it is still the same: the pinned one marked, the hovered ones pointed
/// out.
std::vector<TextMark> token_marks(const PageContext& c, const Written& written) {
  std::vector<TextMark> marks;
  if (!written.current()) return marks;
  const Document& document = c.state().document;
  const Hover& hover = c.state().hover;
  for (std::size_t i = 0; i < written.read->tokens.size(); ++i) {
    const Token& token = written.read->tokens[i];
    if (token.begin < 0) continue;
    const auto position = static_cast<Index>(i);
    TextMark mark{static_cast<std::size_t>(token.begin), static_cast<std::size_t>(token.end)};
    if (written.queries && document.query == position) mark.ground = with_opacity(c.ui.theme.accent, 0.28);
    if (written.queries && hover.query == position) mark.ground = with_opacity(c.ui.theme.query, 0.32);
    if (written.keys && hover.key == position) mark.ground = with_opacity(c.ui.theme.key, 0.32);
    if (mark.ground.a) marks.push_back(mark);
  }
  return marks;
}

/// The field itself; true when its text was changed. A token under the pointer is hovered everywhere.
bool written_field(const PageContext& c, PromptEdit& edit, const char* id, const Written& written, int most_lines,
                   const char* hint) {
  const PromptTouch touch = edit.draw(c.ui, id, written.text, token_marks(c, written), most_lines, hint);
  if (touch.hovered && written.current())
    for (std::size_t i = 0; i < written.read->tokens.size(); ++i) {
      const Token& token = written.read->tokens[i];
      if (token.begin < 0 || *touch.hovered < static_cast<std::size_t>(token.begin) ||
          *touch.hovered >= static_cast<std::size_t>(token.end))
        continue;
      (written.keys ? c.hovered.key : c.hovered.query) = static_cast<Index>(i);
    }
  if (touch.left) c.editor.history().close_step();
  return touch.changed;
}

/// The text has more tokens than the model reads: which shall it be?
void offer_a_part(const PageContext& c, const TooLongText& text) {
  const UseFont font(c.ui, c.ui.body());
  paragraph(c.ui,
            fmt::format("The text has {}{} tokens; this model reads at most {}.", text.counted ? "" : "at least ",
                        text.tokens, text.context),
            c.ui.theme.text);
  const std::string first = fmt::format("Keep first {}", text.context),
                    last = fmt::format("Keep last {}", text.context);
  if (button(c.ui, first.c_str(), c.ui.px(27))) c.editor.set_too_long(RunRequest::TooLong::keep_first);
  const float room = button_width(c.ui, last.c_str()) + c.ui.px(8);
  if (ImGui::GetItemRectMax().x + room < ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x)
    ImGui::SameLine(0, c.ui.px(8));
  if (button(c.ui, last.c_str(), c.ui.px(27))) c.editor.set_too_long(RunRequest::TooLong::keep_last);
}

/// What part of a long text is read: "first" or "last"; "" = all of it.
std::string part_read(const Trace& trace) {
  const auto in_text = [](const Token& token) { return token.begin >= 0; };
  const auto first = std::ranges::find_if(trace.tokens, in_text);
  if (first == trace.tokens.end()) return "";
  if (first->begin > 0) return "last";
  const Token& last = trace.tokens.back();
  return last.end >= 0 && static_cast<std::size_t>(last.end) < trace.text.size() ? "first" : "";
}

}  // namespace

/// What an encoder-decoder reads, and what it has written of it so far, or shall be taken to have written.
void PromptPanel::source_and_target(const PageContext& c) {
  const Document& document = c.state().document;
  const bool low = ImGui::GetIO().DisplaySize.y / c.ui.scale < 800;
  const Trace* whole = c.whole();
  const Stack stack = document.stack;
  section(c.ui, "SOURCE", "the encoder reads it");
  const Written source{document.source, whole ? whole->encoder.get() : nullptr, stack == Stack::encoder,
                       stack != Stack::decoder};
  if (written_field(c, source_, "##source", source, low ? 3 : 5, "Write a text to translate …"))
    c.editor.set_source(source_.text());
  section(c.ui, "TARGET", "the decoder reads it and goes on");
  const Written target{document.text, whole, stack != Stack::encoder, stack == Stack::decoder};
  if (written_field(c, edit_, "##prompt", target, low ? 3 : 5, "Empty: only the token that begins it"))
    c.editor.set_text(edit_.text());
  if (button(c.ui, "Write target", c.ui.px(24))) c.app.explorer.run.write_target();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(c.ui, {"The model writes it: at every step the most probable token, until the one that ends texts",
                   "edits act meanwhile; Generate shows the steps, and samples"});
  if (document.text.empty()) return;
  ImGui::SameLine(0, c.ui.px(8));
  if (button(c.ui, "Empty it", c.ui.px(24))) c.editor.set_text("");
}

void PromptPanel::draw(const PageContext& c) {
  const Document& document = c.state().document;
  const Trace* trace = c.trace();
  const bool translates = c.results().translates();
  if (translates) {
    source_and_target(c);
  } else {
    section(c.ui, "PROMPT");
    const int most_lines = ImGui::GetIO().DisplaySize.y / c.ui.scale < 800 ? 4 : 8;
    if (written_field(c, edit_, "##prompt", {document.text, trace}, most_lines, "Write a text …"))
      c.editor.set_text(edit_.text());
    chat_.draw(c);
  }
  if (c.results().too_long) offer_a_part(c, *c.results().too_long);
  if (c.app.explorer.run.behind()) {
    const UseFont font(c.ui, c.ui.body());
    paragraph(c.ui, "Not run to its end: the pictures are of what was there before.", c.ui.theme.text);
    if (button(c.ui, "Run again (F5)", c.ui.px(27))) c.app.explorer.run.run_again();
  }
  ImGui::Dummy({0, c.ui.px(2)});
  if (!trace) {
    if (translates ? document.source.empty() : document.text.empty() && document.ids.empty())
      section(c.ui, "TOKENS", translates ? "write a source above" : "write a text above");
    return;
  }
  if (trace->between_texts()) return draw_capture_tokens(c);
  const std::string part = part_read(*trace);
  const bool words = c.words() != nullptr;
  const auto pinned = pinned_row(c, selected_map(c));
  const std::string shaded = pinned
                                 ? fmt::format("shaded by where {} looks", token_word(c.positions(), c.shown(*pinned)))
                                 : "shaded by attention received";
  section(c.ui, words ? "WORDS" : "TOKENS",
          words ? fmt::format("{} of {} tokens · {}", c.words()->words(), trace->tokens.size(), shaded)
          : c.state().view.text_unit == TextUnit::words
              ? fmt::format("{} · too many words to be shown as words", trace->tokens.size())
          : part.empty() ? fmt::format("{} · {}{}", trace->tokens.size(), shaded,
                                       pinned                         ? ""
                                       : asks_for_tokens(c.results()) ? " · click to pin, right click to mask"
                                                                      : " · click to pin")
                         : fmt::format("the {} {} of the text", part, trace->tokens.size()));
  if (!part.empty() && button(c.ui, "Read another part", c.ui.px(24)))
    c.editor.set_too_long(RunRequest::TooLong::refuse);
  if (asks_for_tokens(c.results())) mask_row(c);
  token_strip(c);
}

void draw_capture_tokens(const PageContext& c) {
  const Trace& trace = *c.trace();
  const auto pinned = pinned_row(c, selected_map(c));
  const std::string shaded = pinned
                                 ? fmt::format("shaded by where {} looks", query_word(c.positions(), c.shown(*pinned)))
                                 : "shaded by attention received";
  if (trace.between_texts()) {
    section(c.ui, "QUERIES", fmt::format("{} · click to pin", trace.query_tokens.size()));
    query_strip(c);
  }
  section(c.ui,
          trace.between_texts() ? "KEYS"
          : trace.picture       ? "PATCHES"
          : c.words()           ? "WORDS"
                                : "TOKENS",
          fmt::format("{} · {}", c.positions().tokens.size(), shaded));
  token_strip(c);
}

}  // namespace headscope
