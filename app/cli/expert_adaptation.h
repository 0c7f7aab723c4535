#pragma once
// The subcommands of `expert` that learn an expert for each of several tasks, and choose between them for a prompt.

#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "core/analysis/self_adaptation.h"
#include "core/model/weights.h"
#include "core/run/run_request.h"

namespace headscope::cli {

AddCommand add_expert_tasks, add_expert_choose, add_expert_reward, add_expert_compose;

/// On which model and tasks experts are learnt, and how.
struct TaskOptions {
  Input input;
  std::vector<std::string> tasks, matrices{"v", "mlp_out"};
  SelfAdaptationAsked asked;
  Output output;
  void add_to(Command& command);
  /// All of `asked`. Throws UsageError, and Error on a file.
  SelfAdaptationAsked request() const;
};

/// "v", "mlp_out" … as --matrices takes them.
std::vector<std::string> matrix_names();
std::vector<WeightMatrix> matrices_in(const std::vector<std::string>& names);

/// A session with the model, the text and these edits, which opens on a page of Analyse; says what it is.
void write_expert_session(Console& console, const std::string& file, const RunRequest& request,
                          const std::vector<Intervention>& edits, const std::string& page);

}  // namespace headscope::cli
