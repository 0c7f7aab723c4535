// The feed-forward layer: its activation functions, its neurons on this text, and the share of parameters it holds.

#include "core/analysis/feed_forward.h"
#include "core/base/nth.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/block_pictures.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/parts.h"
#include "app/workspaces/analyse/reading_page.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/metrics/next_token.h"
#include "core/model/parameter_parts.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

struct Preset {
  const char* name;
  const char* words;
};
constexpr Preset presets[] = {
    {"GPT-2 small", "gpt2 layers=12 width=768 heads=12 mlp=3072 vocab=50257 context=1024"},
    {"GPT-2 XL", "gpt2 layers=48 width=1600 heads=25 mlp=6400 vocab=50257 context=1024"},
    {"Llama 2 7B", "llama layers=32 width=4096 heads=32 mlp=11008 vocab=32000"},
    {"Llama 3 8B", "llama layers=32 width=4096 heads=32 kv_heads=8 mlp=14336 vocab=128256"},
};

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

class FeedForwardPage final : public ReadingPage {
 public:
  void middle(const PageContext& c) override {
    static constexpr const char* views[] = {to_say("Neurons"), to_say("Activation functions"), to_say("Parameters")};
    segmented(c.ui, "ffn view", views, view_);
    ImGui::Dummy({0, c.ui.px(4)});
    if (!c.results().model.model) return no_reading_yet(c);
    if (view_ == 0) return neurons(c);
    view_ == 1 ? curves(c) : parameters(c);
  }

  void controls(ControlsRecord& r) override {
    r.choice("view", view_, 2);
    r.field("layer", layer_, 0, most_layers);
    r.field("x", x_, -4, 4);
    r.field("gate", gate_, -3, 3);
    r.field("shape", shape_);
    token_record(r, "token", token_);
  }
  void right(const PageContext& c) override {
    if (!c.results().model.model) return;
    if (view_ == 0) return neuron_controls(c);
    view_ == 1 ? curve_controls(c) : parameter_controls(c);
  }

 private:
  void neurons(const PageContext& c) {
    const ModelConfig& config = c.results().model.model->config();
    if (config.dims.d_mlp == 0)
      return empty_state(c.ui, said("This model has no feed-forward layers"),
                         config.dims.state_space() ? said("Its blocks are a state and a gate; open another model.")
                                                   : said("Its blocks are attention alone; open another model."));
    if (!config.dims.has_mlp(std::clamp(layer_, 0, config.dims.layers - 1)))
      return empty_state(c.ui, said("This layer has no MLP"), said("Others of this model have one."));
    if (config.experts.at(std::clamp(layer_, 0, config.dims.layers - 1)))
      return empty_state(
          c.ui,
          config.experts.beside ? said("This layer has experts beside its MLP")
                                : said("This layer has experts in place of one MLP"),
          config.experts.beside
              ? said("What both write is normalised together before it is added, so that no neuron has a share of its "
                     "own. The page Experts shows who took which token.")
              : say("Each token passes through {} of {}; the page Experts shows which.", config.experts.per_token,
                    config.experts.count));
    if (!c.trace()) return no_reading_yet(c);
    keep_inside(c, token_);
    const int layer = std::clamp(layer_, 0, config.dims.layers - 1);
    const Index row = pinned_row(c, *c.trace());
    job_.want(c, feed_forward_sites(*c.results().model.model),
              fmt::format("{} {} {}", layer, row, token_.id.value_or(-1)),
              [layer, row, token = token_.id](const ReadingSource& source, const Ctx& ctx) {
                AttributionOf of;
                of.position = std::min(row, static_cast<Index>(source.trace->tokens.size()) - 1);
                of.token = token ? *token : most_probable(*source.trace, static_cast<int>(of.position)).id;
                return read_feed_forward(*source.model.model, ctx.backend, *source.trace, layer, of, 24, 4);
              });
    const auto answer = job_.answer();
    if (!answer) return no_reading_yet(c);
    const double width = std::floor(c.room()), half = std::floor((width - 16) / 2),
                 height = std::clamp(room_below(c) * 0.34, 150.0, 280.0);
    histogram(c, pre_, "before activation", answer, half, height, true);
    ImGui::SameLine(0, c.ui.px(16));
    histogram(c, post_, "after activation", answer, half, height, false);
    section(c.ui, said("ACTIVE BY POSITION"), said("share of neurons whose pre-activation is above 0 · click pins"));
    active(c, answer, width, std::clamp(room_below(c) * 0.4, 120.0, 220.0));
    section(c.ui, said("NEURONS THAT WRITE MOST"),
            say("layer {} at {} ({})", answer->result.layer,
                token_label(*answer->source.trace, answer->result.of.position), answer->result.of.position));
    table(c, answer);
  }

