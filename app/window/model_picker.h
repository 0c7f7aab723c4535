#pragma once
// The menu under the model's name: every model on this machine, found by typing, and the actions on files. Thread rule:
// the UI thread.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/actions/action.h"
#include "app/state/model_list.h"
#include "app/widgets/ui.h"

namespace headscope {

class ModelPicker {
 public:
  /// Inside the open popup.
  void draw(Ui& ui, AppContext& app);

 private:
  /// A row of the list: the name, what it is, where it lies or why it does not open.
  struct Row {
    std::string name, detail, second, tooltip;
    std::filesystem::path path;
    bool opens = true;
    const char* heading = nullptr;  ///< of the group that begins here
  };
  void make_rows(const AppContext& app);
  /// The row that was chosen; null = none.
  const Row* list(Ui& ui);

  ModelList models_;
  std::shared_ptr<const ModelsHere> shown_;          // what the rows were made of …
  std::vector<std::filesystem::path> shown_recent_;  // … and these
  std::uint64_t made_in_ = 0;                        // … in this language
  std::string made_for_;                             // … under this filter
  std::vector<Row> rows_;
  std::string filter_;
  int chosen_ = -1;  // by keyboard
};

}  // namespace headscope
