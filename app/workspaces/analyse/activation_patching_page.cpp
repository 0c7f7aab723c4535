// Activation patching: two prompts, how their tokens are paired, and a map of where the clean answer comes back.

#include "core/analysis/activation_patching.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "app/state/prompt_pairs.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/prompt_edit.h"
#include "app/workspaces/analyse/sweep_page.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/pair_picker.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/edits/text_pairing.h"
#include "core/trace/hook_names.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

constexpr const char* position_names[] = {"pre", "mid", "post", "attn", "MLP"};
constexpr const char* head_names[] = {"z", "q", "k", "v", to_say("pattern")};
constexpr const char* meanings[] = {
    to_say("The residual stream entering each block, one position at a time."),
    to_say("The residual stream between attention and MLP, one position at a time."),
    to_say("The residual stream leaving each block, one position at a time."),
    to_say("What a layer's attention adds, one position at a time."),
    to_say("What a layer's MLP adds, one position at a time."),
    to_say("What each head reads from the values it attends to, at all positions."),
    to_say("Each head's queries, at all positions."),
    to_say("Each key head's keys, at all positions."),
    to_say("Each key head's values, at all positions."),
    to_say("Where each head looks: its pattern at paired tokens. What it gave to a token without a partner, its others "
           "share."),
};
constexpr const char* cross_meanings[] = {
    to_say("The decoder's stream entering cross-attention, one target position at a time."),
    "",
    "",
    to_say("What a layer's cross-attention adds, one target position at a time."),
    "",
    to_say("What each head reads from the values of the source, at all target positions."),
    to_say("Each head's queries, at all target positions."),
    "",
    "",
    to_say("Where each head looks in the source: its pattern at paired tokens."),
};
constexpr int by_position = 5;

/// Of cross-attention keys and values are of another text than queries: what is a row of the target's can be patched.
bool is_patched(Stack stack, int site) {
  return stack != Stack::cross || *nth(cross_meanings, site) != '\0';
}

class PatchingPage final : public SweepPage<PatchingSweep, PatchingRequest> {
 public:
  explicit PatchingPage(JobRunner& jobs)
      : SweepPage(jobs, "patch",
                  {to_say("cells"), to_say("Nothing has been patched yet"),
                   to_say("Write a clean and a corrupted prompt on the right, or take an example, and press Start."),
                   to_say("Running both prompts")}) {
    try {
      pairs_ = load_prompt_pairs();
    } catch (const Error& broken) {
      jobs.show({Message::Level::error, broken.what(), ""});
    }
  }

  void middle(const PageContext& c) override {
    if (!c.results().model.model) return nothing_open(c);
    if (c.results().model.model->config().vision)
      return empty_state(c.ui, said("This model reads pictures"),
                         said("This page patches from one text into another. Between two pictures the command line "
                              "does: sweep patch --clean A.png --corrupted B.png."));
    if (!c.results().model.tokenizer)
      return empty_state(c.ui, said("This model has no tokenizer"),
                         said("Prompts are texts; open a model folder with one."));
    choose_first(c);
    if (!keep_up(c)) return;
    if (align_.by == TextPairing::By::hand) c.ui.pictures.passing = "tokens that were paired by hand";
    alignment(c);
    ImGui::Dummy({0, c.ui.px(4)});
    map(c);
  }