  using Reading = ReadingJob<FeedForward>::Reading;

  void histogram(const PageContext& c, SceneSlot& slot, const char* id, const std::shared_ptr<const Reading>& answer,
                 double width, double height, bool before) {
    slot.want(c.jobs, c.ui, answer, fmt::format("{} {}", width, height),
              [answer, width, height, before](const Style& style) {
                const FeedForward& f = answer->result;
                Histogram picture =
                    neuron_histogram(before ? f.pre : f.post,
                                     before ? say("before the activation, {}", name(Site{SiteKind::mlp_pre, f.layer}))
                                            : say("after the activation, {}", name(Site{SiteKind::mlp_post, f.layer})),
                                     before ? style.theme.muted : style.theme.accent);
                picture.width = width;
                picture.height = height;
                return histogram_scene(picture, style);
              });
    slot.draw(c.ui, id, {}, width, height);
  }

  void active(const PageContext& c, const std::shared_ptr<const Reading>& answer, double width, double height) {
    const Index pinned = pinned_row(c, *answer->source.trace);
    active_.want(
        c.jobs, c.ui, answer, fmt::format("{} {} {}", pinned, width, height),
        [answer, pinned, width, height](const Style& style) {
          TokenBars bars;
          bars.tokens = answer->source.trace;
          bars.values = answer->result.active;
          for (std::size_t i = 0; i < bars.values.size(); ++i)
            bars.tooltips.push_back(say("position {}: {:.1f} % of neurons with {}[{}, i] > 0", i, 100 * bars.values[i],
                                        name(Site{SiteKind::mlp_pre, answer->result.layer}), i));
          bars.levels = {{0.5, said("half"), said("half of the neurons")}};
          bars.marked = pinned;
          bars.unit = said("share of neurons");
          bars.width = width, bars.height = height;
          return token_bars_scene(bars, style);
        });
    const SceneTouch touch = wide_scene(c, active_, "active");
    if (const auto* token = meaning<TokenAt>(touch.mark); token && touch.clicked) c.editor.pin(token->position);
  }

