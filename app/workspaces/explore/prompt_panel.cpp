#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/panels.h"
#include "app/workspaces/shown_run.h"
#include "core/base/words.h"
#include "core/run/masked_tokens.h"

namespace headscope {

namespace {

/// What an encoder is asked: tokens at random, as in its training, or none.
void mask_row(const PageContext& c) {
  const Document& document = c.state().document;
  const Trace& trace = *c.trace();
  if (button(c.ui, to_say("Mask 15 %"), c.ui.px(24))) {
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
    tooltip(c.ui,
            {said("as training draws them: of the drawn tokens 80 % are masked, 10 % replaced by another, 10 % stay"),
             say("now asked for: {}, of which {} stand there as they are", asked, kept),
             said("right click a token, or K, masks the one")});
  }
  if (document.masked.empty()) return;
  ImGui::SameLine(0, c.ui.px(8));
  if (button(c.ui, to_say("Show all"), c.ui.px(24))) c.editor.set_masked({});
}

/// A text that is edited, and the tokens of the run on screen that it was read as. They are queries and keys of the
/// stack that is looked at, or one of both: of cross-attention the target's are queries, the source's keys.
struct Written {
  const std::string& text;
  const Trace* read;  // null without a run
  bool queries = true, keys = true;
  bool current() const { return read && read->text == text; }
};

/// What is drawn behind a token; nothing where nobody points at it.
Color ground_of(const PageContext& c, const Written& written, Index position) {
  const Hover& hover = c.state().hover;
  if (written.keys && hover.key == position) return with_opacity(c.ui.theme.key, 0.32);
  if (written.queries && hover.query == position) return with_opacity(c.ui.theme.query, 0.32);
  if (written.queries && c.state().document.query == position) return with_opacity(c.ui.theme.accent, 0.28);
  return {0, 0, 0, 0};
}

/// The tokens as stretches of the text, while it is still the same: the pinned one marked, the hovered ones pointed
/// out.
std::vector<TextMark> token_marks(const PageContext& c, const Written& written) {
  std::vector<TextMark> marks;
  if (!written.current()) return marks;
  for (std::size_t i = 0; i < written.read->tokens.size(); ++i) {
    const Token& token = written.read->tokens[i];
    if (token.begin < 0) continue;
    const TextMark mark{static_cast<std::size_t>(token.begin), static_cast<std::size_t>(token.end),
                        ground_of(c, written, static_cast<Index>(i))};
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

/// The same for token ids, of which the last stand at the last of what was read: before them may stand what begins a
/// target. True when they were changed.
bool ids_field(const PageContext& c, IdsEdit& edit, const char* id, const std::vector<std::int32_t>& ids,
               const Written& written, int vocabulary, int most_lines) {
  const Index front = written.read ? std::ssize(written.read->tokens) - std::ssize(ids) : -1;
  std::vector<Color> ground;
  for (Index i = 0; front >= 0 && i < std::ssize(ids); ++i) ground.push_back(ground_of(c, written, front + i));
  const IdsEdit::Touch touch = edit.draw(c.ui, id, ids, vocabulary, ground, most_lines);
  if (touch.hovered >= 0 && front >= 0) (written.keys ? c.hovered.key : c.hovered.query) = front + touch.hovered;
  if (touch.left) c.editor.history().close_step();
  return touch.changed;
}

/// The tokens of a run as they were before any was masked.
std::vector<std::int32_t> ids_read(const Trace& trace) {
  std::vector<std::int32_t> ids;
  for (const Token& token : trace.tokens) ids.push_back(token.original >= 0 ? token.original : token.id);
  return ids;
}

/// The text has more tokens than the model reads: which shall it be?
void offer_a_part(const PageContext& c, const TooLongText& text) {
  const UseFont font(c.ui, c.ui.body());
  paragraph(c.ui,
            text.counted
                ? say("The text has {} tokens; this model reads at most {}.", text.tokens, text.context)
                : say("The text has at least {} tokens; this model reads at most {}.", text.tokens, text.context),
            c.ui.theme.text);
  const std::string first = say("Keep first {}", text.context), last = say("Keep last {}", text.context);
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
  if (c.results().hears()) {
    sound_.draw(c);
  } else {
    section(c.ui, said("SOURCE"), said("the encoder reads it"));
    const Written source{document.source, whole ? whole->encoder.get() : nullptr, stack == Stack::encoder,
                         stack != Stack::decoder};
    if (!c.results().model.source_tokenizer) {
      if (ids_field(c, source_ids_, "##source ids", document.source_ids, source,
                    c.results().model.model->encoder()->config().dims.vocab, low ? 3 : 5))
        c.editor.set_source_ids(source_ids_.ids());
    } else if (written_field(c, source_, "##source", source, low ? 3 : 5, said("Write a text to translate …"))) {
      c.editor.set_source(source_.text());
    }
  }
  section(c.ui, said("TARGET"), said("the decoder reads it and goes on"));
  const Written target{document.text, whole, stack != Stack::encoder, stack == Stack::decoder};
  const bool ids = !c.results().model.tokenizer || !document.ids.empty();
  if (ids) {
    if (ids_field(c, ids_, "##ids", document.ids, target, c.results().model.model->config().dims.vocab, low ? 3 : 5))
      c.editor.set_ids(ids_.ids());
  } else if (written_field(c, edit_, "##prompt", target, low ? 3 : 5, said("Empty: only the token that begins it"))) {
    c.editor.set_text(edit_.text());
  }
  if (button(c.ui, to_say("Write target"), c.ui.px(24))) c.app.explorer.run.write_target();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(c.ui, {said("The model writes it: at every step the most probable token, until the one that ends texts"),
                   said("edits act meanwhile; Generate shows the steps, and samples")});
  if (ids ? document.ids.empty() : document.text.empty()) return;
  ImGui::SameLine(0, c.ui.px(8));
  if (button(c.ui, to_say("Empty it"), c.ui.px(24))) ids ? c.editor.set_ids({}) : c.editor.set_text("");
}

/// The prompt of a model of one stack: a text, or its token ids, which are all that a model without a tokenizer reads.
void PromptPanel::text_or_ids(const PageContext& c) {
  const Document& document = c.state().document;
  const LoadedModel& model = c.results().model;
  const Trace* trace = c.trace();
  const int most_lines = ImGui::GetIO().DisplaySize.y / c.ui.scale < 800 ? 4 : 8;
  const bool chosen = by_ids_ || !document.ids.empty(), ids = model.model && (chosen || !model.tokenizer);
  const char* other = chosen ? to_say("Text") : to_say("Token ids");
  const float width = model.tokenizer ? button_width(c.ui, other) : 0;
  const ImVec2 at = ImGui::GetCursorPos();
  section(c.ui, said("PROMPT"), model.model && !model.tokenizer ? said("token ids: this model has no tokenizer") : "",
          width);
  if (model.tokenizer) {
    const ImVec2 below = ImGui::GetCursorPos();
    ImGui::SetCursorPos({at.x + ImGui::GetContentRegionAvail().x - width, at.y - c.ui.px(3)});
    if (button(c.ui, other, c.ui.px(22))) {
      by_ids_ = !chosen;
      c.editor.history().close_step();
      if (chosen)
        c.editor.set_text(document.text.empty() ? model.tokenizer->decode(document.ids) : std::string(document.text));
      else if (trace && trace->text == document.text)
        c.editor.set_ids(ids_read(*trace));
      c.editor.history().close_step();
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(c.ui, {chosen ? document.text.empty() ? said("What these ids stand for, as text")
                                                    : said("The text that stood here before")
                            : said("The numbers of the tokens, to be written by hand")});
    ImGui::SetCursorPos(below);
  }
  if (!ids) {
    if (written_field(c, edit_, "##prompt", {document.text, trace}, most_lines, said("Write a text …")))
      c.editor.set_text(edit_.text());
  } else if (ids_field(c, ids_, "##ids", document.ids, {document.text, trace}, model.model->config().dims.vocab,
                       most_lines)) {
    c.editor.set_ids(ids_.ids());
  }
}

void PromptPanel::draw(const PageContext& c) {
  const Document& document = c.state().document;
  const Trace* trace = c.trace();
  const bool translates = c.results().translates();
  if (translates) {
    source_and_target(c);
  } else {
    text_or_ids(c);
    chat_.draw(c);
  }
  if (!translates) language_.draw(c);
  if (c.results().too_long) offer_a_part(c, *c.results().too_long);
  if (c.app.explorer.run.behind()) {
    const UseFont font(c.ui, c.ui.body());
    paragraph(c.ui, said("Not run to its end: the pictures are of what was there before."), c.ui.theme.text);
    if (button(c.ui, to_say("Run again (F5)"), c.ui.px(27))) c.app.explorer.run.run_again();
  }
  ImGui::Dummy({0, c.ui.px(2)});
  if (!trace) {
    if (c.results().hears()) return;
    const LoadedModel& model = c.results().model;
    const bool ids = model.model && !(translates ? model.source_tokenizer : model.tokenizer);
    const bool text = !ids && !(translates ? document.source : document.text).empty();
    if (!text && (translates ? document.source_ids : document.ids).empty())
      section(c.ui, said("TOKENS"),
              translates ? ids ? said("write the source's ids above") : said("write a source above")
              : ids ? said("write ids above")
                         : said("write a text above"));
    return;
  }
  if (trace->between_texts()) return tokens_.draw_capture(c);
  if (trace->sound) return;  // its rows are the sound above
  const std::string part = part_read(*trace);
  const bool words = c.words() != nullptr;
  const auto pinned = TokenStrip::pinned_row(c, selected_map(c));
  const std::string shaded = pinned ? say("shaded by where {} looks", token_word(c.positions(), c.shown(*pinned)))
                                    : said("shaded by attention received");
  section(c.ui, words ? said("WORDS") : said("TOKENS"),
          words ? say("{} of {} tokens · {}", c.words()->words(), trace->tokens.size(), shaded)
          : c.state().view.text_unit == TextUnit::words
              ? say("{} · too many words to be shown as words", trace->tokens.size())
          : part.empty()    ? fmt::format("{} · {}{}", trace->tokens.size(), shaded,
                                       pinned ? std::string()
                                                 : fmt::format(" · {}", asks_for_tokens(c.results())
                                                                            ? said("click to pin, right click to mask")
                                                                            : said("click to pin")))
             : part == "first" ? say("the first {} of the text", trace->tokens.size())
                            : say("the last {} of the text", trace->tokens.size()));
  if (!part.empty() && button(c.ui, to_say("Read another part"), c.ui.px(24)))
    c.editor.set_too_long(RunRequest::TooLong::refuse);
  if (asks_for_tokens(c.results())) mask_row(c);
  tokens_.draw(c);
}

}  // namespace headscope
