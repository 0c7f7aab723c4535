#pragma once
// The Analyse workspace: the catalogue of pages on the left, the chosen one in the middle and on the right. Which
// one is chosen is remembered in the settings. Thread rule: the UI thread. Destroy it before the App.

#include <memory>
#include <vector>

#include "app/widgets/catalogue.h"
#include "app/workspaces/analyse/page.h"
#include "app/workspaces/workspace.h"

namespace headscope {

class AnalyseWorkspace : public Workspace {
 public:
  AnalyseWorkspace(JobRunner& jobs, const RunController& run);
  void left(const PageContext& c) override;
  void middle(const PageContext& c) override;
  void right(const PageContext& c) override;
  void each_frame() override;
  void controls(ControlsRecord& record) override;
  std::vector<CatalogueGroup> pages() const override { return groups_; }

 private:
  struct Open {
    const PageInfo* info;
    std::unique_ptr<Page> page;
  };
  /// The one that the settings name, the first otherwise.
  Open& chosen(const AppContext& app);

  JobRunner& jobs_;
  const RunController& run_;
  std::vector<Open> pages_;
  std::vector<CatalogueGroup> groups_;
  Catalogue catalogue_;
  const Open* drawn_ = nullptr;  // in this frame
};

}  // namespace headscope