  void controls(ControlsRecord& r) override {
    r.field("clean", clean_);
    r.field("corrupted", corrupted_);
    r.field("target", target_);
    r.field("first_answer", usual_right_);
    r.field("second_answer", usual_wrong_);
    r.choice("site", site_, 2 * by_position - 1);
    // Pairs by hand are of one model's tokens.
    TextPairing::By by = align_.by == TextPairing::By::hand ? TextPairing::By::tokens : align_.by;
    r.field("alignment", by, TextPairing::By::tokens);
    if (!r.reading()) return;
    align_ = by;
    keeps_prompts_ = !clean_.empty();
  }
  void right(const PageContext& c) override {
    if (c.results().model.model && c.results().model.model->config().vision) return;
    const bool two = c.results().translates();
    section(c.ui, two ? said("CLEAN SOURCE") : said("CLEAN PROMPT"), said("where activations come from"));
    examples(c);
    prompt(c, clean_edit_, "##clean prompt", clean_);
    section(c.ui, two ? said("CORRUPTED SOURCE") : said("CORRUPTED PROMPT"), said("what the model reads"));
    prompt(c, corrupted_edit_, "##corrupted prompt", corrupted_);
    if (const LoadedModel& model = c.results().model;
        model.model && asks_masked(c) && model.tokenizer && model.tokenizer->mask())
      note(c.ui, say("Write {} where the model is to answer: what it says there is compared.",
                     token_text(model, *model.tokenizer->mask())));
    if (two) {
      section(c.ui, said("TARGET"), said("read beside both sources"));
      prompt(c, target_edit_, "##patching target", target_, 3, to_say("nothing written yet"));
    }

    section(c.ui, said("PATCH"),
            two ? say("{}, one cell at a time", said_view(stack_word(stack(c)))) : said("one cell at a time"));
    const float room = ImGui::GetContentRegionAvail().x;
    sites(c, room);
    static constexpr const char* aligns[] = {to_say("by tokens"), to_say("from start"), to_say("from end"),
                                             to_say("by hand")};
    static constexpr TextPairing::By ways[] = {TextPairing::By::tokens, TextPairing::By::start, TextPairing::By::end,
                                               TextPairing::By::hand};
    const bool hand = align_.by == TextPairing::By::hand;
    int align = static_cast<int>(std::ranges::find(ways, align_.by) - std::begin(ways));
    if (segmented(c.ui, "alignment", std::span(aligns, hand ? 4u : 3u), align, room)) align_ = ways[align];
    const bool known = ask(c, fields_);
    if (known) {
      section(c.ui, said("LOGIT DIFFERENCE"),
              fmt::format("{} − {}", token_text(c.results().model, result()->answers.right),
                          token_text(c.results().model, result()->answers.wrong)));
      fact(c.ui, said("Clean prompt"), fmt::format("{:.3f}", result()->clean_difference), nullptr,
           {said("logit[first] − logit[second]"), said("logits of the last position, F32")});
      fact(c.ui, said("Corrupted prompt"), fmt::format("{:.3f}", result()->corrupted_difference), nullptr,
           {said("logit[first] − logit[second]"), said("logits of the last position, F32")});
      if (is_by_head(result()->request.site)) {
        selected_head(c);
      }
    }
  }

 private:
  /// `only` of a model of one stack.
  static Stack stack(const PageContext& c) { return c.results().translates() ? c.state().document.stack : Stack::only; }
  /// The chosen site, or where this stack has none such the first of its kind.
  int site(const PageContext& c) const {
    return is_patched(stack(c), site_) ? site_ : site_ >= by_position ? by_position : 0;
  }
  void sites(const PageContext& c, float room) {
    static constexpr const char* kinds[] = {to_say("by position"), to_say("by head")};
    int kind = site_ >= by_position ? 1 : 0;
    if (segmented(c.ui, "patch kind", kinds, kind, room)) site_ = kind == 1 ? by_position : 0;
    std::vector<const char*> names;
    std::vector<int> offered;
    for (int i = kind * by_position; i < (kind + 1) * by_position; ++i)
      if (is_patched(stack(c), i)) {
        names.push_back(kind == 0 ? position_names[i] : head_names[i - by_position]);
        offered.push_back(i);
      }
    int chosen = static_cast<int>(std::ranges::find(offered, site(c)) - offered.begin());
    if (segmented(c.ui, kind == 0 ? "position site" : "head site", names, chosen, room)) site_ = nth(offered, chosen);
    note(c.ui, said(stack(c) == Stack::cross ? cross_meanings[site(c)] : meanings[site(c)]));
  }

  void prompt(const PageContext& c, PromptEdit& edit, const char* id, std::string& text, int lines = 5,
              const char* hint = to_say("write a prompt")) {
    const PromptTouch touch = edit.draw(c.ui, id, text, {}, lines, said(hint));
    if (!touch.changed) return;
    text = edit.text();
    if (align_.by == TextPairing::By::hand) align_ = TextPairing::By::tokens;  // those pairs were of other words
  }

