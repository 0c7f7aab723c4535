#pragma once
// The workspaces as the App takes them. The workspaces must outlive the App's last frame.

#include "app/analyse/analyse_workspace.h"
#include "app/panels/compare_workspace.h"
#include "app/panels/corpus_workspace.h"
#include "app/panels/explore_workspace.h"
#include "app/panels/generate_workspace.h"
#include "app/panels/mechanisms_workspace.h"
#include "app/panels/positions_workspace.h"
#include "app/panels/train_workspace.h"
#include "app/state/desk_controls.h"
#include "app/window/app.h"

namespace headscope {

inline Workspace workspace_of(ExploreWorkspace& explore) {
  return {"Explore", [&](Ui& ui, Workbench& bench) { explore.left(ui, bench); },
          [&](Ui& ui, Workbench& bench) { explore.middle(ui, bench); },
          [&](Ui& ui, Workbench& bench) { explore.right(ui, bench); }, nullptr};
}

inline Workspace workspace_of(PositionsWorkspace& positions) {
  return {PositionsWorkspace::title,
          [&](Ui& ui, Workbench& bench) { positions.left(ui, bench); },
          [&](Ui& ui, Workbench& bench) { positions.middle(ui, bench); },
          [&](Ui& ui, Workbench& bench) { positions.right(ui, bench); },
          nullptr,
          positions.pages(),
          [&](ControlsRecord& record) { positions.controls(record); }};
}

inline Workspace workspace_of(GenerateWorkspace& generate) {
  return {GenerateWorkspace::title,
          [&](Ui& ui, Workbench& bench) { generate.left(ui, bench); },
          [&](Ui& ui, Workbench& bench) { generate.middle(ui, bench); },
          [&](Ui& ui, Workbench& bench) { generate.right(ui, bench); },
          [&] { generate.each_frame(); },
          generate.pages(),
          [&](ControlsRecord& record) { generate.controls(record); }};
}

inline Workspace workspace_of(CompareWorkspace& compare) {
  return {CompareWorkspace::title,
          [&](Ui& ui, Workbench& bench) { compare.left(ui, bench); },
          [&](Ui& ui, Workbench& bench) { compare.middle(ui, bench); },
          [&](Ui& ui, Workbench& bench) { compare.right(ui, bench); },
          [&] { compare.each_frame(); },
          compare.pages(),
          [&](ControlsRecord& record) { compare.controls(record); }};
}

inline Workspace workspace_of(MechanismsWorkspace& mechanisms) {
  return {MechanismsWorkspace::title,
          [&](Ui& ui, Workbench& bench) { mechanisms.left(ui, bench); },
          [&](Ui& ui, Workbench& bench) { mechanisms.middle(ui, bench); },
          [&](Ui& ui, Workbench& bench) { mechanisms.right(ui, bench); },
          [&] { mechanisms.each_frame(); },
          mechanisms.pages(),
          [&](ControlsRecord& record) { controls_of(mechanisms.desk(), record); }};
}

inline Workspace workspace_of(AnalyseWorkspace& analyse) {
  return {AnalyseWorkspace::title,
          [&](Ui& ui, Workbench& bench) { analyse.left(ui, bench); },
          [&](Ui& ui, Workbench& bench) { analyse.middle(ui, bench); },
          [&](Ui& ui, Workbench& bench) { analyse.right(ui, bench); },
          [&] { analyse.each_frame(); },
          analyse.pages(),
          [&](ControlsRecord& record) { analyse.controls(record); }};
}

inline Workspace workspace_of(CorpusWorkspace& corpus, CorpusDesk& desk) {
  return {CorpusWorkspace::title,
          [&](Ui& ui, Workbench& bench) { corpus.left(ui, bench); },
          [&](Ui& ui, Workbench& bench) { corpus.middle(ui, bench); },
          [&](Ui& ui, Workbench& bench) { corpus.right(ui, bench); },
          [&] { desk.frame(); },
          {},
          [&](ControlsRecord& record) { corpus.controls(record); }};
}

inline Workspace workspace_of(TrainWorkspace& train, TrainingDesk& desk) {
  return {"Train",
          [&](Ui& ui, Workbench& bench) { train.left(ui, bench); },
          [&](Ui& ui, Workbench& bench) { train.middle(ui, bench); },
          [&](Ui& ui, Workbench& bench) { train.right(ui, bench); },
          [&] { desk.frame(); },
          {},
          [&](ControlsRecord& record) { train.controls(record); },
          {[&] { return desk.unsaved(); }, [&](const std::filesystem::path& file) { desk.keep(file); },
           [&] { return desk.keeping(); }, [&](const std::filesystem::path& file) { desk.take_up(file); },
           workspace_index("Train")}};
}

}  // namespace headscope
