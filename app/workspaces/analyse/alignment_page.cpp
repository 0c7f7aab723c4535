// Which token of the source each token of a target stands for, as a head of cross-attention tells it, and how far that
// is from an alignment that is known.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/state/answer.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/no_run.h"
#include "app/workspaces/scene_slot.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/metrics/alignment.h"
#include "viz/scene/head_map.h"

namespace headscope {

namespace {

/// What is asked of all heads of one run.
struct Asked {
  std::shared_ptr<const Trace> cross;
  bool strongest = true;  ///< else every cell of at least `threshold`
  double threshold = 0.5;
  std::string truth;
  bool operator==(const Asked&) const = default;
};
struct HeadAlignment {
  HeadId head;
  AlignedPairs pairs;
  AlignmentScore score;  ///< NaN without a truth
};
struct Aligned {
  std::vector<HeadAlignment> heads;
  double chance = std::nan("");  ///< error rate of pairs drawn evenly
  bool known = false;
};

Aligned align(const Asked& asked) {
  const Trace& cross = *asked.cross;
  const auto sources = static_cast<int>(cross.tokens.size()), targets = static_cast<int>(cross.queries().size());
  Aligned out;
  out.known = !asked.truth.empty();
  const KnownAlignment known =
      out.known ? parse_alignment(asked.truth, sources, targets, "alignment") : KnownAlignment{};
  for (const AttentionMap& map : cross.maps) {
    HeadAlignment head{map.id(), asked.strongest ? strongest_pairs(map) : pairs_above(map, asked.threshold), {}};
    const double none = std::nan("");
    head.score = out.known ? score_alignment(head.pairs, known) : AlignmentScore{none, none, none};
    out.heads.push_back(std::move(head));
  }
  if (out.known) out.chance = chance_pairs(sources, targets, known).score().error_rate;
  return out;
}

std::string rate(double value) {
  return std::isfinite(value) ? fmt::format("{:.3f}", value) : "–";
}

class AlignmentPage final : public Page {
 public:
  explicit AlignmentPage(JobRunner&) {}

  void middle(const PageContext& c) override {
    const Trace* whole = c.whole();
    if (!whole) return no_run(c);
    if (!whole->cross)
      return empty_state(
          c.ui, said("This model aligns nothing"),
          said("An encoder-decoder looks at a source while it writes: T5, BART, Marian, or tiny-translate."));
    if (whole->cross->maps.empty()) return no_maps(c);
    aligned_.want(c.jobs, {whole->cross, strongest_, threshold_, truth_},
                  [asked = Asked{whole->cross, strongest_, threshold_, truth_}](const Ctx&) { return align(asked); });
    const float room = ImGui::GetContentRegionAvail().x, gap = c.ui.px(20), height = ImGui::GetContentRegionAvail().y;
    const float list = std::clamp(room * 0.3f, std::min(c.ui.px(200), room / 2), c.ui.px(320));
    ImGui::BeginChild("aligned map", {room - gap - list, height}, ImGuiChildFlags_NavFlattened);
    map(c, whole->cross);
    ImGui::EndChild();
    ImGui::SameLine(0, gap);
    ImGui::BeginChild("aligned heads", {list, height}, ImGuiChildFlags_NavFlattened);
    ranking(c);
    ImGui::EndChild();
  }

  void right(const PageContext& c) override {
    section(c.ui, said("A TARGET TOKEN STANDS FOR"));
    static constexpr const char* ways[] = {to_say("the strongest"), to_say("all above")};
    int way = strongest_ ? 0 : 1;
    if (segmented(c.ui, "aligned by", ways, way, ImGui::GetContentRegionAvail().x)) strongest_ = way == 0;
    if (!strongest_) slider(c.ui, to_say("Weight"), threshold_, {0.01, 1, 0.5, false, "", 2});
    section(c.ui, said("KNOWN ALIGNMENT"), said("source-target, from 0"));
    {
      const UseFont font(c.ui, c.ui.token());
      ImGui::SetNextItemWidth(-1);
      input_line(c.ui, "##alignment", "0-1 2-2 3?2", truth_);
    }
    if (const std::string wrong = aligned_.error(); !wrong.empty()) {
      const UseFont font(c.ui, c.ui.small());
      error_text(c.ui, wrong);
    }
    const Aligned* found = current();
    const HeadAlignment* head = found ? of(*found, c.state().document.selected) : nullptr;
    if (head) {
      section(c.ui, said("THIS HEAD"), say("cross-attention, layer {} head {}", head->head.layer, head->head.head));
      fact(c.ui, said("Pairs"), std::to_string(head->pairs.size()));
      fact(c.ui, said("Alignment error rate"), rate(head->score.error_rate), nullptr,
           {said("AER = 1 − (|A ∩ S| + |A ∩ P|) ÷ (|A| + |S|): 0 is best (Och & Ney 2003)"),
            said("A the pairs of this head, S the sure ones that are known, P those and the possible ones")});
      fact(c.ui, said("Precision"), rate(head->score.precision), nullptr, {"|A ∩ P| ÷ |A|"});
      fact(c.ui, said("Recall"), rate(head->score.recall), nullptr, {"|A ∩ S| ÷ |S|"});
      fact(c.ui, said("Chance"), rate(found->chance), nullptr,
           {said("the error rate when every target token is paired with any token of the source, each as likely")});
    }
    if (truth_.empty())
      note(c.ui, said("With an alignment that is known, every head has an error rate; 3?2 is a pair that is possible "
                      "only. A row tells what stands for the token that is about to be written, so the one of token 0 "
                      "is that of the token that begins every target."));
    if (!head) return;
    if (button(c.ui, to_say("Open in Explore"))) {
      c.editor.look_at(Stack::cross);
      show_in_explore(c, head->head);
    }
  }

