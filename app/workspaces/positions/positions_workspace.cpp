#include "app/workspaces/positions/positions_workspace.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/render/head_report.h"
#include "app/state/model_list.h"
#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/no_run.h"
#include "core/attention/positions/position_methods.h"
#include "core/base/words.h"
#include "core/metrics/next_token.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

bool relative(std::string_view method) {
  return method == "shaw" || method == "transformer-xl" || method == "deberta" || method == "t5";
}

/// The method that a model uses by itself; empty: none of these.
std::string_view own_method(const ModelConfig& config) {
  const PositionKind kind = config.position;
  return config.distances                ? "deberta"
         : config.sinusoids              ? "sinusoidal"
         : kind == PositionKind::rotary  ? "rope"
         : kind == PositionKind::learned ? "learned"
         : kind == PositionKind::alibi   ? "alibi"
         : kind == PositionKind::buckets ? "t5"
         : config.has_buckets()          ? ""
                                         : "none";
}

/// What is shown as long as nobody has chosen: rotations, or the distances that the model's own scores know.
std::string_view opening_method(const ModelConfig& config) {
  const std::string_view own = own_method(config);
  return own == "deberta" || own == "alibi" || own == "t5" ? own : "rope";
}

/// A choice with a title and a line below it. True when it was clicked.
bool card(const Ui& ui, const char* id, std::string_view title, const std::string& summary, bool chosen) {
  const float width = ImGui::GetContentRegionAvail().x, pad = ui.px(10);
  const std::vector<std::string> lines =
      wrapped(summary, ui.small(), static_cast<double>((width - 2 * pad) / ui.scale), ui.fonts);
  const float title_height = ui.px(ui.body().size + 5), line = ui.px(ui.small().size + 4);
  const float height = 2 * ui.px(7) + title_height + line * static_cast<float>(lines.size());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool clicked = pressable(id, {width, height});
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const Color fill = chosen ? ui.chrome.selected : hovered ? ui.chrome.hovered : ui.chrome.raised;
  draw.AddRectFilled(at, {at.x + width, at.y + height}, col(fill), ui.px(5));
  draw.AddRect(at, {at.x + width, at.y + height}, col(chosen ? ui.theme.accent : ui.chrome.border), ui.px(5));
  draw_text(ui, draw, {{0, 0}, std::string(said_view(title)), ui.body(), ui.theme.text, Anchor::start, 0},
            {at.x + pad, at.y + ui.px(7) + ui.px(ui.body().size)});
  float y = at.y + ui.px(7) + title_height;
  for (const std::string& each : lines) {
    draw_text(ui, draw, {{0, 0}, each, ui.small(), ui.theme.muted, Anchor::start, 0},
              {at.x + pad, y + ui.px(ui.small().size)});
    y += line;
  }
  return clicked;
}

std::string model_name(const Results& results) {
  return model_label(results.model_folder);
}

}  // namespace

bool PositionsWorkspace::ready() const {
  const Results& results = controller_.results();
  return results.run && results.model.model && (controller_.vectors() || !needs_vectors(controller_.view.method));
}

bool PositionsWorkspace::lacks_pairs() const {
  const auto& vectors = controller_.vectors();
  return controller_.view.method == "rope" && vectors && vectors->q.dim(1) % 2 != 0;
}

bool PositionsWorkspace::lacks_head(const PageContext& c) const {
  return needs_vectors(controller_.view.method) && controller_.view.source == PositionsView::Source::head &&
         holds_state(c.results(), c.state().document.selected.layer);
}

std::vector<CatalogueGroup> PositionsWorkspace::pages() const {
  CatalogueGroup group{to_say("Position method"), {}};
  for (const PositionMethod& each : position_methods())
    group.entries.push_back({std::string(each.id), std::string(each.title),
                             fmt::format("{} · {} {}", each.summary, each.source, each.words)});
  return {group};
}

void PositionsWorkspace::follow(const PageContext& c) {
  const auto asked = c.app.settings.pages.find(id());
  if (asked != c.app.settings.pages.end() && find_position_method(asked->second))
    controller_.view.method = asked->second;
  else if (const auto& model = controller_.results().model.model)
    controller_.view.method = opening_method(model->config());
  if (!holds_state(controller_.results())) controller_.update();
}

void PositionsWorkspace::left(const PageContext& c) {
  follow(c);
  if (holds_state(controller_.results())) return;  // nothing that could be chosen
  cards(c.ui, c.app);
  source(c);
}

