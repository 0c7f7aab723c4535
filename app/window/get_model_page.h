#pragma once
// "Get a model…": fetches one from a hub of models, on the user's click alone, and opens it. Thread rule: the UI
// thread.

#include <optional>
#include <string>

#include "app/actions/action.h"
#include "app/state/model_list.h"
#include "app/state/pull_controller.h"
#include "app/widgets/ui.h"

namespace headscope {

class GetModelPage {
 public:
  /// Shows itself when app.ui.get_model asks for it.
  void draw(Ui& ui, AppContext& app);
  /// "getting openai-community/gpt2 · 45 %" while one is fetched, "" otherwise.
  std::string status() const;
  bool under_way() const { return pull_.state() == PullController::State::under_way; }

 private:
  void open(AppContext& app);
  void offered(Ui& ui);
  void request_line(Ui& ui, AppContext& app);
  void answer(Ui& ui);
  void get(AppContext& app);
  void finish(AppContext& app, bool shown);
  /// What the lines name; nullopt, with `problem_`, when that is no model.
  std::optional<PullRequest> request();

  ModelList models_;
  PullController pull_;
  std::optional<HubSettings> hub_;
  std::string name_, revision_, problem_;
};

}  // namespace headscope