  void take(const PageContext& c, const PromptPair& written) {
    const Tokenizer* words = c.results().model.tokenizer.get();
    const PromptPair pair =
        written.masked && words && words->mask() ? masked_by(written, words->token(*words->mask()).label) : written;
    clean_ = pair.clean, corrupted_ = pair.corrupted;
    usual_right_ = pair.right, usual_wrong_ = pair.wrong;
    target_ = pair.target;
    taken_ = {clean_, corrupted_};
    if (align_.by == TextPairing::By::hand) align_ = TextPairing::By::tokens;
  }
  /// Those of the example, while the user has chosen none.
  std::optional<AnswerPair> usual_answers(const LoadedModel& model) const {
    if (usual_right_.empty() || usual_wrong_.empty() || !model.tokenizer) return std::nullopt;
    try {
      return AnswerPair{answer_token(model, usual_right_, "first answer"),
                        answer_token(model, usual_wrong_, "second answer")};
    } catch (const Error&) {  // no single tokens to this model: the sweep takes its own
      return std::nullopt;
    }
  }

  /// A model that is opened brings the example that was made for it, unless it came with a session that has prompts.
  void choose_first(const PageContext& c) {
    if (c.results().model_folder != c.state().document.model) return;  // which is being opened
    const bool kept = std::exchange(keeps_prompts_, false);
    if (model_ == c.results().model_folder) return;
    model_ = c.results().model_folder;
    if (kept) return;
    const std::string name = model_.filename().string();
    const auto made_for = std::ranges::find_if(
        pairs_, [&](const PromptPair& pair) { return std::ranges::find(pair.models, name) != pair.models.end(); });
    const auto any = std::ranges::find_if(
        pairs_, [&](const PromptPair& pair) { return pair.models.empty() && pair.masked == asks_masked(c); });
    const bool own = !clean_.empty() && taken_ != std::pair(clean_, corrupted_);  // written by hand
    if (made_for != pairs_.end())
      take(c, *made_for);
    else if (c.results().translates())
      target_ = c.state().document.text;  // its languages are nobody's example
    else if (any != pairs_.end() && !own)
      take(c, *any);
  }

  static bool asks_masked(const PageContext& c) {
    return c.results().model.model->config().objective() == Objective::masked_token;
  }

  void examples(const PageContext& c) {
    if (menu_button(c.ui, "Example prompts", said("Examples"), "", c.ui.px(26))) ImGui::OpenPopup("example prompts");
    if (!ImGui::BeginPopup("example prompts")) return;
    for (const PromptPair& pair : pairs_) {
      if (!c.results().model.model || pair.masked != asks_masked(c)) continue;
      std::string suits;
      for (const std::string& model : pair.models) suits += (suits.empty() ? "" : ", ") + model;
      if (ImGui::MenuItem(pair.title.c_str(), suits.c_str(), clean_ == pair.clean && corrupted_ == pair.corrupted)) {
        take(c, pair);
        c.editor.view().contrast.reset();  // an example asks about its own answers
      }
    }
    ImGui::EndPopup();
  }

  std::optional<PatchingRequest> wanted(const PageContext& c) const override {
    PatchingRequest request{c.results().model_folder,       clean_, corrupted_,  c.state().document.add_bos,
                            nth(patching_sites(), site(c)), align_, std::nullopt};
    if (c.results().translates()) {
      request.target = target_;
      request.stack = stack(c);
    }
    request.answers = chosen_answers(c);
    if (!request.answers) request.answers = usual_answers(c.results().model);
    return request;
  }

  double passes(const PageContext& c) const override {
    const ModelDims& dims = c.trace()->model.dims;
    // Words of a prompt are about as many as a quarter of its letters.
    const std::string& text = stack(c) == Stack::decoder || stack(c) == Stack::cross ? target_ : corrupted_;
    const double columns = site_ >= by_position ? dims.most_heads() : static_cast<double>(text.size()) / 4;
    return 0.5 * dims.layers * columns;
  }
  bool mistyped() const override { return !fields_.error.empty(); }
  bool by_itself() const override { return !clean_.empty() && !corrupted_.empty(); }

