// The studies of the Generate workspace: what a cache saves, what if it forgets, how far its own text leads a model.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/render/head_report.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/generate/generate_workspace.h"
#include "core/base/words.h"
#include "core/metrics/metric.h"
#include "core/model/kv_cache.h"
#include "core/tensor/panels.h"
#include "core/trace/layer_kinds.h"
#include "viz/color/color_norm.h"

namespace headscope {

namespace {

constexpr std::size_t smoothing = 12;  // tokens: single losses scatter

Color hue_of(const Ui& ui, CachePolicy policy) {
  switch (policy) {
    case CachePolicy::whole:
      return ui.theme.muted;
    case CachePolicy::window:
      return legible(ui.theme, ui.theme.key);
    case CachePolicy::sinks:
      return legible(ui.theme, ui.theme.accent);
    case CachePolicy::recompute:
      return legible(ui.theme, ui.theme.value);
  }
  return ui.theme.text;
}

double mean_of(const std::vector<double>& values, std::size_t from, std::size_t to) {
  to = std::min(to, values.size());
  if (from >= to) return std::nan("");
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(from),
                         values.begin() + static_cast<std::ptrdiff_t>(to), 0.0) /
         static_cast<double>(to - from);
}

/// "−0.417"
std::string change(double nats) {
  return fmt::format("{}{:.3f}", nats < 0 ? "−" : "+", std::abs(nats));
}

void waiting(const Ui& ui, const GenerationController& controller, const char* what) {
  empty_state(ui, controller.studying() ? said("Measuring …") : said("Waiting"), what);
}

std::vector<double> running_sum(const std::vector<double>& values) {
  std::vector<double> sums(values.size());
  std::partial_sum(values.begin(), values.end(), sums.begin());
  return sums;
}

}  // namespace

void GenerateWorkspace::cost(Ui& ui) {
  const ModelDims& dims = controller_.model().model->config().dims;
  const bool state = !dims.any_attends();
  note(
      ui,
      state
          ? said(
                "To write token t, the model needs its state behind all tokens before it. Kept, it is as large for any "
                "text; computed anew it costs a pass over the whole prefix, at every step.")
      : dims.hybrid()
          ? said("To write token t, the layers that attend need keys and values of all tokens before it, the others "
                 "their state behind these. Kept, keys and values grow with the text, the state does not; computed "
                 "anew they cost a pass over the whole prefix, at every step.")
          : said("To write token t, the model needs keys and values of all tokens before it. Kept in a cache they cost "
                 "memory; computed anew they cost a pass over the whole prefix, at every step."));
  if (!controller_.costs())
    return waiting(ui, controller_,
                   state ? said("Each length is run with the state kept and without, several times.")
                         : said("Each length is run with the cache and without it, several times."));
  ui.pictures.passing = "times that were measured";
  const std::vector<GenerationCost>& costs = *controller_.costs();
  const float half = ImGui::GetContentRegionAvail().y / 2;
  const double height = std::max(static_cast<double>(half / ui.scale) - 52, 110.0);
  section(ui, said("MILLISECONDS PER TOKEN"), said("measured on this machine · by tokens before it"));
  ChartSeries cached{
      state ? said("with the state") : said("with the cache"), legible(ui.theme, ui.theme.accent), {}, {}, 2.25};
  ChartSeries whole{said("recomputed"), legible(ui.theme, ui.theme.key), {}, {}, 2.25};
  ChartSeries cached_sum = cached, whole_sum = whole;
  double cached_total = 0, whole_total = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const double t = costs[i].length;
    for (ChartSeries* line : {&cached, &whole, &cached_sum, &whole_sum}) line->x.push_back(t);
    cached.y.push_back(costs[i].cached_ms);
    whole.y.push_back(costs[i].recomputed_ms);
    const double steps = i == 0 ? t : t - costs[i - 1].length;  // the trapezoid between two measured lengths
    cached_total += steps * (costs[i].cached_ms + costs[i == 0 ? 0 : i - 1].cached_ms) / 2;
    whole_total += steps * (costs[i].recomputed_ms + costs[i == 0 ? 0 : i - 1].recomputed_ms) / 2;
    cached_sum.y.push_back(cached_total);
    whole_sum.y.push_back(whole_total);
  }
  LineChart chart;
  chart.height = height + 16;
  chart.grid = true;
  chart.x_low = 0;
  chart.y_low = 0;
  chart.x_title = said("tokens");
  chart.series = {std::move(whole), std::move(cached)};
  plot(ui, "cost per token", chart);
  section(ui, said("MILLISECONDS FOR THE WHOLE TEXT"), said("summed over the steps · the area under the curves above"));
  chart.series = {std::move(whole_sum), std::move(cached_sum)};
  plot(ui, "cost of the text", chart);
}

