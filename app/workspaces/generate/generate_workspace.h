#pragma once
// The Generate workspace: how tokens are drawn and the branches on the left; the text with its transcript, beams, or a
// study of cost, streaming or teacher forcing in the middle; the choice of one step on the right. Thread rule: the UI
// thread. Destroy it before the App.

#include <optional>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/state/controller_controls.h"
#include "app/state/generation_controller.h"
#include "app/widgets/catalogue.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class GenerateWorkspace : public Workspace {
 public:
  explicit GenerateWorkspace(GenerationController& controller);
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;
  void each_frame() override;
  std::vector<CatalogueGroup> pages() const override { return pages_; }
  void controls(ControlsRecord& record) override { controls_of(controller_, record); }  ///< names what a session keeps

 private:
  /// Keys, and what was asked for elsewhere: once in a frame, by the first column that is open.
  void follow(const PageContext& c);
  using Study = GenerationController::Study;
  Study study(const AppContext& app) const;

  void prompt(Ui& ui);
  void sampling(Ui& ui);
  void controls(Ui& ui, AppContext& app);
  void branches(Ui& ui);
  void keys(Ui& ui, AppContext& app);
  void rows(Ui& ui, AppContext& app, double height);
  void history(Ui& ui, double height);
  void transcript(Ui& ui, AppContext& app);
  void choice(Ui& ui, AppContext& app);

  // generate_text.cpp
  void chips(Ui& ui, float height);
  void source(Ui& ui, AppContext& app);
  void sound(Ui& ui, AppContext& app);
  void scrubber(Ui& ui);

  // generate_beams.cpp
  void beams(Ui& ui, AppContext& app);
  void beams_facts(Ui& ui);
  void reveal(const Ui& ui, const Scene& scene, std::optional<std::size_t> node);

  // generate_studies.cpp
  void cost(Ui& ui);
  void streaming(Ui& ui);
  bool never_evicts() const;  ///< the model that streams has a state in place of a cache
  void forcing(Ui& ui);
  void cost_facts(Ui& ui);
  void streaming_facts(Ui& ui);
  void forcing_facts(Ui& ui);

  GenerationController& controller_;
  std::vector<CatalogueGroup> pages_;
  SceneSlot rows_{"scene.generation.rows"}, candidates_{"scene.generation.candidates"}, tree_{"scene.generation.beams"},
      sound_{"scene.generation.sound"};
  std::optional<std::size_t> revealed_;  // node of the tree that was last scrolled to
  float scrolled_before_ = 0;            // window pixels, when the first node was chosen
  int drawn_in_ = -1;                    ///< the last frame that showed this workspace
  std::size_t followed_ = 0;             // length of the text that the strip last scrolled to
};

/// "12.3 kB"
std::string bytes_text(std::size_t bytes);
/// How the bytes come about that a cache holds of so many tokens. `packed`: keys stand there once more, as they do
/// where this machine computes attention; `source`: bytes of an encoder-decoder's source.
std::vector<std::string> cache_terms(const ModelDims& dims, int tokens, bool packed, std::size_t source);

}  // namespace headscope
