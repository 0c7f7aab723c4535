#pragma once
// What several pages show: how far a sweep is, the two answers of a logit difference. Thread rule: the UI thread.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/state/sweep_controller.h"
#include "app/workspaces/analyse/page.h"
#include "app/workspaces/scene_slot.h"
#include "core/analysis/edit_probe.h"
#include "core/edits/ablate_edit.h"
#include "viz/scene/matrix_scene.h"

namespace headscope {

/// Sweeps that are expected to take no longer start by themselves when what they are about has changed. They take turns
/// with everything else and can be cancelled, so this need not be short.
inline constexpr double starts_by_itself_seconds = 10;

/// Section RUN: a button to start (or start again), or progress, time left and a button to cancel; what went wrong.
/// True when start was pressed. `what` is counted: "heads". `stale`: what is shown belongs to an earlier text or
/// setting. `expected` seconds, NaN = not known.
bool sweep_controls(const PageContext& c, SweepController& controller, const std::string& what, bool stale,
                    double expected);
/// Once per frame, by the middle, which is there while the right column is not: tells files of pictures how far what
/// they show is. True when it is to be started since nobody is there to press Start.
bool sweep_shown(const PageContext& c, const SweepController& controller, bool stale);
/// The controls as one quiet line under a picture: "37 of 144 heads · 3 s left".
std::string sweep_remark(const SweepController& controller, const std::string& what);

/// "", or why the model that is open learns no experts of singular values. REQUIRES one.
std::string refusal_of_experts(const PageContext& c);

/// A matrix as wide as the room and `height` high; made anew when `source`, `options` or the room change. slot.scene()
/// is null while there is none.
SceneTouch matrix_slot(const PageContext& c, SceneSlot& slot, const char* id, std::shared_ptr<const void> source,
                       const std::string& options, double height, std::function<Matrix()> make);

/// Seconds that `passes` whole passes over the text on screen take, by the last one; NaN without a run.
double expected_seconds(const PageContext& c, double passes);

/// The two tokens of the logit difference as they are being written. What was chosen is View::contrast, the same in
/// Explore and in every page.
struct AnswerFields {
  std::string right, wrong;                                   ///< both "" = the two most probable next tokens
  std::string error;                                          ///< why what is written is not chosen; "" = it is
  std::optional<std::pair<std::int32_t, std::int32_t>> seen;  ///< what was chosen when the fields were last filled
};
/// Section ANSWERS: fills the fields with what was chosen, here or elsewhere, and chooses what is written into them.
/// `automatic`: what is taken while nothing is chosen; may be null.
void answer_fields(const PageContext& c, AnswerFields& fields, const AnswerPair* automatic);
/// What was chosen and the model knows; else nullopt.
std::optional<AnswerPair> chosen_answers(const PageContext& c);

/// What z becomes where a head is taken out, as it is being chosen.
struct AblationFields {
  Ablate ablate;
  std::string texts;  ///< the reference texts as typed, one in a line; "" = over the text on screen
};
/// The choice in words, what a mean or a draw is over, and the seed of a draw. `id` names the control. True when the
/// ablation changed.
bool ablation_choice(const PageContext& c, const char* id, AblationFields& fields);
/// "zero", "mean", "text mean", "another's": as it is called there.
std::string ablation_title(const Ablate& ablate);
/// What a session keeps of it, as "ablation".
void ablation_record(ControlsRecord& record, AblationFields& fields);

/// Why there is nothing that a page could be about: no model, no text, or weights that came without their model.
void nothing_open(const PageContext& c);
/// "", or why the run on screen has no loss: nothing in it is asked for whose answer is known.
std::string why_no_loss(const PageContext& c);

/// The label of a token as panels write it.
std::string token_text(const LoadedModel& model, std::int32_t id);

}  // namespace headscope