void GenerateWorkspace::cost_facts(Ui& ui) {
  const ModelDims& dims = controller_.model().model->config().dims;
  const CachedNumbers state = state_numbers(controller_.model().model->config());
  if (dims.attends())
    section(ui, said("KV CACHE"), said("all that it holds · kB by tokens"));
  else
    section(ui, dims.hybrid() ? said("STATE AND KV CACHE") : said("STATE"),
            said("with what it was given, kept · kB by tokens"));
  for (const LayerKind& kind : layer_kinds(dims))
    if (kind.mixer == Mixer::state_space)
      fact(ui, said("The state, of any length"),
           bytes_text(sizeof(float) * static_cast<std::size_t>(kind.layers) * state.numbers), nullptr,
           {say("layers · ({}) · 4 bytes", said(state.words)), fmt::format("{} · ({}) · 4", kind.layers, state.sum)});
  const std::size_t kept = cache_bytes(dims, 1) - cache_bytes(dims, 0);
  std::vector<std::string> terms,
      of_panels{said("bytes per token, of keys as products read them: layers · key heads · d_head · 4 bytes")};
  for (const LayerKind& kind : layer_kinds(dims)) {
    terms.insert(terms.end(), {say("layers · ({}) · 4 bytes", said(kept_numbers(kind.dims).words)),
                               fmt::format("{} · ({}) · 4", kind.layers, kept_numbers(kind.dims).sum)});
    if (kind.mixer == Mixer::attention)
      of_panels.push_back(fmt::format("{} · {} · {} · 4", kind.layers, kind.dims.kv_heads, kind.dims.d_head));
  }
  of_panels.push_back(say("in panels of {} tokens, of which the last is filled as the text goes on", panels::width()));
  fact(ui, said("Bytes per token"), fmt::format("{}", kept), nullptr, terms);
  const bool packed = !controller_.costs() || controller_.costs()->back().panel_bytes > 0;  // not on a card
  constexpr auto many = static_cast<int>(panels::widest);
  if (const std::size_t once_more = panel_bytes(dims, many) / many; packed && once_more > 0)
    fact(ui, said("Keys once more"), fmt::format("{}", once_more), nullptr, of_panels);
  if (const ModelConfig& config = controller_.model().model->config(); config.latent()) {
    const CachedNumbers needed = needed_numbers(config);
    fact(ui, said("With latents kept instead"),
         fmt::format("{}", sizeof(float) * static_cast<std::size_t>(dims.layers) * needed.numbers), nullptr,
         {say("layers · ({}) · 4 bytes", said(needed.words)), fmt::format("{} · ({}) · 4", dims.layers, needed.sum),
          said("this program keeps keys and values themselves, so that edits of them stay")});
  }
  if (dims.kv_heads != dims.heads && dims.attends() && dims.widths.empty())
    fact(ui, said("With a key head per head"),
         fmt::format("{}", kept / static_cast<std::size_t>(dims.kv_heads) * static_cast<std::size_t>(dims.heads)),
         nullptr, {say("{} query heads share {} key heads (GQA)", dims.heads, dims.kv_heads)});
  if (!controller_.costs()) return;
  const std::vector<GenerationCost>& costs = *controller_.costs();
  std::vector<double> x, y;
  for (const GenerationCost& cost : costs) {
    x.push_back(cost.length);
    y.push_back(static_cast<double>(cost.cache_bytes + cost.panel_bytes) / 1e3);
  }
  LineChart chart;
  chart.height = 126;
  chart.grid = true;
  chart.x_low = chart.y_low = 0;
  chart.x_title = said("tokens");
  chart.series = {{"", legible(ui.theme, ui.theme.value), std::move(x), std::move(y), 2}};
  plot(ui, "cache bytes", std::move(chart));
  section(ui, said("AT THE END OF THE CONTEXT"), say("{} tokens", costs.back().length));
  fact(ui, !dims.any_attends() ? said("A token with the state") : said("A token with the cache"),
       fmt::format("{:.3f} ms", costs.back().cached_ms));
  fact(ui, said("A token recomputed"), fmt::format("{:.3f} ms", costs.back().recomputed_ms));
  fact(ui, said("Saved"), fmt::format("{:.1f} ×", costs.back().recomputed_ms / std::max(costs.back().cached_ms, 1e-9)));
  fact(ui, !dims.any_attends() ? said("Growth with the state") : said("Growth with the cache"),
       fmt::format("{:.2f} ×", costs.back().cached_ms / std::max(costs.front().cached_ms, 1e-9)), nullptr,
       {say("time at {} tokens ÷ time at {}", costs.back().length, costs.front().length)});
  fact(ui, said("Growth recomputed"),
       fmt::format("{:.2f} ×", costs.back().recomputed_ms / std::max(costs.front().recomputed_ms, 1e-9)), nullptr,
       {say("time at {} tokens ÷ time at {}", costs.back().length, costs.front().length)});
  section(ui, said("WHAT TO LOOK FOR"));
  note(
      ui,
      !dims.any_attends()
          ? said("With the state a step reads one token, and costs the same at any length. Recomputing reads t tokens, "
                 "O(t), so the whole text costs a power of t more. This program also keeps what each token gave, to go "
                 "back to it: that grows.")
      : dims.hybrid()
          ? said("With both a step reads one token: its products and the states cost the same at any length, and only "
                 "the rows of scores of the layers that attend grow, O(t). Recomputing reads t tokens, O(t) products "
                 "and O(t²) scores, so the whole text costs a power of t more.")
          : said("With the cache a step reads one token: its products cost the same at any length, and only the row of "
                 "scores grows, O(t). Recomputing reads t tokens, O(t) products and O(t²) scores, so the whole text "
                 "costs a power of t more."));
}

