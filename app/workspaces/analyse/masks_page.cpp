// Masks: chosen, joined, painted; what they leave of the work and the cache; and what the open model makes of them.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/head_report.h"
#include "app/state/sweep_controller.h"
#include "app/widgets/controls.h"
#include "app/widgets/mask_thumbnail.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/analysis/mask_sweep.h"
#include "core/attention/lsh.h"
#include "core/attention/mask_facts.h"
#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/mask_edit.h"
#include "core/run/mechanism_input.h"
#include "core/trace/layer_kinds.h"
#include "viz/color/color_norm.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/matrix_map.h"

namespace headscope {

namespace {

constexpr Index most_drawn = 128;
constexpr std::size_t most_sliders = 12;
constexpr int top_keys = 4;  // whose recall is said of masks that hash

/// What is known of one mask over one text.
struct MaskPicture {
  std::string spec;
  double recall = -1;  ///< of masks that hash queries and keys: of the true top keys; < 0 = does not apply
  HeadId head;         ///< whose queries and keys they are
  Index tokens = 0;
  MaskFacts facts;
  std::vector<std::uint8_t> hidden;
};

/// What every head under the mask makes of the text.
struct MaskedRun {
  double loss = 0, kl = 0;
};

class MaskPage final : public ReadingPage {
 public:
  explicit MaskPage(JobRunner& jobs) : costs_(jobs, "masks", to_say("running every mask")) {}

  void middle(const PageContext& c) override {
    if (!c.trace() || c.captured()) return nothing_open(c);
    if (spec_.empty()) choose(c.results().own_mask(c.state().document.stack));
    ask(c);
    chooser(c);
    words(c);
    sliders(c);
    static constexpr const char* views[] = {to_say("Cells"), to_say("All masks")};
    segmented(c.ui, "masks view", views, view_);
    view_ == 0 ? picture(c) : table(c);
  }

  void controls(ControlsRecord& r) override {
    r.choice("join", join_, 3);
    r.choice("view", view_, 1);
    std::string spec = spec_;
    r.field("mask", spec);
    if (!r.reading() || spec.empty()) return;
    try {
      line_ = spec_ = parse_mask(spec)->describe();
    } catch (const Error&) {  // of a file that somebody wrote by hand
    }
  }
  void right(const PageContext& c) override {
    if (!picture_.answer() || !c.trace()) return;
    numbers(c, *picture_.answer());
    in_the_model(c);
    if (view_ == 1) run_table(c);
  }
  void each_frame(JobRunner& jobs, const Results& results, bool shown) override {
    ReadingPage::each_frame(jobs, results, shown);
    costs_.frame();
  }

 private:
  using Reading = ReadingJob<MaskPicture>::Reading;

  void ask(const PageContext& c) {
    const bool hashes = hashes_vectors(spec_);
    const HeadId head = hashes ? c.state().document.selected : HeadId{};
    picture_.want(c, {}, fmt::format("{} {}", spec_, to_string(head)),
                  [spec = spec_, hashes, head](const ReadingSource& source, const Ctx& ctx) {
                    const Index n = std::min<Index>(static_cast<Index>(source.trace->tokens.size()), most_drawn);
                    MaskPicture made{spec, -1, head, n, {}, {}};
                    std::shared_ptr<const AttentionRule> rule = parse_mask(spec);
                    if (hashes && source.model.model->config().dims.attends(head.layer)) {
                      const MechanismInput in = head_input(source.model, source.run->request, head, ctx);
                      const MaskVectors meet{in.q, in.k};
                      rule = parse_mask(spec, "mask", &meet);
                      made.recall = recall_of_top(meet.q, meet.k, *rule, top_keys);
                    }
                    made.facts = facts_on_text(spec, *rule, n);
                    made.hidden = hidden_cells(*rule, n);
                    return made;
                  });
    masked_.want(c, {}, spec_, [spec = spec_](const ReadingSource& source, const Ctx& ctx) {
      RunRequest request = source.run->request;
      request.capture.maps = MapStorage::none;
      request.capture.sites.clear();
      request.capture.all_logits = true;
      request.edits.push_back({{}, SetMask{spec}});
      const auto after = headscope::run(source.model, request, ctx);
      return MaskedRun{mean_loss(*after), next_token_change(*source.trace, *after, 1).kl};
    });
  }

