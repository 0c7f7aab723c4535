#pragma once
// The panels of the Explore workspace. Each is a function of state and results that draws itself into the column it is
// called in and tells the editor what the user did. Panels do not know one another: what one hovers, all show,
// through PageContext::hovered. Thread rule: the UI thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/widgets/prompt_edit.h"
#include "app/workspaces/atlas_panel.h"
#include "app/workspaces/explore/cell_tools.h"
#include "app/workspaces/explore/chat_popup.h"
#include "app/workspaces/explore/edit_dialog.h"
#include "app/workspaces/explore/language_line.h"
#include "app/workspaces/explore/token_strip.h"
#include "app/workspaces/ids_edit.h"
#include "app/workspaces/next_panel.h"
#include "app/workspaces/page_context.h"
#include "app/workspaces/pair_picker.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/spoken_answer.h"
#include "core/base/words.h"
#include "core/io/sound.h"

namespace headscope {

/// Of models of speech: the sound as its spectrogram, and over it where the pinned token listens; of a long one, where
/// it is heard from.
class SoundPanel {
 public:
  void draw(const PageContext& c);

 private:
  void begin_at(const PageContext& c, const SoundFrames& sound);

  SpokenAnswer spoken_{"spoken.sound"};
  SceneSlot slot_{"scene.sound"};
  std::filesystem::path path_;  ///< what was read, and …
  SoundPlace place_;            ///< … which file and second that meant when it was
  double from_ = 0;             ///< seconds, under the hand
  bool moved_ = false;
};

/// Text editor and token strip.
class PromptPanel {
 public:
  void draw(const PageContext& c);
  void focus() { edit_.focus(), ids_.focus(); }

 private:
  void source_and_target(const PageContext& c);
  void text_or_ids(const PageContext& c);
  PromptEdit edit_;
  PromptEdit source_;         // of an encoder-decoder; edit_ holds its target then
  IdsEdit ids_, source_ids_;  // in their places
  bool by_ids_ = false;       // the prompt is written as ids, though there are none yet
  SoundPanel sound_;          // in its place
  ChatPopup chat_;
  LanguageLine language_;
  TokenStrip tokens_;
};

/// In place of the prompt, of models of pictures: the picture under its patches. A click pins one, dragging hides
/// patches from the model, dragging with the right button shows them again.
class PicturePanel {
 public:
  void draw(const PageContext& c);

 private:
  void brush(const PageContext& c, const SceneTouch& touch);
  SceneSlot slot_{"scene.picture"};
  std::optional<Index> pressed_;  // the patch that the left button went down on …
  bool painting_ = false;         // … until the pointer left it: then a click pins nothing
};

/// Metrics averaged over the heads of each layer.
class DepthPanel {
 public:
  void draw(const PageContext& c);

 private:
  SceneSlot slot_{"scene.depth"};
};

class HeadMapView;
class HeadsView;

/// The selected head: map, threads, row, steps, q·k; and one token in all heads.
class HeadPanel {
 public:
  HeadPanel();
  ~HeadPanel();
  void draw(const PageContext& c);
  void reset_zoom();

 private:
  void header(const PageContext& c);
  void footer(const PageContext& c);
  double footer_height(const PageContext& c) const;
  void read_out(const PageContext& c);
  void main_view(const PageContext& c, double height);
  void over_the_picture(const PageContext& c, const AttentionMap& map, double width, double height);
  void over_the_sound(const PageContext& c, const AttentionMap& map, double width, double height);
  std::unique_ptr<HeadMapView> map_;
  std::unique_ptr<HeadsView> heads_;
  SceneSlot slot_{"scene.view"};
  SceneSlot row_{"scene.row"};
  SpokenAnswer spoken_{"spoken.view"};
  CellTools tools_;
};

/// Temperature of the chosen heads, and the entropy that follows.
class SoftmaxPanel {
 public:
  void draw(const PageContext& c);

 private:
  SceneSlot slot_{"scene.curve"};
};

/// Masks to choose from, or written by hand.
class MaskPanel {
 public:
  void draw(const PageContext& c);

 private:
  std::string spec_, error_;
};

/// Everything that is changed about the model, as a list; new edits, and those of the list, in a form or in words.
class EditsPanel {
 public:
  void draw(const PageContext& c);
  /// The form for a new edit, from the next frame on.
  void add_one() { add_ = true; }

 private:
  struct EditsOfRun {
    std::shared_ptr<const TracedRun> run;
    std::vector<Intervention> edits;
    bool operator==(const EditsOfRun&) const = default;
  };
  /// The texts that edits take from, beside the one on screen.
  struct Pairs {
    std::vector<std::shared_ptr<const PairedTexts>> texts;  ///< by edit, null where it takes from no other text
    std::vector<std::string> errors;
  };
  void add(const PageContext& c, const Intervention& edit);
  void list(const PageContext& c);
  void want_pairs(const PageContext& c);
  void pairs_line(const PageContext& c, std::size_t index);
  void pairs_window(const PageContext& c);
  std::string line_, error_;
  Answer<EditsOfRun, Pairs> answer_{{"edit pairs", to_say("pairing the texts")}};
  EditsOfRun of_;         // as they are now …
  Pairs pairs_;           // … and what is shown of them
  bool carried_ = false;  // over from other edits, until their own come
  PairPicker picker_{"scene.edit.pairs"};
  std::size_t opened_ = 0;  // the edit whose pairs are shown
  bool ask_ = false;        // … from the next frame on
  EditDialog dialog_;
  bool add_ = false;
  bool reordered_ = false;  // since the button went down: its release opens nothing
};

/// The numbers of the selected head, with what chance would give, and the cells behind its class.
void draw_facts(const PageContext& c);

/// In place of the prompt while attention of another program is open: where it is from, the folder that is watched, and
/// its tokens.
void draw_captures(const PageContext& c, TokenStrip& tokens);

}  // namespace headscope