// ---- streaming

namespace {
/// The whole cache's loss within the trained length, behind the first eviction, and past it.
struct LongLoss {
  double within, past;
  bool fails() const { return past > within + 0.05; }  ///< by distances that the model never saw
};
LongLoss long_loss(const GenerationController::StreamingView& view) {
  const auto from = static_cast<std::size_t>(view.settings.window),
             trained = static_cast<std::size_t>(view.model.model->config().context);
  return {mean_of(view.losses[0], from, trained), mean_of(view.losses[0], trained, view.losses[0].size())};
}
}  // namespace

bool GenerateWorkspace::never_evicts() const {
  return !controller_.streams_example() && !controller_.model().model->config().dims.attends();
}

void GenerateWorkspace::streaming(Ui& ui) {
  if (never_evicts() && controller_.model().model->config().dims.any_attends())
    return empty_state(ui, said("Not every layer could evict"),
                       said("Some layers of this model keep a state, which goes on holding what a window of keys and "
                            "values would have let go: no policy of a cache is told by the others alone."));
  if (never_evicts())
    return empty_state(
        ui, said("Nothing has to go"),
        said("A state is as large for a text of any length: what it holds of old tokens fades by itself, as "
             "the page State of Analyse tells. There is no cache that tokens are evicted from."));
  const auto view = controller_.streaming();
  note(ui, said("A stream is longer than the cache may grow, so tokens are evicted: all but the last ones, or all but "
                "these and "
                "a few of the first, on which heads of many models rest as sinks. Rotary positions are counted inside "
                "the cache "
                "(Xiao et al., § 3.2); learned ones were added as tokens were read, and stay those of the text."));
  if (!view) return waiting(ui, controller_, said("A text of many windows is read under each policy."));
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  section(ui, said("LOSS PER TOKEN"),
          say("nats, mean of {} tokens · the line: the cache is full, the first token goes", smoothing));
  LineChart chart;
  double most = 0;
  for (std::size_t p = 0; p < view->losses.size(); ++p) {
    const auto policy = static_cast<CachePolicy>(p);
    ChartSeries line{std::string(said_view(title_of(policy))),
                     hue_of(ui, policy),
                     {},
                     {},
                     policy == CachePolicy::sinks ? 2.5 : 1.75};
    for (std::size_t i = 0; i < view->losses[p].size(); ++i) {
      line.x.push_back(static_cast<double>(i + 1));
      line.y.push_back(mean_of(view->losses[p], i + 1 >= smoothing ? i + 1 - smoothing : 0, i + 1));
      if (i >= smoothing / 2) most = std::max(most, line.y.back());
    }
    chart.series.push_back(std::move(line));
  }
  const double window = view->settings.window;
  chart.marks = {{window, ""}};
  if (const int context = view->model.model->config().context;
      static_cast<int>(view->ids.size()) > context + context / 4)
    chart.marks.push_back({static_cast<double>(context), said("trained length")});
  chart.height = std::max(0.62 * room - 24, 176.0);
  chart.grid = true;
  chart.x_low = 1;
  chart.y_low = 0;
  chart.y_high = std::max(most * 1.08, 0.1);
  chart.x_title = said("token");
  plot(ui, "streaming loss", chart);
  // The whole cache is what nothing is lost against, unless it fails itself where no distance was ever learnt.
  const auto full = static_cast<std::size_t>(view->settings.window);
  const auto least = long_loss(*view).fails() ? static_cast<std::size_t>(CachePolicy::sinks) : 0;
  section(ui, least == 0 ? said("LOST AGAINST THE WHOLE CACHE") : said("LOST AGAINST WINDOW AND SINKS"),
          said("nats, summed from the first eviction on"));
  chart.series.clear();
  chart.marks.clear();
  for (std::size_t p = 1; p < view->losses.size(); ++p) {
    const auto policy = static_cast<CachePolicy>(p);
    ChartSeries line{std::string(said_view(title_of(policy))),
                     hue_of(ui, policy),
                     {},
                     {},
                     policy == CachePolicy::sinks ? 2.5 : 1.75};
    double sum = 0;
    for (std::size_t k = full; k < view->losses[p].size(); ++k) {
      sum += view->losses[p][k] - view->losses[least][k];
      line.x.push_back(static_cast<double>(k + 1));
      line.y.push_back(sum);
    }
    chart.series.push_back(std::move(line));
  }
  chart.height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale) - 10, 106.0);
  chart.y_low = chart.y_high = std::nullopt;
  plot(ui, "streaming lost", std::move(chart));
}

