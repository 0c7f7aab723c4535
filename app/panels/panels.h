#pragma once
// The panels of the Explore workspace. Each is a function of state and results that draws itself into the column it is
// called in and tells the Explorer what the user did. Panels do not know one another: what one hovers, all show,
// through PanelContext::hovered. Thread rule: the UI thread.

#include <string>
#include <vector>

#include "app/panels/scene_slot.h"
#include "app/widgets/prompt_edit.h"
#include "viz/scene/head_grid.h"

namespace headscope {

struct PanelContext {
  Ui& ui;
  Explorer& explorer;
  Hover& hovered;  ///< what the pointer is over in this frame; all panels show it in the next
  const AppState& state() const { return explorer.state(); }
  const Results& results() const { return explorer.results(); }
  /// The trace on screen, or null.
  const Trace* trace() const { return results().run ? results().run->trace.get() : nullptr; }
  /// Facts that belong to the trace on screen, or null while they are being computed.
  const HeadFacts* facts() const {
    return results().facts && results().run && results().facts->trace == results().run->trace ? results().facts.get()
                                                                                              : nullptr;
  }
  /// The words of the text on screen, when it shall be shown in words and is short enough for it; else null.
  const WordGroups* words() const {
    const TracedRun* run = results().run.get();
    return run && state().view.text_unit == TextUnit::words && run->words.words() <= most_words ? &run->words : nullptr;
  }
  /// Where a token stands along the axes.
  Index shown(Index token) const { return words() ? words()->word_of(token) : token; }
  /// The tokens, or words, that stand there, with their labels: a trace without maps in words.
  const Trace& positions() const { return words() ? *results().run->word_tokens : *trace(); }
  /// Logical width that is left in this column.
  double room() const { return ImGui::GetContentRegionAvail().x / ui.scale; }
};

/// Text editor and token strip.
class PromptPanel {
 public:
  void draw(const PanelContext& c);
  void focus() { edit_.focus(); }

 private:
  PromptEdit edit_;
};

/// Every head as a thumbnail or a metric's tile; click selects.
class AtlasPanel {
 public:
  void draw(const PanelContext& c);

 private:
  SceneSlot slot_{"scene.atlas"};
};

/// Metrics averaged over the heads of each layer.
class DepthPanel {
 public:
  void draw(const PanelContext& c);

 private:
  SceneSlot slot_{"scene.depth"};
};

/// The selected head: map, threads, row, steps, q·k.
class HeadPanel {
 public:
  void draw(const PanelContext& c);
  void reset_zoom() { slot_.camera = {}; }

 private:
  void header(const PanelContext& c);
  void footer(const PanelContext& c);
  void main_view(const PanelContext& c, double height);
  SceneSlot slot_{"scene.head"};
  SceneSlot row_{"scene.row"};
};

/// Temperature of the chosen heads, and the entropy that follows.
class SoftmaxPanel {
 public:
  void draw(const PanelContext& c);

 private:
  SceneSlot slot_{"scene.curve"};
};

/// Masks to choose from, or written by hand.
class MaskPanel {
 public:
  void draw(const PanelContext& c);

 private:
  std::string spec_, error_;
};

/// Everything that is changed about the model, as a list; new edits from a menu or in words.
class EditsPanel {
 public:
  void draw(const PanelContext& c);

 private:
  void add(const PanelContext& c, const Intervention& edit);
  void list(const PanelContext& c);
  void menu(const PanelContext& c);
  std::string line_, error_;
};

/// The numbers of the selected head, with what chance would give, and the cells behind its class.
void draw_facts(const PanelContext& c);

/// Most probable next tokens, before → after an edit, and the loss of every token.
class NextPanel {
 public:
  void draw(const PanelContext& c);

 private:
  SceneSlot slot_{"scene.loss"};
};

/// The classes of all heads as outlines, strongest first.
std::vector<HeadMark> head_marks(const HeadFacts* facts);
/// The hue of a class, readable beside text.
Color class_color(const ClassRule& rule);

}  // namespace headscope
