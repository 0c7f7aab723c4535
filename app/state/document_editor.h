#pragma once
// The document's commands and their history: what the user does to text, edits and what is looked at, each a step that
// can be undone. Knows neither models nor jobs. Thread rule: the UI thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/state/app_state.h"
#include "app/state/history.h"

namespace headscope {

class DocumentEditor {
 public:
  const AppState& state() const { return state_; }
  const Document& document() const { return state_.document; }
  /// What no job depends on and undo does not touch: panels write here directly.
  View& view() { return state_.view; }
  /// Of the frame that is drawn now; it is shown in the next.
  Hover& hovered() { return hovered_; }
  /// The last thing in a frame; true when the next one looks different.
  bool show_hovered();

  /// Once per frame, first thing. `now` in seconds, any origin. True when the document has changed since.
  bool frame(double now);

  /// Changes in a row with the same key ("" = never) are one step (History::record).
  void change(const std::string& merge_key, const std::function<void(Document&)>& edit);
  void set_text(std::string text);
  /// What an encoder-decoder reads. The target stays as it was written.
  void set_source(std::string source);
  /// Another stack of the model: its heads are looked at from now on.
  void look_at(Stack stack);
  void set_ids(std::vector<std::int32_t> ids);
  void set_source_ids(std::vector<std::int32_t> ids);
  /// A picture, of models that read one.
  void set_image(std::filesystem::path image);
  void set_sound(std::filesystem::path sound);
  /// Patches of the picture hidden (the edit "hide patches grey", one for each row of neighbours), or shown again.
  void hide_patches(const std::vector<Index>& positions, bool hidden);
  /// A text that a chat template made: with special tokens, and with the one that begins texts where it wants it.
  void set_chat(std::string text);
  /// Whether names of special tokens in the text are those tokens; where not, texts begin as the tokenizer says.
  void set_parse_special(bool on);
  /// Positions that an encoder is asked for.
  void set_masked(std::vector<MaskedPosition> positions);
  /// Masks `count` tokens from here on, or, where all of them are masked, shows them again.
  void toggle_masked(int position, int count = 1);
  /// Another text, pair or picture with what is looked at in it: one step of undo.
  void show_input(const RunRequest& input, Stack stack, HeadId head, std::optional<Index> query);
  /// What to read of a text that is too long.
  void set_too_long(RunRequest::TooLong what);
  void select(HeadId head);
  /// A position below zero is none; one past the text's end waits for a longer text.
  void pin(std::optional<Index> query, std::optional<Index> key = std::nullopt);
  /// Edits that come new and name no stack are of the one that is looked at.
  void set_edits(std::vector<Intervention> edits);
  /// For the heads that view().edit_scope means. A spec that does not parse throws Error.
  void set_temperature(double tau);
  /// `own`: the mask of the model without edits.
  void set_mask(const std::string& spec, const std::string& own = "causal");
  /// One weight of a row of the selected head; the others share the rest. A weight that is set already moves.
  void set_weight(Index query, Index key, double weight);
  /// Cells [query, query + side) × [key, key + side) of the selected head's mask over so many tokens, opened or closed.
  /// Throws Error when that is no mask.
  void paint_mask(Index query, Index key, Index side, bool visible, Index tokens, const std::string& own = "causal");

  /// Puts another document in the place of this one, as a step.
  void replace(Document document);
  void undo();
  void redo();
  /// Undoes or redoes until so many steps are done.
  void go_to(std::size_t done);
  /// Every step that can be undone or redone, oldest first, in words (step_names.h); the first history().undoable() of
  /// them have been done.
  std::vector<std::string> steps() const;
  History& history() { return history_; }
  const History& history() const { return history_; }

  /// For who knows what model and text have: called after every change; `elsewhere`: undo, redo or replace() went to
  /// another document.
  void after_change(std::function<void(bool elsewhere)> heed) { heed_ = std::move(heed); }
  /// To bring what is selected and pinned inside of what there is: not a step.
  void adjust(const std::function<void(Document&)>& edit) { edit(state_.document); }
  /// How often somebody chose the selected head.
  std::uint64_t choices() const { return choices_; }

 private:
  void changed(bool elsewhere);

  AppState state_;
  Hover hovered_;
  History history_;
  std::function<void(bool)> heed_;
  std::uint64_t choices_ = 0;
  bool changed_ = false;
  double now_ = 0;
};

}  // namespace headscope