void GenerateWorkspace::streaming_facts(Ui& ui) {
  const std::string open = controller_.model().model->config().name;
  if (open != GenerationController::streaming_example) {
    section(ui, said("MODEL"));
    const char* const models[] = {GenerationController::streaming_example, open.c_str()};
    int which = controller_.streams_example() ? 0 : 1;
    if (segmented(ui, "streaming model", models, which))
      controller_.streamed() =
          which == 0 ? GenerationController::Streamed::example : GenerationController::Streamed::open;
  }
  const auto view = controller_.streaming();
  if (never_evicts()) return;
  StreamingSettings& settings = controller_.streaming_settings();
  const ModelConfig& config = (view ? view->model : controller_.model()).model->config();
  const int context = config.context;
  section(ui, said("CACHE"), said("tokens"));
  double window = settings.window, sinks = settings.sinks;
  if (slider(ui, to_say("Window"), window, {2, static_cast<double>(std::max(context - 1, 3)), 64, false, "", 0}))
    settings.window = static_cast<int>(window);
  settings.sinks = std::clamp(settings.sinks, 1, settings.window - 1);
  if (slider(ui, to_say("Sinks"), sinks,
             {1, static_cast<double>(std::max(2, std::min(16, settings.window - 1))), 4, false, "", 0}))
    settings.sinks = std::clamp(static_cast<int>(sinks), 1, settings.window - 1);
  if (!view) return;
  fact(ui, said("Bytes held"), bytes_text(cache_bytes(config.dims, settings.window)), nullptr,
       cache_terms(config.dims, settings.window, false, 0));
  const auto from = static_cast<std::size_t>(view->settings.window);
  section(ui, said("MEAN LOSS"), said("after the first eviction"));
  for (std::size_t p = 0; p < view->losses.size(); ++p) {
    const auto policy = static_cast<CachePolicy>(p);
    const Color hue = hue_of(ui, policy);
    fact(ui, std::string(said_view(title_of(policy))), nats(mean_of(view->losses[p], from, view->losses[p].size())),
         &hue,
         {std::string(said_view(title_of(policy))),
          say("mean of −ln p over tokens {} to {}", from + 1, view->losses[p].size()),
          said("edits of the document are left out here")});
  }
  section(ui, said("REST ON THE FIRST TOKEN"), said("weight on it"));
  for (std::size_t i = 0; i < std::min<std::size_t>(view->rests.size(), 3); ++i)
    fact(ui, say("Head {}", to_string(view->rests[i].head)),
         say("{:.2f} · chance {:.2f}", view->rests[i].share, view->rests[i].chance), nullptr,
         {std::string(said_view(metric("sink").formula)),
          say("over the first {} tokens", std::min<std::size_t>(view->ids.size(), config.context))});
  section(ui, said("THE SAME BEFORE IT"));
  fact(ui, said("All policies"), nats(mean_of(view->losses[0], 0, from)), nullptr,
       {said("until the window is full nothing is evicted, and all read the same")});
  section(ui, said("TEXT"));
  fact(ui, said("Tokens"),
       say("{} · {:.0f} windows", view->ids.size(), static_cast<double>(view->ids.size()) / view->settings.window));
  if (view->given < view->ids.size())
    fact(ui, said("Of these written by the model"), fmt::format("{}", view->ids.size() - view->given), nullptr,
         {said("drawn by the model itself at temperature 1"), said("with the seed on the left")});
  note(ui, view->source.text() + ".");
  section(ui, said("WHAT THIS SHOWS"));
  const auto lost = [&](CachePolicy policy) {
    const auto p = static_cast<std::size_t>(policy);
    return mean_of(view->losses[p], from, view->losses[p].size()) -
           mean_of(view->losses[0], from, view->losses[0].size());
  };
  const double window_lost = lost(CachePolicy::window), sinks_lost = lost(CachePolicy::sinks),
               kept = window_lost - sinks_lost;
  std::string words;
  const LongLoss whole = long_loss(*view);
  if (!whole.fails())
    words = say("Beside the whole cache the window alone changes the loss by {} nats per token, with {} first tokens "
                "kept by {}.",
                change(window_lost), view->settings.sinks, change(sinks_lost)) +
            " ";
  if (whole.fails())
    words += say("The whole cache itself fails past the trained length, where it meets distances that it never saw: "
                 "{:.2f} nats "
                 "in place of {:.2f}.",
                 whole.past, whole.within) +
             " ";
  if (kept > 0.05)
    words +=
        say("Keeping the first tokens takes {:.3f} off: without them this model reads worse (Xiao et al. 2023).", kept);
  else if (window_lost > 0.05)
    words += said("The sinks do not bring it back: what is lost is what stood farther away than the window reaches.");
  else
    words += say("Keeping the first tokens changes the loss by {}: this model does without them.", change(-kept));
  if (const auto& rests = view->rests; kept > 0.05 && !rests.empty() && !view->rests_anew.empty()) {
    const auto anew = std::ranges::find(view->rests_anew, rests.front().head, &FirstTokenShare::head);
    if (anew->share < 0.5 * rests.front().share)
      words += " " + say("Reading the window anew costs {}: another token stands first there, and head {} gives it "
                         "{:.2f} in place "
                         "of {:.2f}.",
                         nats(mean_of(view->losses.back(), from, view->losses.back().size())), to_string(anew->head),
                         anew->share, rests.front().share);
  }
  note(ui, words);
}