  /// Takes a spec over when it parses.
  void choose(const std::string& spec) {
    try {
      spec_ = parse_mask(spec)->describe();
      line_ = spec_;
      error_.clear();
    } catch (const Error& wrong) {
      error_ = wrong.what();
    }
  }

  void chooser(const PageContext& c) {
    static constexpr const char* ways[] = {to_say("take"), to_say("and"), to_say("or"), to_say("and not")};
    segmented(c.ui, "mask joins", ways, join_);
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(vec(c.ui.theme.muted), "%s",
                       join_ == 0 ? said("a click takes the mask") : said("a click joins the mask to the one below"));
    const double side = 46;
    const float pitch = c.ui.px(side + 20), left = ImGui::GetCursorScreenPos().x,
                right = left + ImGui::GetContentRegionAvail().x;
    float x = left;
    for (const MaskForm& form : mask_forms()) {
      if (x > left && x + pitch <= right) ImGui::SameLine(0, 0);
      if (x + pitch > right) x = left;
      ImGui::SetCursorScreenPos({x, ImGui::GetCursorScreenPos().y});
      x += pitch;
      const std::string spec(form.example), id = "take mask " + std::string(form.id);
      const bool chosen = spec_.find(form.id) != std::string::npos;
      const ThumbnailTouch touch = mask_thumbnail(c.ui, id.c_str(), *parse_mask(spec), form.id, chosen, side);
      if (touch.clicked) {
        if (join_ == 0)
          choose(spec);
        else
          choose(fmt::format("({}) {} {}", spec_, join_ == 1 ? "&" : join_ == 2 ? "|" : "& not", spec));
      }
      if (touch.hovered)
        tooltip(c.ui, {fmt::format("{}: {}", said_view(form.title), form.form), std::string(said_view(form.meaning)),
                       say("query i sees key j where {}", said_view(form.predicate)), std::string(form.source)});
    }
  }

  void words(const PageContext& c) {
    const UseFont font(c.ui, c.ui.token());
    ImGui::SetNextItemWidth(-1);
    if (input_line(c.ui, "##mask words", "window 8 & not padding 2", line_)) choose(line_);
    if (!error_.empty()) error_text(c.ui, error_);
  }

  /// One for every number that stands in the words.
  void sliders(const PageContext& c) {
    const auto tokens = static_cast<Index>(c.trace()->tokens.size());
    if (const auto of = std::pair(spec_, tokens); numbers_of_ != of)
      numbers_ = mask_numbers(spec_, tokens), numbers_of_ = of;
    const std::vector<MaskNumber> numbers = numbers_;  // a slider may choose another mask
    if (numbers.empty() || numbers.size() > most_sliders) return;
    const int columns = c.room() > 560 && numbers.size() > 1 ? 2 : 1;
    if (!ImGui::BeginTable("mask numbers", columns,
                           ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_NoSavedSettings))
      return;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const MaskNumber& number = numbers[i];
      ImGui::TableNextColumn();
      double value = number.value;
      // The same name may stand there twice, as in "window 8 | sink 1 window 1".
      const std::string label = fmt::format("{}, {}##{}", number.mask, number.name, i);
      const std::string shown = label.substr(0, label.find("##"));
      ImGui::PushID(static_cast<int>(i));
      if (slider(c.ui, shown.c_str(), value,
                 {number.low, number.high, number.value, number.logarithmic, "", number.decimals}))
        choose(with_mask_number(spec_, i, std::clamp(value, number.low, number.high)));
      ImGui::PopID();
    }
    ImGui::EndTable();
  }