void PositionsWorkspace::cards(Ui& ui, AppContext& app) {
  section(ui, said("POSITION METHOD"));
  const auto& model = controller_.results().model.model;
  const std::string_view own = model ? own_method(model->config()) : "";
  const std::string& chosen = controller_.view.method;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {ui.px(8), ui.px(6)});
  for (const PositionMethod& each : position_methods()) {
    const bool used = each.id == own;
    const std::string id = "position " + std::string(each.id);
    if (card(ui, id.c_str(), each.title,
             used ? fmt::format("{} · {}", said_view(each.summary), said("this model"))
                  : std::string(said_view(each.summary)),
             chosen == each.id))
      app.settings.pages[Workspace::id()] = controller_.view.method = std::string(each.id);
    if (ImGui::IsItemHovered())
      tooltip(ui, {std::string(said_view(each.title)), std::string(said_view(each.formula)),
                   say("acts on: {}", said_view(each.acts_on)), std::string(said_view(each.source))});
  }
  ImGui::PopStyleVar();
}

void PositionsWorkspace::source(const PageContext& c) {
  using Source = PositionsView::Source;
  const bool vectors =
      controller_.view.method == "rope" || relative(controller_.view.method) || controller_.view.method == "alibi";
  section(c.ui, said("SOURCE OF Q AND K"), vectors ? "" : said("for the methods that act on scores"));
  const HeadId head = c.state().document.selected;
  const std::string own = head_title(head);
  const char* labels[] = {own.c_str(), to_say("Random"), to_say("Typed")};
  int chosen = static_cast<int>(controller_.view.source);
  if (segmented(c.ui, "source of q and k", labels, chosen)) controller_.view.source = static_cast<Source>(chosen);
  if (controller_.view.source == Source::random) {
    int seed = static_cast<int>(controller_.view.seed);
    ImGui::AlignTextToFramePadding();
    text_line(c.ui, said("Seed"));
    ImGui::SameLine(c.ui.px(60));
    ImGui::SetNextItemWidth(c.ui.px(120));
    if (ImGui::InputInt("##position seed", &seed))
      controller_.view.seed = static_cast<std::uint64_t>(std::max(seed, 0));
  } else if (controller_.view.source == Source::typed) {
    const auto line = [&](const char* label, const char* id, std::string& text) {
      ImGui::AlignTextToFramePadding();
      ImGui::TextUnformatted(label);
      ImGui::SameLine(c.ui.px(40));
      ImGui::SetNextItemWidth(-1);
      input_line(c.ui, id, "1 0 1 0", text);
    };
    line("q", "##typed query", controller_.view.typed_query);
    line("k", "##typed key", controller_.view.typed_key);
  }
  if (vectors && controller_.vectors() && ready() && !lacks_head(c)) {
    const UseFont font(c.ui, c.ui.small());
    paragraph(c.ui, said(controller_.vectors()->source), c.ui.theme.muted);
  }
  if (controller_.view.source == Source::head && c.trace()) atlas_.draw(c);
}

void PositionsWorkspace::model_note(const PageContext& c) {
  Ui& ui = c.ui;
  const Results& results = controller_.results();
  if (!results.model.model) return;
  const PositionKind own = results.model.model->config().position;
  const std::string& method = controller_.view.method;
  const char* example = nullptr;
  std::string note;
  if (results.model.model->config().distances) {  // of which the notes below say nothing true
    if (method == "rope")
      note =
          say("{} does not turn its queries and keys: its distances have vectors, Relative (DeBERTa). The dials turn "
              "them as RoPE would. For a model that was trained with RoPE:",
              model_name(results));
    if (method == "rope") example = "tiny-llama";
  } else if ((method == "rope" || method == "chunks") && own == PositionKind::none) {
    note =
        say("{} adds no positions and does not turn its queries and keys. For a model with RoPE:", model_name(results));
    example = "tiny-llama";
  } else if (method == "learned" && own == PositionKind::none) {
    note = say("{} adds no positions and has no table of them. For a model with one:", model_name(results));
    example = "tiny-gpt2";
  } else if (method == "chunks" && own != PositionKind::rotary) {
    note = say("{} adds learned positions, of whose distances nothing is known. For a model with RoPE:",
               model_name(results));
    example = "tiny-llama";
  } else if (method == "rope" && own != PositionKind::rotary) {
    note =
        say("{} adds learned positions to its embeddings. The dials turn its q and k as RoPE would; in the "
            "model, RoPE then takes the place of what it learnt. For a model that was trained with RoPE:",
            model_name(results));
    example = "tiny-llama";
  } else if (method == "learned" && own != PositionKind::learned) {
    note =
        say("{} turns its queries and keys and has no table of positions. For a model with one:", model_name(results));
    example = "tiny-gpt2";
  }
  if (note.empty()) return;
  const UseFont font(ui, ui.small());
  paragraph(ui, note, ui.theme.muted);
  if (button(ui, say("Open {}", example).c_str(), ui.px(26))) c.app.explorer.files.open_example(example);
}