  void table(const PageContext& c, const std::shared_ptr<const Reading>& kept) {
    const Reading& answer = *kept;
    c.ui.pictures.add_table("neurons", said("strongest neurons"), [kept] {
      Table out{said("strongest neurons"),
                {to_say("neuron"), "pre", to_say("linear"), "post", to_say("norm of what it writes"), to_say("logit"),
                 to_say("raises")},
                {}};
      for (const Neuron& n : kept->result.neurons) {
        std::string raises;
        for (const NextToken& t : n.raises)
          raises +=
              fmt::format("{}{} {:+.4f}", raises.empty() ? "" : "   ", token_text(kept->source.model, t.id), t.logit);
        const bool two = kept->source.model.model->config().gated_mlp;
        out.rows.push_back({std::to_string(n.index), number_cell(n.pre), two ? number_cell(n.linear) : "",
                            number_cell(n.post), number_cell(n.norm), number_cell(n.logit), raises});
      }
      return out;
    });
    const bool gated = answer.source.model.model->config().gated_mlp;
    const UseFont font(c.ui, c.ui.number());
    if (!ImGui::BeginTable("neurons", gated ? 7 : 6,
                           ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit |
                               ImGuiTableFlags_NoSavedSettings,
                           {0, std::max(ImGui::GetContentRegionAvail().y, c.ui.px(130))}))
      return;
    ImGui::TableSetupScrollFreeze(0, 1);
    std::vector<const char*> titles{said("neuron"), "pre"};
    if (gated) titles.push_back(said("linear"));
    for (const char* title : {"post", said("‖written‖"), said("logit")}) titles.push_back(title);
    for (const char* title : titles) ImGui::TableSetupColumn(title);
    ImGui::TableSetupColumn(said("raises most"), ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableHeadersRow();
    for (const Neuron& n : answer.result.neurons) {
      std::string raises;
      for (const NextToken& t : n.raises)
        raises +=
            fmt::format("{}{} {:+.2f}", raises.empty() ? "" : "   ", token_text(answer.source.model, t.id), t.logit);
      std::vector<std::string> cells{std::to_string(n.index), signed_words(n.pre)};
      if (gated) cells.push_back(signed_words(n.linear));
      for (const std::string& text :
           {signed_words(n.post), fmt::format("{:.3f}", n.norm), signed_words(n.logit), raises})
        cells.push_back(text);
      ImGui::TableNextRow();
      for (const std::string& text : cells) {
        ImGui::TableNextColumn();
        text_line(c.ui, text);
      }
      if (ImGui::IsItemHovered())
        tooltip(c.ui, {say("neuron {} writes a · W_down[{}], a = {:+.4f}", n.index, n.index, n.post),
                       said("logits through the last norm, its scale as in this run, less the vocabulary's mean")});
    }
    ImGui::EndTable();
  }

  void neuron_controls(const PageContext& c) {
    section(c.ui, said("BLOCK"));
    layer_control(c, layer_);
    position_control(c, said("whose neurons are listed"));
    const auto answer = job_.answer();
    section(c.ui, said("LOGIT OF"), said("empty: the most probable one"));
    token_field(c, "##neurons token", answer ? token_text(answer->source.model, answer->result.of.token) : "", token_);
    if (!answer) return;
    const FeedForward& f = answer->result;
    const ModelConfig& config = answer->source.model.model->config();
    section(c.ui, said("HERE"),
            config.gated_mlp ? say("{}, gated", said_view(title(config.activation)))
                             : std::string(said_view(title(config.activation))));
    const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
    fact(c.ui, said("Neurons"), std::to_string(config.dims.widths_of(f.layer).d_mlp), nullptr,
         {said("d_mlp of the model's configuration")});
    fact(c.ui, said("Active at this position"), percent(nth(f.active, f.of.position)), nullptr,
         {say("share with {} > 0", name(Site{SiteKind::mlp_pre, f.layer}))});
    fact(c.ui, said("Active somewhere in the text"), percent(f.ever_active), nullptr,
         {said("at one position or more")});
    fact(c.ui, said("Write half of it all"), percent(f.half), nullptr,
         {said("fewest neurons whose ‖a W_down‖ sum to half of Σ ‖a W_down‖ here"), said("few = sparse")});
    section(c.ui, said("IN THE LOGIT"), say("of {}", token_text(answer->source.model, f.of.token)));
    fact(c.ui, said("Whole MLP of this layer"), signed_words(f.logit), nullptr,
         {said("Σ a W_down · d + b_down · d, d as in direct logit attribution"),
          said("equals that page's MLP part of this layer")});
    fact(c.ui, said("… of it the bias"), signed_words(f.bias_logit), nullptr, {"b_down · d"});
    if (std::abs(f.edited_logit) > 1e-3 * std::max(1.0, std::abs(f.logit)))
      fact(c.ui, said("… and edits add"), signed_words(f.edited_logit), nullptr,
           {say("{} · d as recorded, less the sum above", name(Site{SiteKind::mlp_out, f.layer}))});
  }

  void curves(const PageContext& c) {
    curves_job_.want(c, {}, "", [](const ReadingSource& source, const Ctx& ctx) {
      return activation_curves(ctx.backend, source.model.model->weights().blocks.front().xielu);
    });
    const auto answer = curves_job_.answer();
    if (!answer) return no_reading_yet(c);
    const ModelConfig& config = answer->source.model.model->config();
    const auto own = config.dims.d_mlp > 0 ? std::optional(config.activation) : std::nullopt;
    chart_slot(c, chart_, "activations", answer, fmt::format("{:.3f} {:.3f}", gate_, x_), std::floor(c.room()),
               std::clamp(room_below(c) - 8, 240.0, 620.0), [answer, own, gate = gate_, at = x_](const Style& style) {
                 return activation_chart(answer->result, own, gate, at, style);
               });
  }

  void curve_controls(const PageContext& c) {
    section(c.ui, said("AT"), said("the same input through each"));
    slider(c.ui, "x", x_, {-4, 4, 1, false, "", 2});
    slider(c.ui, to_say("Linear branch u"), gate_, {-3, 3, 1.5, false, "", 2});
    const auto answer = curves_job_.answer();
    if (!answer) return;
    const auto& curves = answer->result;
    for (const auto& [kind, x, y] : curves) {
      const double step = (x.back() - x.front()) / static_cast<double>(x.size() - 1);
      const double at = std::clamp((x_ - x[0]) / step, 0.0, static_cast<double>(x.size() - 2));
      const auto k = static_cast<std::size_t>(at);
      const double value = y[k] + (at - static_cast<double>(k)) * (y[k + 1] - y[k]);
      fact(c.ui, std::string(said_view(title(kind))), fmt::format("{:+.4f}", value), nullptr,
           {std::string(said_view(formula(kind))),
            said("from 321 points of the function the forward pass calls, linear between them")});
      if (kind == Activation::silu)
        fact(c.ui, "SwiGLU", fmt::format("{:+.4f}", value * gate_), nullptr,
             {said("SiLU(x) · u, u = the linear branch"), "Shazeer 2020: FFN(x) = (SiLU(x W_gate) ∘ x W_up) W_down"});
    }
    note(c.ui, said("ReLU is 0 for half of all inputs and lets no gradient through there. GELU and SiLU are smooth and "
                    "dip below 0 on the left; the tanh form is an approximation of GELU. A gated unit multiplies the "
                    "result by a second, linear reading of the same input: it can change the sign."));
    if (answer->source.model.model->config().activation == Activation::solu)
      note(c.ui, said("This model's SoLU has no curve: a neuron gives x eˣ ÷ Σ eˣ over all of its layer."));
  }

  void parameters(const PageContext& c) {
    const ModelConfig& own = c.results().model.model->config();
    bars(c, said("THIS MODEL"), own, "own parameters");
    ImGui::Dummy({0, c.ui.px(10)});
    try {
      const ModelConfig other = parse_shape(shape_, "shape");
      shape_error_.clear();
      bars(c, said("THE SHAPE TYPED"), other, "typed parameters");
    } catch (const Error& wrong) {
      shape_error_ = wrong.what();
    }
  }

  void bars(const PageContext& c, const char* heading, const ModelConfig& config, const char* id) {
    const ParameterParts parts = parameter_parts(config);
    const auto total = static_cast<double>(parts.total());
    section(c.ui, heading, say("{} parameters · {}", grouped(parts.total()), shape_words(config)));
    struct Part {
      const char* name;
      std::int64_t count;
      const char* formula;
    };
    std::vector<Part> lines{
        {said("token embedding"), parts.embedding, "V d"},
        {said("positions"), parts.positions, said("context · d, where they are learned")},
        {said("attention"), parts.attention, said("layers (d q + 2 d k + q d), and biases")},
        {said("feed-forward"), parts.mlp,
         said("layers · 2 d m, gated 3 d m, and biases; of every expert, and the router")},
        {said("norms"), parts.norms, said("two per block and the last: gain, and bias for LayerNorm")},
        {said("unembedding"), parts.unembedding, said("d V, or 0 where it is the embedding again")}};
    if (parts.convolution > 0)
      lines.push_back({said("convolution beside the first block"), parts.convolution,
                       said("d² ÷ groups of every token that it covers, and a bias")});
    if (parts.layer_inputs > 0)
      lines.push_back({said("inputs of every layer's own"), parts.layer_inputs,
                       said("d layers w + layers · 2 d w, w numbers a layer")});
    std::int64_t most = 1;
    for (const Part& part : lines) most = std::max(most, part.count);
    std::vector<Bar> bars;
    for (const Part& part : lines)
      bars.push_back({part.name, static_cast<double>(part.count) / static_cast<double>(most), -1,
                      fmt::format("{}   {:4.1f} %", grouped(part.count), 100 * static_cast<double>(part.count) / total),
                      say("{} parameters: {}", grouped(part.count), part.formula)});
    bar_list(c.ui, id, bars);
    if (parts.idle > 0)
      note(c.ui, say("A token passes through {} of them: the experts that do not take it are not used.",
                     grouped(parts.total() - parts.idle)));
    if (parts.tied > 0)
      note(c.ui,
           say("The unembedding is the embedding again: {} parameters are not there twice.", grouped(parts.tied)));
  }

  void parameter_controls(const PageContext& c) {
    section(c.ui, said("SHAPE"), said("gpt2 or llama, then its numbers"));
    {
      const UseFont font(c.ui, c.ui.token());
      ImGui::SetNextItemWidth(-1);
      input_line(c.ui, "##shape", presets[0].words, shape_);
    }
    if (!shape_error_.empty()) error_text(c.ui, shape_error_);
    for (const Preset& preset : presets)
      if (button(c.ui, preset.name)) shape_ = preset.words;
    note(c.ui, said("Words: layers, width, heads, kv_heads, d_head, mlp, vocab, context, tied=yes|no. Llama: RMSNorm, "
                    "rotary positions, a gated MLP, no biases. Counted from the shape alone."));
    const ParameterParts own = parameter_parts(c.results().model.model->config());
    section(c.ui, said("PER BLOCK"), said("of this model"));
    const int layers = c.results().model.model->config().dims.layers;
    fact(c.ui, said("Attention"), grouped(own.attention / layers), nullptr,
         {said("weights and biases of W_Q, W_K, W_V, W_O")});
    fact(c.ui, said("Feed-forward"), grouped(own.mlp / layers), nullptr, {said("weights and biases")});
    fact(c.ui, said("Feed-forward ÷ attention"),
         own.attention > 0 ? fmt::format("{:.2f}", static_cast<double>(own.mlp) / static_cast<double>(own.attention))
                           : "–",
         nullptr, {said("2 where m = 4 d and every head has its own keys")});
  }

  int view_ = 0, layer_ = 0;
  double gate_ = 1.5, x_ = 1;
  TokenField token_;
  std::string shape_ = presets[0].words, shape_error_;
  ReadingJob<FeedForward> job_{*this, "read.ffn"};
  ReadingJob<std::vector<ActivationCurve>> curves_job_{*this, "read.activations"};
  ReadingSlot pre_{*this, "scene.ffn.pre"}, post_{*this, "scene.ffn.post"}, active_{*this, "scene.ffn.active"},
      chart_{*this, "scene.ffn.curves"};
};

}  // namespace

std::unique_ptr<Page> make_feed_forward(JobRunner&) {
  return std::make_unique<FeedForwardPage>();
}

}  // namespace headscope