  // ---- every mask beside every other
  MasksAsked wanted(const PageContext& c) const {
    return {c.results().run->request, c.state().document.selected,
            masks_for(static_cast<Index>(c.trace()->tokens.size()))};
  }
  /// Whether the table is of another text or model. Another head would change the cells of the masks that hash alone,
  /// and no loss: that is no reason to run them all again.
  bool asks_anew(const PageContext& c) const {
    if (!asked_) return true;
    MasksAsked now = wanted(c);
    now.head = asked_->head;
    return *asked_ != now;
  }
  void start(const PageContext& c) {
    asked_ = wanted(c);
    costs_.start(std::make_shared<MaskSweep>(c.results().model, *asked_),
                 [this](std::shared_ptr<const MaskCosts> known) { table_ = std::move(known); });
  }
  void run_table(const PageContext& c) {
    const double expected = expected_seconds(c, static_cast<double>(mask_forms().size()));
    if (sweep_controls(c, costs_, to_say("masks"), asked_ && asks_anew(c), expected)) start(c);
  }

  void table(const PageContext& c) {
    if (!c.results().model.model)
      return empty_state(c.ui, said("There is no model behind these weights"), said("Open one above."));
    if (asks_anew(c) && !costs_.running() &&
        expected_seconds(c, static_cast<double>(mask_forms().size())) <= starts_by_itself_seconds)
      start(c);
    if (sweep_shown(c, costs_, asked_ && asks_anew(c))) start(c);
    if (!table_)
      return empty_state(
          c.ui, costs_.running() ? said("Running the text with every mask") : said("Nothing has been measured yet"),
          said("Press Start on the right: every mask is run once."));
    const auto known = table_;
    c.ui.pictures.add_table("every mask", said("every mask"), [known] {
      Table out{said("every mask"),
                {to_say("mask"), to_say("cells kept, %"), to_say("score work, FLOP"), to_say("KV cache, bytes"),
                 to_say("loss"), to_say("KL of the answer")},
                {}};
      for (const MaskCosts::Entry& each : known->entries)
        out.rows.push_back({each.mask, number_cell(100 * each.facts.share()), number_cell(known->work(each)),
                            number_cell(known->cache_bytes(each)), number_cell(each.outcome.loss),
                            number_cell(each.outcome.kl)});
      return out;
    });
    const UseFont font(c.ui, c.ui.number());
    constexpr ImGuiTableFlags flags =
        ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
    if (!ImGui::BeginTable("every mask", 6, flags, {0, std::max(ImGui::GetContentRegionAvail().y, c.ui.px(140))}))
      return;
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn(said("Mask"), ImGuiTableColumnFlags_WidthStretch);
    for (const char* title : {said("Kept"), said("Score work"), said("KV cache"), said("Loss"), said("KL of answer")})
      ImGui::TableSetupColumn(title);
    ImGui::TableHeadersRow();
    for (const MaskCosts::Entry& each : known->entries) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      if (ImGui::Selectable(each.mask.c_str(), each.mask == spec_, ImGuiSelectableFlags_SpanAllColumns))
        choose(each.mask);
      const std::string cells[] = {fmt::format("{:.1f} %", 100 * each.facts.share()), amount(known->work(each), "FLOP"),
                                   amount(known->cache_bytes(each), "B"),
                                   std::isnan(each.outcome.loss) ? "–" : fmt::format("{:.3f}", each.outcome.loss),
                                   std::isnan(each.outcome.kl) ? "–" : fmt::format("{:.4f}", each.outcome.kl)};
      for (std::size_t column = 0; column < std::size(cells); ++column) {
        ImGui::TableNextColumn();
        const bool worse = column == 3 && each.outcome.loss > known->before.loss + 5e-4;
        ImGui::PushStyleColor(ImGuiCol_Text, vec(worse ? legible(c.ui.theme, c.ui.theme.key) : c.ui.theme.text));
        ImGui::TextUnformatted(cells[column].c_str());
        ImGui::PopStyleColor();
      }
    }
    ImGui::EndTable();
  }
  static std::string amount(double value, const char* unit) { return std::isnan(value) ? "–" : quantity(value, unit); }