SceneTouch PositionsWorkspace::show(const PageContext& c, SceneSlot& slot, const char* id,
                                    std::shared_ptr<const void> source, const std::string& options, double width,
                                    double height, SceneSlot::Build build) {
  slot.want(c.jobs, c.ui, std::move(source), fmt::format("{} {} {} {}", id, options, width, height), std::move(build));
  SceneViewOptions how;
  how.fit_height = true;
  return slot.draw(c.ui, id, how, width, height);
}

SceneTouch PositionsWorkspace::show(const PageContext& c, SceneSlot& slot, const char* id, Room room) {
  slot.want(c.jobs, c.ui, id, positions_picture(controller_, id), room);
  SceneViewOptions how;
  how.fit_height = true;
  return slot.draw(c.ui, id, how, room.width, room.height);
}

void PositionsWorkspace::middle(const PageContext& c) {
  follow(c);
  if (!c.trace()) return no_run(c, said("Its positions appear at once."));
  if (c.captured())
    return empty_state(
        c.ui, said("This page reads a model"),
        said("What is open is attention that was captured elsewhere: weights, without the model behind them."));
  if (holds_state(c.results()))
    return empty_state(
        c.ui, said("This model has no positions"),
        said(
            "Its state takes tokens in one after another, and so knows their order: there are no queries and keys that "
            "a rotation or a bias could change. tiny-gpt2 and tiny-llama have both kinds."));
  if (lacks_head(c))
    return no_attention(c, say("Layer {} has no positions", c.state().document.selected.layer),
                        said("Its state takes tokens in one after another, and so knows their order. Choose a head of "
                             "a layer that attends."));
  if (const char* const why = controller_.refusal(); why && needs_vectors(controller_.view.method))
    return empty_state(c.ui, said("Its scores are not told by distances alone"),
                       say("Beside them: {}. Choose another head, or Random or Typed on the left.", said(why)));
  if (!ready()) return empty_state(c.ui, said("Reading queries and keys …"), "");
  if (lacks_pairs())
    return empty_state(c.ui, say("A head of {} numbers has no pairs to turn", controller_.vectors()->q.dim(1)),
                       said("RoPE turns numbers two by two. Choose another method, or a model whose heads are of an "
                            "even width."));
  const std::string& method = controller_.view.method;
  if (method == "rope") return rope_middle(c);
  if (method == "none") return none_middle(c);
  if (method == "learned") return learned_middle(c);
  if (method == "sinusoidal") return sinusoidal_middle(c);
  if (method == "binary") return binary_middle(c);
  if (method == "shaw") return shaw_middle(c);
  if (method == "transformer-xl") return transformer_xl_middle(c);
  if (method == "deberta") return deberta_middle(c);
  if (method == "t5") return t5_middle(c);
  if (method == "chunks") return chunks_middle(c);
  if (method == "past") return past_middle(c);
  if (method == "naive") return naive_middle(c);
  alibi_middle(c);
}

void PositionsWorkspace::right(const PageContext& c) {
  if (holds_state(controller_.results()) || lacks_head(c)) return;
  if (controller_.refusal() && needs_vectors(controller_.view.method)) return;
  if (!ready())
    return empty_state(c.ui, said("Nothing to measure yet"), said("Scores, base and loss will stand here."));
  if (lacks_pairs()) return model_note(c);
  if (controller_.view.method == "rope")
    rope_right(c);
  else
    page_controls(c);
  in_the_model(c);
  model_note(c);
}