// ---- teacher forcing

void GenerateWorkspace::forcing(Ui& ui) {
  const auto& view = controller_.forcing();
  note(ui, said("The same text twice. Taught, the model reads the true tokens and guesses each next one. On its own, "
                "it reads "
                "what it wrote: the first miss changes all that follows."));
  if (!view) return waiting(ui, controller_, said("The text is read token by token in both ways."));
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  section(ui, said("TOKENS"), said("the text · guessed after the true tokens · written freely"));
  const float gap = ui.px(4), chip = ui.px(22);
  const Color right_hue = legible(ui.theme, ui.theme.value), wrong_hue = legible(ui.theme, ui.theme.key);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(ui.theme.background));
  if (ImGui::BeginChild("forcing tokens", {0, ui.px(std::clamp(0.46 * room, 100.0, 420.0))},
                        ImGuiChildFlags_NavFlattened)) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float left = ui.px(52), end = ImGui::GetContentRegionAvail().x;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    float x = left, y = 0;
    const auto row_names = [&] {
      static constexpr const char* names[] = {to_say("text"), to_say("taught"), to_say("free")};
      for (int row = 0; row < 3; ++row)
        draw_text(ui, draw, {{0, 0}, said(names[row]), ui.small(), ui.theme.muted, Anchor::start, 0},
                  {corner.x, corner.y + y + chip * static_cast<float>(row) + ui.px(15)});
    };
    row_names();
    for (std::size_t i = 0; i < view->target.size(); ++i) {
      const std::string words[] = {controller_.label(view->target[i]), controller_.label(view->guessed[i]),
                                   controller_.label(view->written[i])};
      double widest = 0;
      for (const std::string& each : words) widest = std::max(widest, ui.fonts.width(each, ui.token()));
      const float width = ui.px(widest + 8);
      if (x + width > end && x > left) {
        x = left;
        y += 3 * chip + ui.px(12);
        row_names();
      }
      for (int row = 0; row < 3; ++row) {
        const bool hit = row == 0 || (row == 1 ? view->guessed[i] : view->written[i]) == view->target[i];
        const ImVec2 from{corner.x + x, corner.y + y + chip * static_cast<float>(row)};
        if (row > 0)
          draw.AddRectFilled(from, {from.x + width, from.y + chip - 2},
                             col(mix(ui.theme.background, hit ? right_hue : wrong_hue, hit ? 0.2 : 0.24)), ui.px(3));
        draw_text(ui, draw,
                  {{0, 0},
                   words[row],
                   ui.token(),
                   row == 0 ? ui.theme.text
                   : hit    ? right_hue
                            : wrong_hue,
                   Anchor::middle,
                   0},
                  {from.x + width / 2, from.y + ui.px(15)});
      }
      const ImVec2 from{corner.x + x, corner.y + y};
      ImGui::SetCursorScreenPos(from);
      ImGui::Dummy({width, 3 * chip});
      ui.name(fmt::format("forced {}", i), from, {from.x + width, from.y + 3 * chip});
      if (ImGui::IsItemHovered())
        tooltip(ui, {say("position {}: {}", view->given + i, words[0]),
                     say("taught: {}, −ln p of the text's token {:.3f}", words[1], view->forced_loss[i]),
                     say("free: {}, −ln p of the text's token {:.3f}", words[2], view->free_loss[i])});
      x += width + gap;
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
  section(ui, said("LOSS, SUMMED"), said("nats of the text's own tokens"));
  const std::vector<double> taught = running_sum(view->forced_loss), free = running_sum(view->free_loss);
  LineChart chart;
  chart.series = {{said("free"), wrong_hue, {}, free, 2.25}, {said("taught"), right_hue, {}, taught, 2.25}};
  for (ChartSeries& line : chart.series)
    for (std::size_t i = 0; i < line.y.size(); ++i) line.x.push_back(static_cast<double>(view->given + i));
  chart.grid = true;
  chart.y_low = 0;
  chart.x_title = said("position");
  chart.height = std::max(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale) - 10, 126.0);
  plot(ui, "forcing loss", std::move(chart));
}

