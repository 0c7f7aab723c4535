#pragma once
// What a page or a panel draws with and acts on; made anew for each call. Thread rule: the UI thread.

#include <imgui.h>

#include "app/actions/action.h"
#include "app/widgets/ui.h"
#include "core/metrics/next_token.h"

namespace headscope {

struct PageContext {
  Ui& ui;
  AppContext& app;
  JobRunner& jobs = app.explorer.jobs;
  DocumentEditor& editor = app.explorer.editor;
  Hover& hovered = editor.hovered();  ///< what the pointer is over in this frame; all panels show it in the next
  const AppState& state() const { return editor.state(); }
  const Results& results() const { return app.explorer.results(); }
  /// The trace on screen, or null.
  const Trace* trace() const { return results().run ? results().run->trace.get() : nullptr; }
  /// The run whose logits are the model's answer: the decoder's, whichever stack is looked at. Null without a run.
  const Trace* whole() const { return results().run ? results().run->whole.get() : nullptr; }
  /// The edits of the stack on screen.
  std::vector<Intervention> edits() const { return edits_of(state().document.edits, state().document.stack); }
  /// What the model on screen predicts, in words; a decoder's without one.
  const PredictionWords& predicts() const {
    return prediction_words(whole() ? whole()->model.objective : Objective::next_token);
  }
  /// Facts that belong to the trace on screen, or null while they are being computed.
  const HeadFacts* facts() const {
    return results().facts && results().run && results().facts->trace == results().run->trace ? results().facts.get()
                                                                                              : nullptr;
  }
  /// The words of the text on screen, when it shall be shown in words and is short enough for it; else null.
  const WordGroups* words() const {
    const TracedRun* run = results().run.get();
    return run && run->word_tokens && state().view.text_unit == TextUnit::words && run->words.words() <= most_words
               ? &run->words
               : nullptr;
  }
  /// Where a token stands along the axes.
  Index shown(Index token) const { return words() ? words()->word_of(token) : token; }
  /// The tokens, or words, that stand there, with their labels: a trace without maps in words.
  const Trace& positions() const { return words() ? *results().run->word_tokens : *trace(); }
  /// The weights on screen were captured elsewhere: there is no model behind them.
  bool captured() const { return results().capture && results().run == results().capture; }
  /// Logical width that is left in this column.
  double room() const { return static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale); }
};

/// What the edits did to the run on screen, or, while a slider moves, to the one before it; null without edits.
inline const EditEffect* compared(const PageContext& c) {
  const auto& effect = c.results().effect;
  if (!effect || !c.trace()) return nullptr;
  const bool alike =
      effect->after->maps.size() == c.trace()->maps.size() && effect->after->tokens.size() == c.trace()->tokens.size();
  return alike ? effect.get() : nullptr;
}

}  // namespace headscope
