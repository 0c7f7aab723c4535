// "What is here?": the most telling findings about this model on this text as sentences, each tested by running the
// model again, with the cells that show it.

#include "core/analysis/findings.h"

#include <fmt/format.h>
#include <imgui.h>

#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/sweep_page.h"
#include "app/workspaces/head_cells.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

class FindingsPage final : public SweepPage<FindingsSweep, FindingsRequest> {
 public:
  explicit FindingsPage(JobRunner& jobs)
      : SweepPage(
            jobs, "scan",
            {to_say("passes"), to_say("Nothing has been looked for yet"),
             to_say("Press Start on the right: the model runs once without each head, and once without each token.")}) {
  }

  void middle(const PageContext& c) override {
    if (!keep_up(c)) return;
    if (result()->all.empty())
      return empty_state(c.ui, said("Nothing to tell"),
                         said("No head of this text has a class, and the model is asked for no token."));
    ImGui::BeginChild("findings", {0, 0}, ImGuiChildFlags_NavFlattened);
    for (const Finding& each : result()->all) {
      ImGui::PushID(static_cast<int>(each.kind));
      finding(c, each);
      ImGui::PopID();
      ImGui::Dummy({0, c.ui.px(14)});
    }
    ImGui::EndChild();
  }

  void right(const PageContext& c) override {
    run(c);
    section(c.ui, said("HOW IT IS TESTED"));
    note(c.ui, said("The model is run again with one head at a time taken out (it gets the mean of what it read so "
                    "far), with one token at a time hidden from all heads, and with the first token hidden. What a "
                    "sentence says is the largest effect that was found so."));
    selected_head(c);
  }

 private:
  std::optional<FindingsRequest> wanted(const PageContext& c) const override {
    if (!c.results().run) return std::nullopt;
    return FindingsRequest{.run = c.results().run->request};
  }
  double passes(const PageContext& c) const override {
    const ModelDims& dims = c.trace()->model.dims;
    const FindingsRequest usual;
    return 0.5 * dims.all_heads() +
           static_cast<double>(std::min<Index>(usual.most_tokens, static_cast<Index>(c.trace()->tokens.size())));
  }

  void finding(const PageContext& c, const Finding& each) {
    section(c.ui, each.title.text(), std::isnan(each.effect) ? "" : say("{:+.2f} nats without it", each.effect));
    const float right = ImGui::GetCursorPosX() + std::min(ImGui::GetContentRegionAvail().x, c.ui.px(760));
    paragraph(c.ui, printable((each.looks.empty() ? each.sentence : each.sentence + " " + each.looks).text(), 4000),
              c.ui.theme.text, right);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(c.ui, {each.provenance});
    ImGui::Dummy({0, c.ui.px(3)});
    evidence(c, each);
    if (!of_open_model(c) || !(each.head || each.token)) return;
    ImGui::SameLine(0, c.ui.px(18));
    if (ImGui::GetContentRegionAvail().x < button_width(c.ui, to_say("Show in Explore"))) ImGui::NewLine();
    if (button(c.ui, to_say("Show in Explore"), c.ui.px(22))) show(c, each);
  }

  /// Which query looks at which key, and how much; the token that a finding speaks of.
  void evidence(const PageContext& c, const Finding& each) {
    const Trace& trace = *result()->trace;
    const auto chip = [&](Index position, double shade, const char* which, std::size_t i) {
      token_chip(c.ui, printable(nth(trace.tokens, position).label), fmt::format("{} {}", which, i), {.shade = shade});
    };
    if (each.cells.empty() && each.token) chip(*each.token, -1, "token", 0);
    for (std::size_t i = 0; i < each.cells.size(); ++i) {
      const Evidence& cell = each.cells[i];
      const std::string weight = fmt::format(" {:.2f}", static_cast<double>(cell.weight));
      const double width = token_chip_width(c.ui, printable(nth(trace.tokens, cell.query).label)) +
                           token_chip_width(c.ui, printable(nth(trace.tokens, cell.key).label)) + 76;
      if (i > 0) {
        ImGui::SameLine(0, c.ui.px(18));
        if (c.room() < width) ImGui::NewLine();
      }
      chip(cell.query, -1, "query", i);
      ImGui::SameLine(0, c.ui.px(5));
      text_line(c.ui, "→", c.ui.theme.muted);
      ImGui::SameLine(0, c.ui.px(5));
      chip(cell.key, static_cast<double>(cell.weight), "key", i);
      ImGui::SameLine(0, 0);
      const UseFont font(c.ui, c.ui.number());
      text_line(c.ui, weight, c.ui.theme.muted);
    }
  }

  void show(const PageContext& c, const Finding& each) {
    if (!each.cells.empty())
      c.editor.pin(each.cells.front().query, each.cells.front().key);
    else if (each.token)
      c.editor.pin(std::nullopt, each.token);
    show_in_explore(c, each.head.value_or(c.state().document.selected));
  }
};

}  // namespace

std::unique_ptr<Page> make_findings(JobRunner& jobs) {
  return std::make_unique<FindingsPage>(jobs);
}

}  // namespace headscope
