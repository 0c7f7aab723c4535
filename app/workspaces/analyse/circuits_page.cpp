// What a head would do for any pair of tokens, read off its weights.

#include "core/analysis/circuits.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/no_run.h"
#include "core/base/words.h"
#include "core/trace/mixer_words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double at_once = 2e10;  // multiplications that need not be asked for

struct HeadCircuits {
  HeadId head;
  TokenCircuits tokens;
  CopyingScore score;
};

class CircuitsPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    if (unasked(c)) {
      const int layer = chosen_head(c, *c.trace()).layer;
      return no_attention(c, say("Layer {} has no circuits", layer),
                          say("It is {}, which has no W_QK and no W_OV. Choose a head of a layer that attends.",
                              said(mixer_words(c.trace()->model.dims, layer))));
    }
    keep_up(c);
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    static constexpr const char* labels[] = {to_say("OV: what it writes"), to_say("QK: where it looks")};
    segmented(c.ui, "circuit", labels, circuit_);
    ImGui::SameLine(0, c.ui.px(12));
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(
        vec(c.ui.theme.muted), "%s",
        say("layer {} head {}, the tokens of the text", answer->result.head.layer, answer->result.head.head).c_str());
    ImGui::Dummy({0, c.ui.px(4)});
    matrix(c, answer);
    list(c, answer);
  }

  void controls(ControlsRecord& r) override {
    r.choice("circuit", circuit_, 1);
    r.field("distance", distance_, 0, 64);
  }
  void right(const PageContext& c) override {
    const auto& answer = job_.answer();
    if (unasked(c)) return selected_head(c);
    if (!answer) return;
    const auto name = token_names(answer->source.model);
    section(c.ui, said("SCORES"), said("of the whole vocabulary"));
    fact(c.ui, said("Copying"), signed_words(answer->result.score.copying), nullptr,
         {said("Σ Re λ ÷ Σ |λ| over the eigenvalues of the OV circuit"),
          said("+1: what it looks at becomes more likely; −1: less"), said("from W_E, W_V, W_O, W_U of the model, F32"),
          "Elhage et al. 2021"});
    fact(
        c.ui, said("Matching"), signed_words(answer->result.score.matching), nullptr,
        {said("Σ Re λ ÷ Σ |λ| over the eigenvalues of the QK circuit"),
         said("+1: tokens look at tokens like themselves"), said("from W_E, W_Q, W_K of the model, F32; no position")});
    if (answer->source.model.model->config().position == PositionKind::rotary) {
      section(c.ui, said("DISTANCE"), said("from key to query: rotary positions turn the QK circuit"));
      double d = distance_;
      const int most = std::min(64, answer->source.model.model->config().context - 1);
      if (slider(c.ui, to_say("Tokens"), d, {0, static_cast<double>(most), 0, false, "", 0}))
        distance_ = static_cast<int>(std::lround(d));
    }
    if (const std::string remark = circuit_note(answer->source.model.model->config()); !remark.empty())
      note(c.ui, remark);
    whole_vocabulary(c, name);
    selected_head(c);
  }

 private:
  /// The chosen head has none.
  static bool unasked(const PageContext& c) {
    return c.trace() && holds_state(c.results(), chosen_head(c, *c.trace()).layer);
  }

  using Reading = ReadingJob<HeadCircuits>::Reading;
  using FullReading = ReadingJob<FullCircuits>::Reading;

  void keep_up(const PageContext& c) {
    if (!c.trace() || !c.results().model.model) return;
    const HeadId head = chosen_head(c, *c.trace());
    const CircuitOf of{head, std::min(distance_, c.results().model.model->config().context - 1)};
    const std::string key = fmt::format("{} {}", to_string(of.head), of.distance);
    job_.want(c, {}, key, [of, head](const ReadingSource& source, const Ctx& ctx) {
      return HeadCircuits{head, token_circuits(*source.model.model, ctx.backend, of, source.trace->ids(), 8),
                          copying_score(*source.model.model, ctx.backend, of.head)};
    });
    const auto& model = c.results().model.model;
    const ModelDims& dims = model->config().dims;
    large_ = 4.0 * dims.vocab * dims.vocab * dims.widths_of(of.head.layer).d_head > at_once;
    if (asked_model_.lock() != model) asked_.clear();  // what was asked of another model was not asked of this one
    asked_model_ = model;
    full_key_ = key;
    if (!large_ || asked_ == key)
      full_.want_of_weights(c, key, [of](const ReadingSource& source, const Ctx& ctx) {
        return full_circuits(*source.model.model, ctx, of, 24);
      });
  }

  void matrix(const PageContext& c, const std::shared_ptr<const Reading>& answer) {
    const double width = std::floor(c.room()), height = std::clamp(room_below(c) * 0.62, 200.0, 640.0);
    const auto shown = static_cast<Circuit>(circuit_);
    slot_.want(c.jobs, c.ui, answer, fmt::format("{} {} {}", circuit_, width, height),
               [answer, shown, width, height](const Style& style) {
                 Matrix m = circuit_matrix(answer->result.tokens, shown, token_names(answer->source.model));
                 m.width = width, m.height = height;
                 return matrix_scene(m, style);
               });
    const SceneTouch touch = wide_scene(c, slot_, "circuit");
    const TokenCircuits& found = answer->result.tokens;
    const auto cell = matrix_cell(touch);
    if (!cell || cell->row >= static_cast<Index>(found.tokens.size()) ||
        cell->column >= static_cast<Index>(found.tokens.size()))
      return;
    const auto name = [&](Index i) { return token_text(answer->source.model, nth(found.tokens, i)); };
    const HeadId head = answer->result.head;
    if (shown == Circuit::ov)
      tooltip(c.ui, {say("looking at {} → {}: {}", name(cell->row), name(cell->column),
                         signed_words(static_cast<double>(found.ov.at(cell->row, cell->column)))),
                     said("e W_V W_O · u, e = ln1(W_E[token]), u = W_U column, gain folded in,"),
                     said("less the mean over the vocabulary; per unit of the final norm's scale"),
                     say("weights of layer {} head {}, F32", head.layer, head.head)});
    else
      tooltip(c.ui, {say("{} looks at {}: {}", name(cell->row), name(cell->column),
                         signed_words(static_cast<double>(found.qk.at(cell->row, cell->column)))),
                     said("scale · (e_q W_Q + b) R (e_k W_K + b)ᵀ, e = ln1(W_E[token]), no learned position"),
                     say("weights of layer {} head {}, {} tokens apart, F32", head.layer, head.head, distance_)});
  }

  /// What looking at token `i` of the text makes more likely, strongest first.
  static std::span<const TokenPair> raised(const Reading& answer, std::size_t i) {
    const auto kept = static_cast<std::size_t>(answer.result.tokens.kept);
    return std::span(answer.result.tokens.raises).subspan(i * kept, kept);
  }

  void list(const PageContext& c, const std::shared_ptr<const Reading>& kept) {
    const Reading& answer = *kept;
    const TokenCircuits& found = answer.result.tokens;
    c.ui.pictures.add_table("raises", said("looking at … makes more likely"), [kept] {
      const TokenCircuits& all = kept->result.tokens;
      Table out{said("looking at … makes more likely"), {to_say("token"), to_say("raises"), to_say("logit")}, {}};
      for (std::size_t i = 0; i < all.raises.size(); ++i)
        out.rows.push_back({token_text(kept->source.model, all.tokens[i / static_cast<std::size_t>(all.kept)]),
                            token_text(kept->source.model, all.raises[i].to), number_cell(all.raises[i].value)});
      return out;
    });
    // As many whole columns as there is room for; a row's tooltip has all of them.
    constexpr double first = 96, column = 128, gap = 12;
    const double room = c.room() - first - 2 * gap;
    const int columns = std::clamp(static_cast<int>(room / column), 1, found.kept);
    section(c.ui, said("LOOKING AT … MAKES MORE LIKELY"),
            columns < found.kept ? say("of the whole vocabulary, the {} strongest; point for more", columns)
                                 : say("of the whole vocabulary, the {} strongest", columns));
    const UseFont font(c.ui, c.ui.number());
    if (!ImGui::BeginTable("raises", columns + 1,
                           ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg |
                               ImGuiTableFlags_NoSavedSettings,
                           {0, std::max(ImGui::GetContentRegionAvail().y, c.ui.px(90))}))
      return;
    const float pad = 2 * ImGui::GetStyle().CellPadding.x;
    ImGui::TableSetupColumn(said("token"), ImGuiTableColumnFlags_WidthFixed, c.ui.px(first) - pad);
    for (int k = 0; k < columns; ++k)
      ImGui::TableSetupColumn(said("raises"), ImGuiTableColumnFlags_WidthFixed, c.ui.px(column) - pad);
    const double value_width = c.ui.fonts.width("+00.00 ", c.ui.number());
    const auto cell = [&](const TokenPair& pair) {
      return fmt::format("{:+.2f} {}", pair.value,
                         elided(token_text(answer.source.model, pair.to), c.ui.number(),
                                column - static_cast<double>(pad / c.ui.scale) - value_width, c.ui.fonts));
    };
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(found.tokens.size()));
    while (clipper.Step())
      for (int line = clipper.DisplayStart; line < clipper.DisplayEnd; ++line) {
        const auto i = static_cast<std::size_t>(line);
        const std::span<const TokenPair> pairs = raised(answer, i);
        const std::string token = token_text(answer.source.model, found.tokens[i]);
        const bool itself = pairs.front().to == found.tokens[i];
        ImGui::TableNextRow();
        bool pointed = false;
        ImGui::TableNextColumn();
        text_line(c.ui, elided(token, c.ui.number(), first - static_cast<double>(pad / c.ui.scale), c.ui.fonts));
        pointed |= ImGui::IsItemHovered();
        for (const TokenPair& pair : pairs.first(static_cast<std::size_t>(columns))) {
          ImGui::TableNextColumn();
          text_line(c.ui, cell(pair), pair.to == found.tokens[i] ? c.ui.theme.accent : c.ui.theme.muted);
          c.ui.name(fmt::format("raised {} {}", line, &pair - pairs.data()), ImGui::GetItemRectMin(),
                    ImGui::GetItemRectMax());
          pointed |= ImGui::IsItemHovered();
        }
        if (!pointed) continue;
        std::vector<std::string> lines{say("looking at {} makes more likely", token)};
        for (const TokenPair& pair : pairs)
          lines.push_back(fmt::format("{:+.2f} {}", pair.value, token_text(answer.source.model, pair.to)));
        if (itself) lines.push_back(said("copies: the token raises itself most"));
        tooltip(c.ui, lines);
      }
    ImGui::EndTable();
    c.ui.name("raised", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  }

  void whole_vocabulary(const PageContext& c, const TokenName& name) {
    section(c.ui, said("WHOLE VOCABULARY"), said("strongest pairs"));
    const auto& full = full_.answer();
    if (large_ && asked_ != full_key_ && button(c.ui, to_say("Search the whole vocabulary"))) asked_ = full_key_;
    if (!full || full->options != full_key_ || full->source.model.model != c.results().model.model) {
      if (c.jobs.was_stopped(full_.tag())) return note(c.ui, said("Stopped. F5 takes it up again."));
      return note(c.ui, large_ ? said("All pairs of tokens: this takes a while.") : "…");
    }
    const FullCircuits& found = full->result;
    fact(c.ui, said("Tokens that raise themselves"), fmt::format("{:.1f} %", 100 * found.copies_first), nullptr,
         {said("Share of the vocabulary whose own logit is the one that looking at them raises most"),
          say("among the ten: {:.1f} %", 100 * found.copies_ten)});
    fact(c.ui, said("Tokens that seek themselves"), fmt::format("{:.1f} %", 100 * found.matches_first), nullptr,
         {said("Share of the vocabulary whose best key is the same token")});
    const auto& pairs = circuit_ == 0 ? found.ov : found.qk;
    c.ui.pictures.add_table(
        "vocabulary pairs", said("strongest pairs of the whole vocabulary"), [full, ov = circuit_ == 0] {
          Table out{
              said("strongest pairs of the whole vocabulary"), {to_say("from"), to_say("to"), to_say("value")}, {}};
          for (const TokenPair& pair : ov ? full->result.ov : full->result.qk)
            out.rows.push_back({token_text(full->source.model, pair.from), token_text(full->source.model, pair.to),
                                number_cell(pair.value)});
          return out;
        });
    // Both tokens of a pair are shown: in what a short bar and its number leave, the longer one cut first.
    const Font font = c.ui.token();
    const double half = std::max(
        30.0, (c.room() - 72 - 20 - c.ui.fonts.width(" → ", font) - c.ui.fonts.width("00.00", c.ui.number())) / 2);
    const auto fitted = [&](const TokenPair& pair) {
      const std::string from = name(pair.from), to = name(pair.to);
      const double a = c.ui.fonts.width(from, font), b = c.ui.fonts.width(to, font);
      return fmt::format("{} → {}", elided(from, font, std::max(half, 2 * half - b), c.ui.fonts),
                         elided(to, font, std::max(half, 2 * half - a), c.ui.fonts));
    };
    std::vector<Bar> bars;
    for (std::size_t i = 0; i < std::min<std::size_t>(pairs.size(), 10); ++i)
      bars.push_back({fitted(pairs[i]), static_cast<double>(pairs[i].value / std::max(1e-9f, pairs[0].value)), -1,
                      fmt::format("{:.2f}", pairs[i].value),
                      fmt::format("{} → {}: {}", name(pairs[i].from), name(pairs[i].to),
                                  circuit_ == 0 ? said("looked at → made more likely") : said("query → key"))});
    bar_list(c.ui, "pairs", bars);
  }

  ReadingJob<HeadCircuits> job_{*this, "read.circuits"};
  ReadingJob<FullCircuits> full_{*this, "read.circuits.full", to_say("searching the whole vocabulary")};
  ReadingSlot slot_{*this, "scene.circuits"};
  int circuit_ = 0, distance_ = 0;
  bool large_ = false;
  std::string full_key_, asked_;
  std::weak_ptr<const Model> asked_model_;
};

}  // namespace

std::unique_ptr<Page> make_circuits(JobRunner&) {
  return std::make_unique<CircuitsPage>();
}

}  // namespace headscope
