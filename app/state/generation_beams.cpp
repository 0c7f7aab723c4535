// Beams of the Generate workspace: searched for from the prompt, and looked at as branches.

#include <algorithm>

#include "app/state/generation_controller.h"

namespace headscope {

void GenerationController::search_beams() {
  BeamsOf key{prompt_, beam_settings_};
  key.settings.end.reset();
  if (!settings_.past_end)
    key.settings.end = model().tokenizer          ? model().tokenizer->eos()
                       : model().model->encoder() ? model().model->config().eos
                                                  : std::nullopt;
  beams_.want(jobs_, key, [model = model(), key](const Ctx& ctx) {
    return beam_search(model, key.prompt->whole->ids(), key.settings, key.prompt->request, ctx);
  });
}

std::optional<std::size_t> GenerationController::followed() const {
  if (!followed_ || followed_->tree != beams() || branch().id != followed_->branch) return std::nullopt;
  return followed_->node;
}

void GenerationController::follow(std::size_t node) {
  if (!prompt_ || replaying() || !beams() || node >= beams()->nodes.size()) return;
  running_ = false;
  owed_.clear();
  const std::vector<std::int32_t> tokens = beams()->tokens(node);
  const bool looking = followed().has_value();
  const int before = looking ? followed_->before : branch().id;
  const auto same = std::ranges::find_if(branches_, [&](const GenerationBranch& branch) {
    return std::ranges::equal(branch.steps, tokens, {}, [](const ToldStep& told) { return told.step->token; });
  });
  if (same != branches_.end()) {
    choose(static_cast<std::size_t>(same - branches_.begin()));
    followed_ = Followed{beams(), node, branch().id, before};
    return;
  }
  GenerationBranch fresh;
  fresh.id = next_id_++;
  branches_.push_back(std::move(fresh));
  choose(branches_.size() - 1);
  followed_ = Followed{beams(), node, branch().id, before};
  submit(tokens, true);
}

void GenerationController::leave_beam() {
  if (!followed()) return;
  const auto before = std::ranges::find(branches_, followed_->before, &GenerationBranch::id);
  followed_.reset();
  if (before != branches_.end()) choose(static_cast<std::size_t>(before - branches_.begin()));
}

}  // namespace headscope
