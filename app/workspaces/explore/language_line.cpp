#include "app/workspaces/explore/language_line.h"

#include <fmt/format.h>
#include <imgui.h>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "core/analysis/learnt_language.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

std::string departure_text(const LanguageFit& fit, const std::string& text) {
  const std::string word = printable(text.substr(fit.word.begin, fit.word.end - fit.word.begin), 40);
  if (!fit.known) return say("“{}” is no word of the language that this model learnt.", word);
  return fit.word.begin == 0 ? say("No text of the language that this model learnt begins with “{}”.", word)
                             : say("No text of the language that this model learnt goes on with “{}” here.", word);
}

void LanguageLine::draw(const PageContext& c) {
  const Document& document = c.state().document;
  // A lesson says itself what to look at, and may leave the language on purpose.
  if (document.text.empty() || document.model.empty() || c.app.explorer.lessons.lesson() || c.app.ui.presenting) return;
  const Asked now{document.model, document.text};
  answer_.want(c.jobs, now, [now](const Ctx& ctx) -> LanguageFit {
    const Grammar* const grammar = learnt_grammar(now.model);
    return grammar ? fit_to_language(*grammar, now.text, ctx.stop) : LanguageFit{};
  });
  // While the next answer is found, the last one stays: a line that comes and goes would move what is below.
  const auto& fit = answer_.last();
  if (!fit || fit->inside || answer_.last_key()->model != now.model ||
      answer_.state() == Answer<Asked, LanguageFit>::State::failed)
    return;
  const UseFont font(c.ui, c.ui.body());
  paragraph(c.ui, departure_text(*fit, answer_.last_key()->text), c.ui.theme.text);
  if (fit->nearest.empty() || fit->nearest == now.text) return;
  paragraph(c.ui, say("Nearest: {}", printable(fit->nearest, 400)), c.ui.theme.muted);
  if (button(c.ui, to_say("Take the nearest"), c.ui.px(24))) c.editor.set_text(fit->nearest);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(c.ui, {said("The beginning of a text of its language that takes the fewest changes of words"),
                   said("outside of its language a model of this size says nothing that means anything")});
}

}  // namespace headscope
