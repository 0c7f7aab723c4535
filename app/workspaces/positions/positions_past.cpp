// The pages of texts past the trained length, and of the codes of positions that do not work.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/past_context_picture.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/positions/positions_workspace.h"
#include "core/attention/positions/position_methods.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {
void page_title(const Ui& ui, const char* id) {
  const UseFont font(ui, ui.heading());
  text_line(ui, said_view(find_position_method(id)->title));
}
double room_left(const Ui& ui) {
  return static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
}
}  // namespace

void PositionsWorkspace::past_middle(const PageContext& c) {
  const Ui& ui = c.ui;
  page_title(ui, "past");
  note(
      ui,
      said("A model has never seen a distance longer than its training texts. Right of the line every method is on its "
           "own: which of them keeps the loss down, and how far?"));
  const auto run = controller_.long_run();
  if (!run)
    return empty_state(ui, said("Reading long texts …"),
                       said("Every method reads texts four times the trained length."));
  if (!run->refusal.empty()) return empty_state(ui, said("No text is long enough"), run->refusal.text());
  section(ui, said("LOSS BY POSITION"),
          run->texts == 1 ? say("each point the mean of {} positions of 1 text", run->bin)
                          : say("each point the mean of {} positions of {} texts", run->bin, run->texts));
  const double table = std::clamp(30.0 * static_cast<double>(run->lines.size()) + 76, 150.0, 0.44 * room_left(ui));
  LineChart chart = past_context_chart(*run, std::string(info(controller_.view.scaling).title), ui.style());
  chart.height = std::max(150.0, room_left(ui) - table - 52);
  plot(ui, "past the trained length", std::move(chart));
  section(ui, said("WHICH METHOD WHEN"),
          said("mean loss by stretch of the text, nats · framed: the least farthest out"));
  const double width = std::floor(c.room());
  show(c, main_, "which method when", {width, table});
}

void PositionsWorkspace::past_controls(const PageContext& c) {
  const Ui& ui = c.ui;
  PositionsView& v = controller_.view;
  const ModelConfig& config = c.results().model.model->config();
  if (config.position == PositionKind::rotary) {
    if (slider(ui, to_say("factor"), v.factor, {1, 16, 4, true, "×", 2})) v.factor = std::round(v.factor * 20) / 20;
    double chunk = controller_.chunk();
    if (slider(ui, to_say("chunk"), chunk,
               {1, static_cast<double>(std::max(config.context - 1, 2)),
                static_cast<double>(std::max(config.context * 3 / 4, 1)), false, "", 0}))
      v.chunk = static_cast<int>(std::lround(chunk));
    ramp_choice(ui);
  } else if (config.position == PositionKind::learned) {
    note(ui, say("{} adds learned positions: its table ends at {}, and no text can be longer. What could "
                 "take the table's place was not trained, and is worse from the first token on.",
                 config.name, config.context));
  }
  const auto run = controller_.long_run();
  if (run && run->refusal.empty()) {
    section(ui, said("WHAT THIS SHOWS"));
    note(ui, past_context_words(*run));
    const UseFont font(ui, ui.small());
    paragraph(ui, run->source.text(), ui.theme.muted);
  }
}

void PositionsWorkspace::ramp_choice(const Ui& ui) {
  PositionsView& v = controller_.view;
  section(ui, said("RAMP OF YARN"));
  const char* labels[3] = {};
  int chosen = 0, count = 0;
  for (const RampInfo& each : yarn_ramps()) {
    if (each.ramp == v.ramp) chosen = count;
    labels[count++] = each.title.data();
  }
  if (segmented(ui, "yarn ramp", labels, chosen)) v.ramp = nth(yarn_ramps(), chosen).ramp;
  const UseFont font(ui, ui.small());
  paragraph(ui, said_view(info(v.ramp).formula), ui.theme.muted);
}

void PositionsWorkspace::naive_middle(const PageContext& c) {
  const Ui& ui = c.ui;
  page_title(ui, "naive");
  if (reads_pictures(c.results()))
    return empty_state(ui, said("This model has no words"),
                       said("Positions are added to the patches of a picture, whose numbers differ in each."));
  const auto codes = controller_.naive();
  if (!codes) return empty_state(ui, said("Reading the embeddings …"), "");
  note(ui, naive_words(*codes));
  section(ui, said("TWO DIFFERENT WORDS AT ONE POSITION"),
          say("mean cosine over all pairs of {} words of this model's vocabulary, code added", codes->words));
  const double half = room_left(ui) / 2 - 24;
  LineChart chart = naive_likeness_chart(*codes, ui.style());
  chart.height = std::max(130.0, half);
  plot(ui, "naive likeness", std::move(chart));
  section(ui, said("ONE STEP IN TEXTS OF DIFFERENT LENGTHS"), said("the same distance should mean the same"));
  chart = naive_step_chart(*codes, ui.style());
  chart.height = std::max(130.0, room_left(ui) - 10);
  plot(ui, "naive step", std::move(chart));
}

}  // namespace headscope