void PositionsWorkspace::in_the_model(const PageContext& c) {
  const Ui& ui = c.ui;
  const auto run = c.results().run;
  section(ui, said("IN THE MODEL"), say("{}, on this text", model_name(c.results())));
  const std::shared_ptr<const TextLosses> losses = c.results().current_losses();
  const double before = losses ? mean_loss(losses->now) : std::nan("");
  fact(
      ui, said("Loss as it is"), losses ? nats(before) : "…", nullptr,
      {said(prediction_words(run->trace->model.objective).loss), said("the run on screen, with the document's edits")});
  const auto wanted = controller_.edit();
  const auto& effect = controller_.effect();
  const bool current = wanted && effect && effect->words == text_of(*wanted) && effect->of == run->trace;
  if (wanted) {
    const double after = current ? mean_loss(effect->after) : std::nan("");
    const Color worse = ui.theme.key, better = ui.theme.value;
    const std::string words = text_of(*wanted).substr(std::string("position ").size());
    fact(ui, "… " + elided(words, ui.body(), 150, ui.fonts), current ? nats(after) : "…",
         current ? (after > before + 5e-4   ? &worse
                    : after < before - 5e-4 ? &better
                                            : nullptr)
                 : nullptr,
         {"*: " + text_of(*wanted), said("the same text, run with this edit in every layer")});
    fact(ui, said("Change of the answer (KL)"),
         !current                 ? "…"
         : std::isnan(effect->kl) ? "–"
                                  : say("{:.4f} nats", effect->kl),
         nullptr,
         {said("KL(as it is ‖ changed) where the model answers"), said("Σ p ln(p / q) over the full vocabulary")});
  }
  const double width = std::floor(c.room());
  const bool stretches = controller_.view.method == "rope" || controller_.view.method == "chunks";
  const bool past = controller_.view.past_context && stretches;
  if (past) {
    const auto long_run = controller_.long_run();
    if (!long_run) {
      const UseFont font(ui, ui.small());
      ImGui::TextDisabled("%s", said("reading long texts …"));
    } else if (!long_run->refusal.empty()) {
      const UseFont font(ui, ui.small());
      paragraph(ui, long_run->refusal.text(), ui.theme.text);
    } else {
      const std::string chosen =
          controller_.view.method == "chunks" ? "chunks" : std::string(info(controller_.view.scaling).title);
      show(c, loss_, "positions loss", long_run, chosen, width, 190, [long_run, width, chosen](const Style& style) {
        LineChart chart;
        chart.width = width;
        chart.height = 190;
        chart.y_title = said("loss by position, nats");
        chart.grid = true;
        chart.marks = {{static_cast<double>(long_run->context), said("trained")}};
        for (const bool front : {false, true})
          for (std::size_t i = 0; i < long_run->lines.size(); ++i) {
            const auto& line = long_run->lines[i];
            if ((line.title == chosen) != front) continue;
            const double t =
                static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(long_run->lines.size() - 1, 1));
            ChartSeries series{
                said(line.title),
                front ? style.theme.accent : with_opacity(mix(style.theme.value, style.theme.key, t), 0.75),
                {},
                line.loss,
                front ? 2.25 : 1.1};
            for (std::size_t b = 0; b < line.loss.size(); ++b)
              series.x.push_back((static_cast<double>(b) + 0.5) * long_run->bin);
            chart.series.push_back(std::move(series));
          }
        return line_chart_scene(chart, style);
      });
      if (ImGui::IsItemHovered())
        tooltip(ui, {say("mean loss of {} positions at a time", long_run->bin), long_run->source.text(),
                     said("one line for each way of stretching RoPE, factor as set above")});
    }
  } else if (losses && losses->now.size() > 1) {
    const std::vector<double> after = current ? effect->after : std::vector<double>();
    // The effect is named, since it may come before or after the losses.
    const std::string with = current ? effect->words : "";
    show(c, loss_, "positions loss", losses, with, width, 120, [losses, after, width](const Style& style) {
      LineChart chart;
      chart.width = width;
      chart.height = 120;
      chart.y_title = said("loss per token, nats");
      chart.x_title = said("position");
      chart.grid = true;
      chart.y_low = 0;
      const auto series = [&](const std::vector<double>& y, Color color, double line) {
        return ChartSeries{"", color, target_positions(*losses->trace), y, line};
      };
      chart.series = {series(losses->now, style.theme.muted, 1.25)};
      if (!after.empty()) chart.series.push_back(series(after, style.theme.accent, 1.75));
      return line_chart_scene(chart, style);
    });
  }
  if (stretches) {
    check_box(ui, to_say("texts past the trained length"), controller_.view.past_context);
    if (ImGui::IsItemHovered())
      tooltip(ui, {said("Loss by position of texts four times as long as any in training"),
                   said("once for every way of stretching RoPE")});
  }
  ImGui::BeginDisabled(!wanted);
  if (button(ui, to_say("Keep among the edits"), ui.px(28))) controller_.keep();
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    tooltip(ui, {wanted ? "*: " + text_of(*wanted) : said("The page shows what the model does anyway"),
                 said("every workspace then shows the model so; Ctrl+Z takes it back")});
}

}  // namespace headscope
