// Task and shape of a recipe: what goes with what, and their numbers.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/train/train_workspace.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/train/shapes_task.h"

namespace headscope {

namespace {

/// One whole number of a row: label, − value +, typed or stepped.
bool number(const Ui& ui, const char* label, int& value, int step) {
  return number_field(ui, label, fmt::format("##{}", label).c_str(), value, step, 118);
}

}  // namespace

void TrainWorkspace::shape(Ui& ui) {
  Recipe& draft = controller_.draft();
  section(ui, said("TASK AND SHAPE"), said("of the next beginning"));
  const auto become = [&](std::string_view family) {
    if (draft.model.has_experts()) balance_price_ = draft.optimizer.expert_balance;  // for when it has some again
    draft.model.family = family;
    draft.model.kv_heads = draft.model.heads;
    draft.model.d_head = 0;  // what only one family has
    draft.model.first_positions = "random";
    draft.optimizer.expert_balance = draft.model.has_experts() ? balance_price_ : 0;
    if (draft.model.mlp == 0 && draft.model.needs_mlp())
      draft.model.mlp = (draft.model.has_experts() ? 1 : 4) * draft.model.width;
    if (draft.model.state_space()) draft.optimizer.attention_entropy = 0, draft.optimizer.attention_entropy_from = 0;
  };
  using Labels = std::span<const char* const>;
  using Names = std::span<const std::string_view>;
  /// The name of what was clicked in a row; what is chosen `now` may stand in another.
  const auto row = [&](const char* id, Labels labels, Names names, std::string_view now) {
    int which = static_cast<int>(std::ranges::find(names, now) - names.begin());
    const float fits = std::min(segmented_width(ui, labels), ImGui::GetContentRegionAvail().x);
    return segmented(ui, id, labels, which, fits) ? nth(names, which) : std::string_view();
  };
  static constexpr const char* tasks[] = {to_say("Stories"), to_say("Masked"), to_say("Repeated"), to_say("Backcopy")};
  static constexpr std::string_view kinds[] = {"stories", "masked", "repeated", "backcopy"};
  static constexpr const char* pairs[] = {to_say("Translate"), to_say("Shapes")};
  static constexpr std::string_view pair_kinds[] = {"translate", "shapes"};
  const std::string kind = draft.task.kind;
  for (const std::string_view clicked :
       {row("training task", tasks, kinds, kind), row("training pairs", pairs, pair_kinds, kind)}) {
    if (clicked.empty()) continue;
    draft.task.kind = clicked;
    // Masked tokens are for encoders, translations for encoder-decoders, and these for nothing else.
    const std::string_view needs = draft.task.kind == "masked" ? "bert"
                                   : draft.task.translates()   ? "bart"
                                   : draft.task.draws()        ? "vit"
                                                               : "";
    const bool other = draft.model.family == "bert" || draft.model.family == "bart" || draft.model.family == "vit";
    if (!needs.empty() || other) become(needs.empty() ? "gpt2" : needs);
  }
  static constexpr const char* families[] = {"GPT-2", "Llama", "BERT", "BART", "ViT"};
  static constexpr std::string_view family_names[] = {"gpt2", "llama", "bert", "bart", "vit"};
  static constexpr const char* others[] = {"Mixtral", "Mamba", "Mamba-2"};
  static constexpr std::string_view other_names[] = {"mixtral", "mamba", "mamba2"};
  const std::string family = draft.model.family;
  for (const std::string_view clicked :
       {row("training family", families, family_names, family), row("training others", others, other_names, family)}) {
    if (clicked.empty()) continue;
    become(clicked);
    if (draft.model.family == "bert")
      draft.task.kind = "masked";
    else if (draft.model.family == "bart")
      draft.task.kind = "translate";
    else if (draft.model.family == "vit")
      draft.task.kind = "shapes";
    else if (draft.task.kind == "masked" || draft.task.translates() || draft.task.draws())
      draft.task.kind = "stories";
  }
  // A picture has as many tokens as it has.
  if (draft.task.draws()) draft.model.context = ShapesTask::vision(draft.task).tokens();
  shape_fields(ui);
}

void TrainWorkspace::shape_fields(Ui& ui) {
  Recipe& draft = controller_.draft();
  ModelShape& model = draft.model;
  const bool grouped = model.kv_heads != model.heads;
  number(ui, to_say("Layers"), model.layers, 1);
  if (model.family != "mamba" && number(ui, to_say("Heads"), model.heads, 1) && !grouped) model.kv_heads = model.heads;
  if (model.rotary()) number(ui, to_say("Key heads"), model.kv_heads, 1);
  number(ui, to_say("Width"), model.width, 16);
  int d_head = model.head_width();
  if (model.rotary() && number(ui, to_say("Head width"), d_head, 2)) model.d_head = d_head;
  if (model.state_space()) {
    number(ui, to_say("States"), model.states, 1);
    number(ui, to_say("Expand"), model.expand, 1);
  } else {
    number(ui, model.has_experts() ? to_say("Expert width") : to_say("MLP width"), model.mlp, 64);
  }
  if (model.has_experts()) {
    number(ui, to_say("Experts"), model.experts, 1);
    number(ui, to_say("Per token"), model.experts_per_token, 1);
  }
  number(ui, to_say("Context"), model.context, 16);
  number(ui, to_say("Batch"), draft.batch, 4);
  int steps = static_cast<int>(std::min<std::int64_t>(draft.steps, 1'000'000'000));
  if (number(ui, to_say("Steps"), steps, 100)) {
    draft.steps = steps;
    draft.optimizer.schedule_steps = steps;
  }
  int seed = static_cast<int>(draft.seed & 0x7fffffff);
  if (number(ui, to_say("Seed"), seed, 1)) draft.seed = static_cast<std::uint64_t>(std::max(seed, 0));
}

}  // namespace headscope
