#pragma once
// The Mechanisms workspace: the catalogue on the left (with the pages of other workspaces, to which it leads), the
// chosen mechanism in the middle (compared with softmax, step by step, token by token, in the model), its input,
// parameters and cost on the right. Which one is chosen is remembered in the settings. Thread rule: the UI thread.
// Destroy it before the App.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/state/controller_controls.h"
#include "app/state/mechanism_controller.h"
#include "app/state/page_picture.h"
#include "app/widgets/catalogue.h"
#include "app/widgets/matrix_edit.h"
#include "app/workspaces/scene_slot.h"
#include "app/workspaces/workspace.h"
#include "core/attention/hybrid_cost.h"
#include "viz/scene/matrix_flow.h"

namespace headscope {

class MechanismsWorkspace : public Workspace {
 public:
  MechanismsWorkspace(JobRunner& jobs, DocumentEditor& editor, const RunController& run);
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;
  void each_frame() override;
  std::vector<CatalogueGroup> pages() const override { return groups_; }
  void controls(ControlsRecord& record) override { controls_of(controller_, record); }
  MechanismController& controller() { return controller_; }

 private:
  /// A cell of a matrix whose rows or columns are positions.
  struct Hovered {
    std::optional<Index> query, key;
    bool operator==(const Hovered&) const = default;
  };

  void follow(const AppContext& app);
  void gather(const AppContext& app);
  void header(Ui& ui);
  void chips(Ui& ui);
  // the views (mechanism_views.cpp)
  void compare(Ui& ui);
  void numbers(Ui& ui);
  void times(Ui& ui);
  void every_head(Ui& ui, const std::string& of);
  void steps(Ui& ui);
  void curves(Ui& ui);
  void path(Ui& ui);
  void recurrent(Ui& ui);
  void progress(Ui& ui);  // mechanism_progress.cpp
  void machine(Ui& ui);   // likewise
  void play(Ui& ui, int last);
  /// A picture of the page (app/state/page_picture.h) in this room; false until it has come.
  bool show(Ui& ui, SceneSlot& slot, const char* id, Room room);
  /// One of matrices, `shown`, with what the pointer does to them.
  void matrices(Ui& ui, SceneSlot& slot, const char* id, const std::vector<ShownMatrix>& shown, Room room);
  // the arithmetic of a cell (mechanism_cell.cpp)
  void walk(AppContext& app, bool list_takes_arrows);
  void arithmetic(Ui& ui);
  // in the model (mechanism_in_model.cpp)
  void in_model(Ui& ui, AppContext& app);
  void grid(Ui& ui, AppContext& app, double cell_height, bool labels);
  void effect(Ui& ui, AppContext& app, bool whole);
  // the right column (mechanism_side.cpp)
  void input(Ui& ui, AppContext& app);
  void by_hand(Ui& ui);
  void parameters(Ui& ui);
  void cost(Ui& ui);
  bool no_vectors(const PageContext& c);  ///< those of the model were chosen, which has none
  void layers(Ui& ui);
  // a whole model of such layers (mechanism_whole_model.cpp)
  MechanismController::View shown_view() const;  ///< the one chosen, where this mechanism has it
  bool tells_whole_model() const;                ///< of the mechanism that is shown there is such a table
  int softmax_every() const;                     ///< of its hybrid: one layer in so many
  void whole_model_shape(const PageContext& c);
  void whole_model(const PageContext& c);

  JobRunner& jobs_;
  DocumentEditor& editor_;
  const RunController& run_;
  MechanismController controller_;
  std::vector<CatalogueGroup> groups_;
  std::vector<CatalogueGroup> shown_;  // those, and what stands in other workspaces
  std::size_t others_ = 0;             // pages of other workspaces among them
  std::uint64_t gathered_in_ = 0;      // in which language they are called
  Catalogue catalogue_;
  SceneSlot compare_{"scene.mechanism.compare"}, steps_{"scene.mechanism.steps"}, states_{"scene.mechanism.states"},
      machine_{"scene.mechanism.machine"}, times_{"scene.mechanism.times"}, losses_{"scene.mechanism.losses"},
      ranks_{"scene.mechanism.ranks"};
  SceneSlot curves_[5]{SceneSlot{"scene.mechanism.curve.0"}, SceneSlot{"scene.mechanism.curve.1"},
                       SceneSlot{"scene.mechanism.curve.2"}, SceneSlot{"scene.mechanism.curve.3"},
                       SceneSlot{"scene.mechanism.curve.4"}};
  SceneSlot path_{"scene.mechanism.path"};
  Hovered hovered_, hovering_;          // of the last frame, and of this one
  std::optional<MechanismCell> told_;   // of the steps: that the pointer was on in the last frame
  std::string typed_[3], typed_error_;  // Q, K, V by hand
  std::uint64_t typed_of_ = 0;          // the controller's numbers that stand there
  MatrixEdit cells_;
  HybridShape shape_;           // of the whole model, as far as it was moved
  std::uint64_t shape_of_ = 0;  // the reading of the model that it was set from; 0 = none yet
  int as_text_ = 0;
  double clock_ = 0;
  bool drawn_ = false, held_ = false;
};

/// "49 k", "67 M"; "4.1 kB".
std::string count_words(double value);
std::string byte_words(double value);

}  // namespace headscope
