#pragma once
// The Analyse workspace: the catalogue of instruments on the left, the chosen one in the middle and on the right. Which
// one is chosen is remembered in the settings. Thread rule: the UI thread. Destroy it before the App.

#include <memory>
#include <vector>

#include "app/analyse/instrument.h"
#include "app/widgets/catalogue.h"

namespace headscope {

class AnalyseWorkspace {
 public:
  static constexpr const char* title = "Analyse";

  AnalyseWorkspace(JobRunner& jobs, const RunController& run);
  void left(Ui& ui, Workbench& bench);
  void middle(Ui& ui, Workbench& bench);
  void right(Ui& ui, Workbench& bench);
  void each_frame();
  void controls(ControlsRecord& record);
  const std::vector<CatalogueGroup>& pages() const { return groups_; }

 private:
  struct Open {
    const InstrumentInfo* info;
    std::unique_ptr<Instrument> instrument;
  };
  /// The one that the settings name, the first otherwise.
  Open& chosen(const Workbench& bench);

  JobRunner& jobs_;
  const RunController& run_;
  std::vector<Open> instruments_;
  std::vector<CatalogueGroup> groups_;
  Catalogue catalogue_;
  const Open* drawn_ = nullptr;  // in this frame
};

}  // namespace headscope
