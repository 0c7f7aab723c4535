#pragma once
// A workspace as the window takes it: what stands in its columns, the pages that it can show, and what is kept of it.
// Thread rule: the UI thread.

#include <string>
#include <string_view>
#include <vector>

#include "app/state/controls_record.h"
#include "app/state/kept_work.h"
#include "app/state/workspace_list.h"
#include "app/widgets/catalogue.h"
#include "app/workspaces/page_context.h"

namespace headscope {

class Workspace {
 public:
  /// `id`: one of workspace_list.h.
  explicit Workspace(std::string_view id) : name_(workspace_name(id)) {}
  virtual ~Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// In session files, in the settings, and in small letters on the command line: never changes.
  std::string id() const { return std::string(name_.id); }
  /// On its tab.
  std::string title() const { return std::string(name_.title); }

  virtual void left(const PageContext& c) = 0;
  virtual void middle(const PageContext& c) = 0;
  virtual void right(const PageContext& c) = 0;
  /// After results were taken in, also while another workspace is shown.
  virtual void each_frame() {}
  /// What it can show; Settings::pages[id()] says which.
  virtual std::vector<CatalogueGroup> pages() const { return {}; }
  /// Names what a session keeps of it.
  virtual void controls(ControlsRecord& record) { (void)record; }
  /// Work of its own that is worth keeping; null = none.
  virtual KeptWork* kept() { return nullptr; }

 private:
  WorkspaceName name_;
};

}  // namespace headscope