  void picture(const PageContext& c) {
    const auto answer = picture_.answer();
    if (!answer) return;
    const double width = std::floor(c.room()),
                 height = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale)) - 6;
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height), [answer, width, height](const Style& style) {
      const MaskPicture& known = answer->result;
      MatrixMap matrix = mask_map(known.tokens, known.hidden);
      if (known.tokens <= 40)
        for (Index i = 0; i < known.tokens; ++i)
          matrix.row_labels.push_back(fmt::format("{} {}", token_label(*answer->source.trace, i), i));
      matrix.width = width;
      matrix.height = height;
      matrix.provenance = "mask " + known.spec;
      Scene scene = matrix_map_scene(matrix, style);
      const Heatmap& map = std::get<Heatmap>(find(scene, "map")->shape);
      for (const Index row : known.facts.empty_rows) {
        const Rect at = map.cell(std::min(row, map.rows() - 1), 0);
        scene.add({Box{{at.x, at.y, map.rect.w, at.h}, {0, 0, 0, 0}, style.theme.key, 1.25, 0},
                   fmt::format("empty.{}", row), say("query {} sees no key: all its weights are zero", row)});
      }
      return scene;
    });
    SceneViewOptions how;
    how.tooltips = false;
    const SceneTouch touch = slot_.draw(c.ui, "mask picture", how, width, height);
    paint(c, touch);
  }

  /// Pressing on a cell opens or closes it; what the pointer is dragged over follows.
  void paint(const PageContext& c, const SceneTouch& touch) {
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) stroke_.reset();
    const auto answer = picture_.current();
    if (!touch.hovered || !touch.cell || !answer) return;
    const MaskPicture& known = answer->result;
    const Index i = touch.cell->row, j = touch.cell->column;
    if (known.spec != spec_ || i >= known.tokens || j >= known.tokens) return;
    const bool hidden = nth(known.hidden, i * known.tokens + j) != 0;
    tooltip(c.ui, {hidden ? say("query {} does not see key {}", i, j) : say("query {} sees key {}", i, j),
                   fmt::format("{} → {}", token_label(*c.trace(), i), token_label(*c.trace(), j)),
                   said("press to open or close the cell, drag to paint")});
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) stroke_ = hidden;
    if (!stroke_ || hidden != *stroke_) return;
    const MapCell cell{i, j};
    choose(painted_mask(spec_, {&cell, 1}, *stroke_, known.tokens));
  }

  void numbers(const PageContext& c, const Reading& answer) {
    const MaskPicture& known = answer.result;
    const MaskFacts& facts = known.facts;
    const ModelInfo& info = answer.source.trace->model;
    section(c.ui, said("WHAT IS LEFT"), say("of {} tokens", facts.tokens));
    fact(c.ui, said("Cells kept"), say("{} of {}", facts.cells, facts.tokens * facts.tokens));
    fact(c.ui, said("… of all"), fmt::format("{:.1f} %", 100 * facts.share()));
    fact(c.ui, said("… of the causal ones"), fmt::format("{:.1f} %", 100 * facts.causal_share()), nullptr,
         {said("visible cells ÷ n (n + 1) / 2")});
    if (!info.dims.any_attends())
      note(c.ui, said("Cells of the matrix that the state amounts to. A mask saves a state nothing: it is as large for "
                      "every text."));
    else
      savings(c, facts, hashes_vectors(known.spec),
              answer.source.model.model ? MaskSavings::of(answer.source.model.model->config()) : MaskSavings::of(info));
    if (known.recall >= 0)
      fact(c.ui, say("Top {} keys it shows", top_keys), fmt::format("{:.0f} %", 100 * known.recall), nullptr,
           {say("of the {} keys with the largest q·k, the share that fell into a shared bucket", top_keys),
            say("layer {} head {}, mean over the queries", known.head.layer, known.head.head)});
    if (facts.ahead > 0)
      fact(c.ui, said("Cells that look ahead"), std::to_string(facts.ahead), nullptr,
           {said("a decoder could not be trained with them; \"& causal\" closes them")});
    if (!facts.empty_rows.empty()) {
      const Color warn = c.ui.theme.key;
      fact(c.ui, said("Rows without a key"), std::to_string(facts.empty_rows.size()), &warn,
           {said("their weights are all zero, and the head adds nothing there")});
      note(c.ui, said("A row without a key becomes zero: the head adds nothing to those tokens."));
    }
  }

  static std::string cells_sum(const ModelDims& dims, Index cells) {
    std::vector<std::string> terms;
    for (const LayerKind& kind : layer_kinds(dims))
      if (kind.mixer == Mixer::attention)
        terms.push_back(fmt::format("2 · ({} + {}) · {} · {} · {}", kind.dims.d_head, kind.dims.value_width(), cells,
                                    dims.heads, kind.layers));
    return fmt::format("{}", fmt::join(terms, " + "));
  }

  /// What attention need not compute or keep.
  static void savings(const PageContext& c, const MaskFacts& facts, bool hashed, const MaskSavings& saved) {
    const ModelDims& d = saved.dims;
    const std::string cells = hashed ? said("every head hashes its own queries and keys: these cells are one head's")
                                     : cells_sum(d, facts.cells);
    fact(c.ui, said("Score and mixing work"), amount(saved.work(facts, hashed), "FLOP"), nullptr,
         {said("2 · (d_head + d_value) · visible cells · heads · layers"), cells});
    if (d.hybrid())
      note(c.ui, say("Of the {} layers that attend. In the others a mask hides cells of what the state amounts to, and "
                     "saves nothing.",
                     attending_layers(d)));
    if (!saved.keeps_keys) return;
    fact(c.ui, said("Keys the cache must keep"), say("{} of {}", facts.kept_keys, facts.tokens), nullptr,
         {said("keys that some one of the next n queries may still see")});
    fact(c.ui, said("KV cache"), amount(saved.cache_bytes(facts), "B"), nullptr,
         {say("layers · ({}) · kept keys · 4 bytes", said(saved.cached.words)),
          d.widths.empty() ? fmt::format("{} · ({}) · {} · 4", attending_layers(d), saved.cached.sum, facts.kept_keys)
                           : fmt::format("{} · {} · 4", saved.in_all, facts.kept_keys)});
  }

  void in_the_model(const PageContext& c) {
    section(c.ui, said("IN THE MODEL"), said("every head of every layer"));
    const auto losses = c.results().current_losses();
    const double before = losses ? mean_loss(losses->now) : std::nan("");
    fact(c.ui, said("Loss as it is"), losses ? nats(before) : "…", nullptr,
         {said(c.predicts().loss), said("the run on screen, with the document's edits")});
    const auto masked = masked_.current();
    const std::string none = masked_.failed() ? "–" : "…";
    const Color worse = c.ui.theme.key;
    fact(c.ui, said("… with this mask"), masked ? nats(masked->result.loss) : none,
         masked && masked->result.loss > before + 5e-4 ? &worse : nullptr,
         {"*: mask " + spec_, said("the same text, run with this mask in every head")});
    fact(c.ui, said("Change of the answer (KL)"), masked ? nats(masked->result.kl, 4) : none, nullptr,
         {said("KL(as it is ‖ masked) of the distributions where the model answers")});
    if (button(c.ui, to_say("Keep among the edits"), c.ui.px(28))) {
      std::vector<Intervention> edits = c.state().document.edits;
      set_mask(edits, target_of(EditScope::all, {}, c.state().document.stack), spec_,
               c.results().own_mask(c.state().document.stack));
      c.editor.history().close_step();
      c.editor.set_edits(std::move(edits));
    }
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {"*: mask " + spec_, said("every workspace then shows the model so; Ctrl+Z takes it back")});
  }

  ReadingJob<MaskPicture> picture_{*this, "masks.facts", to_say("measuring the mask")};
  ReadingJob<MaskedRun> masked_{*this, "masks.model", to_say("measuring the mask")};
  ReadingSlot slot_{*this, "scene.masks"};
  std::string spec_, line_, error_;  // spec_ "" until a model is seen: then its own
  std::vector<MaskNumber> numbers_;
  std::pair<std::string, Index> numbers_of_{"", -1};  // the spec and the tokens that numbers_ are of
  int join_ = 0, view_ = 0;
  SweepController costs_;
  std::optional<MasksAsked> asked_;
  std::shared_ptr<const MaskCosts> table_;
  std::optional<bool> stroke_;  // whether the stroke that is being painted opens cells
};

}  // namespace

std::unique_ptr<Page> make_masks(JobRunner& jobs) {
  return std::make_unique<MaskPage>(jobs);
}

}  // namespace headscope