  void controls(ControlsRecord& r) override {
    r.field("strongest", strongest_);
    r.field("threshold", threshold_, 0.01, 1);
    r.field("known", truth_);
  }

 private:
  const Aligned* current() const { return aligned_.last().get(); }
  static const HeadAlignment* of(const Aligned& all, HeadId head) {
    const auto found = std::ranges::find(all.heads, head, &HeadAlignment::head);
    return found == all.heads.end() ? nullptr : &*found;
  }
  static void no_maps(const PageContext& c) {
    empty_state(c.ui, said("Its maps were not kept"),
                said("The memory for one trace is too small; the settings have more."));
  }

  void map(const PageContext& c, const std::shared_ptr<const Trace>& cross) {
    const HeadId head = c.state().document.selected;
    section(c.ui, say("CROSS-ATTENTION LAYER {} HEAD {}", head.layer, head.head), said("framed: pairs"));
    const double width = std::floor(c.room());
    const double height = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 4);
    slot_.want(c.jobs, c.ui, cross, fmt::format("{}.{} {} {}", head.layer, head.head, width, height),
               [cross, head, width, height](const Style& style) {
                 HeadMapOptions options;
                 options.head = head;
                 options.room = {width, height};
                 options.bare = true;
                 return head_map_scene(*cross, options, style);
               });
    const Scene* scene = slot_.scene();
    if (!scene) return;
    const SceneTouch touch = slot_.draw(c.ui, "alignment map", {}, width, height);
    const Mark* mark = find(*scene, "map");
    const Aligned* found = current();
    const HeadAlignment* pairs = found && aligned_.last_key()->cross == cross ? of(*found, head) : nullptr;
    if (!mark || !pairs) return;
    const auto& heat = std::get<Heatmap>(mark->shape);
    if (heat.rows() != static_cast<Index>(cross->queries().size())) return;  // binned: cells are no tokens
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    for (const AlignedPair& pair : pairs->pairs) {
      const Rect cell = heat.cell(pair.target, pair.source);
      draw.AddRect(touch.window({cell.x, cell.y}), touch.window({cell.right() - heat.gap, cell.bottom() - heat.gap}),
                   col(c.ui.theme.accent), 0, 0, c.ui.px(1.5));
    }
  }

  void ranking(const PageContext& c) {
    const Aligned* found = current();
    section(c.ui, said("HEADS"), found && found->known ? said("error rate; click selects") : said("click selects"));
    if (!found) return;
    std::vector<std::size_t> order(found->heads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (found->known)
      std::ranges::stable_sort(order, {}, [&](std::size_t i) {
        const double value = found->heads[i].score.error_rate;
        return std::isfinite(value) ? value : 2;
      });
    std::vector<Bar> bars;
    for (const std::size_t i : order) {
      const HeadAlignment& head = found->heads[i];
      const double value = head.score.error_rate;
      bars.push_back({to_string(head.head), std::isfinite(value) ? value : 0,
                      std::isfinite(found->chance) ? found->chance : -1,
                      found->known ? rate(value) : say("{} pairs", head.pairs.size()),
                      found->known ? say("alignment error rate {}, chance {}", rate(value), rate(found->chance))
                                   : say("{} pairs", head.pairs.size())});
    }
    if (const BarClick click = bar_list(c.ui, "aligned heads", bars); click.left >= 0)
      c.editor.select(nth(found->heads, nth(order, click.left)).head);
  }

  SceneSlot slot_{"scene.alignment"};
  bool strongest_ = true;
  double threshold_ = 0.5;
  std::string truth_;
  Answer<Asked, Aligned> aligned_{
      {"alignment", to_say("aligning")}, Answer<Asked, Aligned>::OnFailure::keep, Holds::numbers};
};

}  // namespace

std::unique_ptr<Page> make_alignment(JobRunner& jobs) {
  return std::make_unique<AlignmentPage>(jobs);
}

}  // namespace headscope