  /// Both texts, token over token; pairs can be changed by hand.
  void alignment(const PageContext& c) {
    // A sweep tells its result again and again while it runs: the pairs stay the same.
    const std::shared_ptr<const Trace> clean = result()->patched(result()->clean),
                                       corrupted = result()->patched(result()->corrupted);
    if (!paired_ || paired_->a != clean || paired_->b != corrupted) {
      paired_ = std::make_shared<const PairedTexts>(PairedTexts{
          clean, corrupted, inverted(result()->partner, clean->tokens.size()), to_say("clean"), to_say("corrupted")});
    }
    section(c.ui, said("TOKENS AS THEY ARE PAIRED"), picker_.remark(*paired_));
    // The map below takes what its rows can use; what it leaves over shows more of the texts.
    const float room = ImGui::GetContentRegionAvail().y;
    constexpr double around_map = 250;  // title, token labels, colour bar
    const float map = c.ui.px(around_map + Matrix{}.highest_row * result()->rows);
    const float most = std::max(room * 0.3f, room - map);
    const auto changed = picker_.draw(c.ui, c.jobs, "patching pairs", paired_, most);
    const PatchingRequest& of = result()->request;
    if (changed && of.clean == clean_ && of.corrupted == corrupted_)  // else other prompts are being written
      align_ = TextPairing(TextPairing::By::hand, pairs_of(inverted(*changed, corrupted->tokens.size())));
  }

  void map(const PageContext& c) {
    const bool heads = is_by_head(result()->request.site);
    section(c.ui, said("SHARE OF THE CLEAN ANSWER THAT COMES BACK"),
            said("0 = as corrupted, 1 = as clean; each cell is one run of the model"));
    const double height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 10, 160.0);
    const SceneTouch touch = matrix_slot(c, slot_, "patching", result(), "", height, [result = result(), heads] {
      std::vector<double> values;
      for (std::size_t i = 0; i < result->difference.size(); ++i) values.push_back(result->recovered(i));
      Matrix matrix = head_matrix(result->rows, result->columns, values);
      if (!heads) {
        matrix.tokens = result->patched(result->corrupted);
        matrix.column_title = said("token →");
      }
      // Shares are read against 1, whatever the largest of them.
      double largest = 1;
      for (const double value : values)
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
      matrix.low = -largest, matrix.high = largest;
      matrix.unit = said("(patched − corrupted) / (clean − corrupted) of the logit difference");
      return matrix;
    });
    const Scene* scene = slot_.scene();
    if (!scene) return;
    const ModelDims& dims = result()->patched(result()->corrupted)->model.dims;
    const bool keys = result()->request.site == SiteKind::k || result()->request.site == SiteKind::v;
    if (heads) head_cells(c, *scene, touch, keys ? &dims : nullptr);
    if (touch.cell && touch.mark && touch.mark->id == "matrix") tip(c, *touch.cell);
  }

  void tip(const PageContext& c, Cell cell) {
    const auto index = static_cast<std::size_t>(cell.row * result()->columns + cell.column);
    if (index >= result()->difference.size()) return tooltip(c.ui, {said("Not computed yet")});
    const bool heads = is_by_head(result()->request.site);
    const std::string what = heads
                                 ? say("Layer {} Head {}", cell.row, cell.column)
                                 : say("Layer {}, {} (position {})", cell.row,
                                       token_label(*result()->patched(result()->corrupted), cell.column), cell.column);
    const Site patched{result()->request.site, static_cast<int>(cell.row)};
    const std::string named = name(patched, result()->request.stack, HookNames::transformer_lens);
    if (std::isnan(result()->difference[index]))
      return tooltip(c.ui, {what, said("This token has no partner in the clean prompt.")});
    tooltip(c.ui, {what, say("{:.1f} % of the difference comes back", 100 * result()->recovered(index)),
                   say("logit difference {:.3f} → {:.3f} (clean {:.3f})", result()->corrupted_difference,
                       result()->difference[index], result()->clean_difference),
                   say("{} of the clean prompt, F32; the model run again from block {}", named, cell.row)});
  }

  SceneSlot slot_{"scene.patching"};
  std::vector<PromptPair> pairs_;
  PromptEdit clean_edit_, corrupted_edit_, target_edit_;
  std::string clean_, corrupted_, target_;
  std::pair<std::string, std::string> taken_;  // of an example, as it was taken
  std::filesystem::path model_;                // that prompts were chosen for
  bool keeps_prompts_ = false;                 // those of a session that was opened
  int site_ = 0;
  TextPairing align_ = TextPairing::By::tokens;
  AnswerFields fields_;
  std::string usual_right_, usual_wrong_;
  PairPicker picker_{"scene.patching.pairs"};
  std::shared_ptr<const PairedTexts> paired_;
};

}  // namespace

std::unique_ptr<Page> make_activation_patching(JobRunner& jobs) {
  return std::make_unique<PatchingPage>(jobs);
}

}  // namespace headscope