void GenerateWorkspace::forcing_facts(Ui& ui) {
  section(ui, said("GIVEN"), said("tokens of the prompt to begin with"));
  double given = controller_.forcing_given();
  const double most = std::max(2.0, static_cast<double>(controller_.prompt()->whole->tokens.size()) - 1);
  if (slider(ui, to_say("Given"), given, {1, most, std::max(1.0, std::floor(most / 3)), false, "", 0}))
    controller_.forcing_given() = static_cast<int>(given);
  const auto& view = controller_.forcing();
  if (!view) return;
  const auto agree = [&](const std::vector<std::int32_t>& guesses) {
    std::size_t hits = 0;
    for (std::size_t i = 0; i < guesses.size(); ++i) hits += guesses[i] == view->target[i];
    return say("{} of {}", hits, guesses.size());
  };
  const auto first_miss =
      static_cast<std::size_t>(std::ranges::mismatch(view->written, view->target).in1 - view->written.begin());
  section(ui, said("AGREEMENT"), said("with the text"));
  fact(ui, said("Taught"), agree(view->guessed));
  fact(ui, said("On its own"), agree(view->written));
  fact(ui, said("First miss on its own"),
       first_miss < view->written.size() ? say("position {}", view->given + first_miss) : said("none"));
  section(ui, said("MEAN LOSS"));
  fact(ui, said("Taught"), nats(mean_of(view->forced_loss, 0, view->forced_loss.size())), nullptr,
       {said("mean of −ln p(token | true tokens before it)")});
  fact(ui, said("On its own"), nats(mean_of(view->free_loss, 0, view->free_loss.size())), nullptr,
       {said("mean of −ln p(token of the text | what the model wrote)")});
  fact(ui, said("On its own, up to the first miss"), nats(mean_of(view->free_loss, 0, first_miss + 1)), nullptr,
       {said("until then both read the same tokens")});
  section(ui, said("WHAT TO LOOK FOR"));
  note(ui,
       said("Both use the sampling on the left and the same random numbers; choose Greedy for the most probable token. "
            "After a miss the free text may be good in itself: its loss is measured on another text."));
}

}  // namespace headscope
