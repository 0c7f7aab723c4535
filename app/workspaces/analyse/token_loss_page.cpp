// Cross-entropy and perplexity token by token, beside what knowing nothing costs; and that one pass gives as many
// predictions as the text has tokens.

#include "core/analysis/token_loss.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/render/block_pictures.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

struct Checked {
  std::optional<PrefixCheck> check;
  std::string refused;  ///< why it could not be made
};

class TokenLossPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    if (!c.trace()) return no_reading_yet(c);
    if (const std::string why = c.captured() ? "" : why_no_loss(c); !why.empty())
      return empty_state(c.ui, said("Nothing to add up"), why);
    const bool masked = c.trace()->model.objective == Objective::masked_token;
    const auto whole = [memory = c.jobs.memory()](const ReadingSource& source, const Ctx& ctx) {
      return with_all_logits(source.model, source.run->request, source.trace, ctx, *memory);
    };
    job_.want(c, {}, "",
              [whole](const ReadingSource& source, const Ctx& ctx) { return read_token_losses(*whole(source, ctx)); });
    if (!masked)
      check_.want(c, {}, "", [whole](const ReadingSource& source, const Ctx& ctx) {
        Checked out;
        try {
          out.check = check_prefixes(source.model, source.run->request, Ctx{.backend = ctx.backend, .stop = ctx.stop},
                                     *whole(source, ctx));
        } catch (const Error& wrong) {  // an edit that names a place beyond a beginning's end
          out.refused = wrong.what();
        }
        return out;
      });
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    const Index pinned = pinned_row(c, *answer->source.trace);
    const double width = std::floor(c.room()), height = std::clamp(room_below(c) * 0.58, 220.0, 520.0);
    section(c.ui, masked ? said("LOSS OF EACH MASKED TOKEN") : said("LOSS OF EACH TOKEN"),
            masked ? said("click pins the token")
                   : said("a bar stands at the token that had to be guessed · click pins the guess"));
    bars_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", pinned, width, height),
               [answer, pinned, width, height](const Style& style) {
                 TokenBars bars = loss_bars(answer->result, answer->source.trace, token_names(answer->source.model));
                 bars.marked = pinned + bars.first;
                 bars.width = width, bars.height = height;
                 return token_bars_scene(bars, style);
               });
    const SceneTouch touch = wide_scene(c, bars_, "losses");
    if (const auto* token = meaning<TokenAt>(touch.mark); token && touch.clicked)
      c.editor.pin(token->position - (masked ? 0 : 1));
    table(c, answer, pinned);
  }

  void right(const PageContext& c) override {
    const auto answer = job_.answer();
    if (!answer) return;
    const LossReport& r = answer->result;
    const bool masked = answer->source.trace->model.objective == Objective::masked_token;
    section(c.ui, said("THIS TEXT"), said("nats per token"));
    fact(c.ui, said("Cross-entropy"), fmt::format("{:.4f}", r.mean), nullptr,
         {masked ? said("mean of −ln p(what stood there | the text as shown)")
                 : said("mean of −ln p(token i+1 | tokens 0 … i)"),
          say("{} predictions, logits F32", r.tokens.size())});
    fact(c.ui, said("Perplexity"), fmt::format("{:.2f}", std::exp(r.mean)), nullptr,
         {said("e^cross-entropy: as uncertain as choosing among so many equally likely tokens")});
    fact(c.ui, said("… in bits per token"), fmt::format("{:.3f}", r.mean / std::log(2.0)), nullptr,
         {said("nats ÷ ln 2")});
    section(c.ui, said("BASELINES"), said("loss, perplexity in grey"));
    const auto line = [&](const char* what, double nats, const std::vector<std::string>& words) {
      const std::string perplexity = fmt::format("{:.1f}", std::exp(nats));
      fact(c.ui, what, fmt::format("{:.4f}", nats), nullptr, words, &perplexity);
    };
    line(said("Uniform, ln V"), r.uniform,
         {said("every token of the vocabulary as likely"),
          fmt::format("V = {}", answer->source.trace->model.dims.vocab)});
    line(said("Unigram of this text"), r.unigram,
         {said("entropy of this text's own token counts: knows how often each token comes, not where"),
          said("short texts flatter it: it has read the answer")});
    if (!masked) predictions(c, *answer);
    position_control(c, said("whose guess is marked"));
    const auto found = std::ranges::find(r.tokens, pinned_row(c, *answer->source.trace), &TokenLoss::position);
    if (found == r.tokens.end())
      return note(c.ui, masked ? said("This token is not asked for.")
                               : said("After the last token there is nothing to compare with."));
    const TokenLoss& t = *found;
    fact(c.ui, said("Target"), token_text(answer->source.model, t.target), nullptr,
         {masked ? said("the token that stood there") : said("the token that follows in the text")});
    fact(c.ui, "p, −ln p", fmt::format("{:.4f}, {:.4f}", t.probability, t.loss), nullptr,
         {fmt::format("softmax(logits[{}])[{}]", t.position, t.target)});
    fact(c.ui, said("Rank"), std::to_string(t.rank), nullptr, {said("among the whole vocabulary, 1 = most probable")});
    fact(c.ui, said("Most probable"),
         fmt::format("{} {:.1f} %", token_text(answer->source.model, t.best), 100 * t.best_probability), nullptr,
         {said("of the same row of logits")});
  }

 private:
  using Reading = ReadingJob<LossReport>::Reading;

  void predictions(const PageContext& c, const Reading& answer) {
    section(c.ui, said("ONE PASS, ALL PREDICTIONS"), say("{} at once", answer.result.tokens.size()));
    const auto checked = check_.answer();
    if (!checked) return;
    if (!checked->result.check) return note(c.ui, say("Not checked: {}", checked->result.refused));
    const PrefixCheck& found = *checked->result.check;
    const bool same = found.largest <= 1e-4 * found.magnitude;
    fact(c.ui, said("Beginnings run alone"), std::to_string(found.prefixes.size()), nullptr,
         {said("each a pass of its own over the first tokens")});
    fact(c.ui, said("Largest difference"), found.largest > 0 ? short_number(found.largest, 2) : said("0, bit for bit"),
         nullptr, {said("max |logit alone − logit in the one pass|"), say("of logits up to {:.2f}", found.magnitude)});
    note(c.ui, same ? said("The same to rounding: no position looks ahead, so one pass over the text trains on all of "
                           "its tokens at once.")
                    : said("Not the same: with these edits some position looks ahead. Its loss is no prediction."));
  }

  static constexpr const char* titles[] = {
      to_say("position"),    to_say("target"),           "p", "−ln p", to_say("rank"), to_say("most probable"),
      to_say("mean so far"), to_say("perplexity so far")};
  static std::vector<std::string> cells(const Reading& answer, const TokenLoss& t) {
    return {std::to_string(t.position),
            token_text(answer.source.model, t.target),
            fmt::format("{:.4f}", t.probability),
            fmt::format("{:.3f}", t.loss),
            std::to_string(t.rank),
            fmt::format("{} {:.3f}", token_text(answer.source.model, t.best), t.best_probability),
            fmt::format("{:.3f}", t.running_mean),
            fmt::format("{:.2f}", std::exp(t.running_mean))};
  }

  void table(const PageContext& c, const std::shared_ptr<const Reading>& kept, Index pinned) {
    const Reading& answer = *kept;
    c.ui.pictures.add_table("losses table", said("loss of each token, as a table"), [kept] {
      Table out{said("loss of each token"), {std::begin(titles), std::end(titles)}, {}};
      for (const TokenLoss& t : kept->result.tokens) out.rows.push_back(cells(*kept, t));
      return out;
    });
    const UseFont font(c.ui, c.ui.number());
    if (!ImGui::BeginTable("losses in numbers", static_cast<int>(std::size(titles)),
                           ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp |
                               ImGuiTableFlags_NoSavedSettings,
                           {0, std::max(ImGui::GetContentRegionAvail().y, c.ui.px(120))}))
      return;
    ImGui::TableSetupScrollFreeze(0, 1);
    for (const char* title : titles) ImGui::TableSetupColumn(said(title));
    ImGui::TableHeadersRow();
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(answer.result.tokens.size()));
    while (clipper.Step())
      for (int line = clipper.DisplayStart; line < clipper.DisplayEnd; ++line) {
        const TokenLoss& t = nth(answer.result.tokens, line);
        ImGui::TableNextRow();
        if (t.position == pinned)
          ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, col(with_opacity(c.ui.theme.accent, 0.25)));
        for (const std::string& text : cells(answer, t)) {
          ImGui::TableNextColumn();
          text_line(c.ui, text);
        }
      }
    ImGui::EndTable();
  }

  ReadingJob<LossReport> job_{*this, "read.loss"};
  ReadingJob<Checked> check_{*this, "read.prefixes", to_say("running the beginnings")};
  ReadingSlot bars_{*this, "scene.losses"};
};

}  // namespace

std::unique_ptr<Page> make_token_loss(JobRunner&) {
  return std::make_unique<TokenLossPage>();
}

}  // namespace headscope
