// Heads that share keys and values: who reads whose keys, what fewer key heads, or a latent, cost the open model, and
// what a cache takes.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/render/sharing_pictures.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/analyse/sweep_page.h"
#include "app/workspaces/scene_slot.h"
#include "core/analysis/key_sharing_sweep.h"
#include "core/attention/key_sharing.h"
#include "core/base/words.h"
#include "core/edits/latent_keys_edit.h"
#include "core/edits/share_keys_edit.h"
#include "core/model/kv_cache.h"
#include "core/model/published_caches.h"
#include "core/trace/layer_kinds.h"
#include "viz/color/color_norm.h"
#include "viz/scene/compose.h"
#include "viz/scene/line_chart.h"

namespace headscope {

namespace {

std::string bytes_words(double bytes) {
  return quantity(bytes, "B");
}

class KeySharingPage final : public SweepPage<KeySharingSweep, RunRequest> {
 public:
  explicit KeySharingPage(JobRunner& jobs)
      : SweepPage(jobs, "sharing",
                  {to_say("ways"), to_say("Nothing has been shared yet"),
                   to_say("Press Start on the right: every way of sharing is run once.")}) {}

  void middle(const PageContext& c) override {
    if (c.results().model.model && !alike_in_keys(c.results().model.model->config())) return differing(c);
    drawing(c);
    if (!keep_up(c)) return;
    charts(c);
    table(c);
    published(c);
  }

  void controls(ControlsRecord& r) override {
    r.field("tokens", tokens_, 256, 1048576);
    r.choice("bytes", bytes_choice_, 2);
  }
  void right(const PageContext& c) override {
    section(c.ui, said("CACHE OF"));
    slider(c.ui, to_say("tokens"), tokens_, {256, 1'048'576, 8192, true, "", 0});
    tokens_ = std::round(tokens_);
    static constexpr const char* labels[] = {to_say("4 bytes"), to_say("2 bytes"), to_say("1 byte")};
    segmented(c.ui, "bytes per number", labels, bytes_choice_);
    if (c.results().model.model) {
      const ModelConfig& config = c.results().model.model->config();
      const ModelDims& d = config.dims;
      const CachedNumbers own = needed_numbers(config);
      ModelDims apart = d;
      apart.kv_heads = d.heads;
      const auto size = [&](std::uint64_t numbers, double tokens) {
        return bytes_words(static_cast<double>(numbers) * tokens * bytes());
      };
      const bool alike = alike_in_keys(config);
      fact(c.ui, said("The open model"), size(needed_in_all(config), tokens_), nullptr,
           {say("layers · tokens · bytes · ({})", said(own.words)),
            alike ? fmt::format("{} · {:.0f} · {} · ({})", attending_layers(d), tokens_, bytes(), own.sum)
                  : say("{} · {:.0f} tokens · {} bytes: layers that read keys of another add none",
                        needed_in_all(config), tokens_, bytes())});
      for (LayerWidths& each : apart.widths) each.kv_heads = d.heads;
      fact(c.ui, said("With a key head per head"), size(kept_in_all(apart), tokens_));
      fact(c.ui, said("Per token"), size(needed_in_all(config), 1));
    }
    if (c.results().model.model && !alike_in_keys(c.results().model.model->config())) return;
    run(c);
    if (result()) {
      section(c.ui, said("AS IT IS"));
      if (by_loss(*result()))
        fact(c.ui, said("Loss on this text"), say("{:.3f} nats", result()->before.loss));
      else if (of_open_model(c))
        note(c.ui, why_no_loss(c));
    }
    look_for(c);
  }

 private:
  static bool by_loss(const KeySharing& found) { return !std::isnan(found.before.loss); }
  /// What a way of sharing costs: loss, or, of a text that has none, how far the answer moves.
  static double cost(const KeySharing& found, const KeySharing::Entry& way) {
    return by_loss(found) ? way.outcome.loss - found.before.loss : way.outcome.kl;
  }

  /// The latent beside the most pooled heads, at the same cache: what the runs say, once both have been run.
  void look_for(const PageContext& c) const {
    if (!result()) return;
    const KeySharing::Entry* pooled = nullptr;
    for (const KeySharing::Entry& each : result()->entries)
      if (!each.latent && (!pooled || each.number < pooled->number)) pooled = &each;
    const auto latent = std::ranges::find_if(result()->entries, [&](const KeySharing::Entry& each) {
      return pooled && each.latent && each.kept == pooled->kept;
    });
    if (!pooled || latent == result()->entries.end()) return;
    const double heads = cost(*result(), *pooled), rank = cost(*result(), *latent);
    if (std::isnan(heads) || std::isnan(rank)) return;
    section(c.ui, said("WHAT TO LOOK FOR"));
    std::string remark = pooled->number == 1
                             ? say("In the same room, {} numbers per token and layer, 1 key head costs {:.3f} nats and "
                                   "a latent of {} costs {:.3f}.",
                                   short_number(pooled->kept, 6), heads, latent->number, rank)
                             : say("In the same room, {} numbers per token and layer, {} key heads costs {:.3f} nats "
                                   "and a latent of {} costs {:.3f}.",
                                   short_number(pooled->kept, 6), pooled->number, heads, latent->number, rank);
    if (!by_loss(*result())) remark += fmt::format(" {}", said("(KL of the answer.)"));
    if (rank < heads)
      remark += fmt::format(" {}", said("The latent chooses its directions; pooling only averages what is there."));
    note(c.ui, remark);
    note(c.ui,
         said("Nothing was trained on: published models learn to share (GQA's paper trains for a twentieth more)."));
  }
  int bytes() const { return bytes_choice_ == 0 ? 4 : bytes_choice_ == 1 ? 2 : 1; }
  /// Of a model whose layers differ in their keys no one number of key heads can be tried in all of them.
  void differing(const PageContext& c) {
    const ModelConfig& config = c.results().model.model->config();
    int lent = 0;
    for (int layer = 0; layer < config.dims.layers; ++layer) lent += !config.own_keys(layer);
    section(c.ui, said("LAYERS DIFFER IN THEIR KEYS"), said("nothing is tried in all of them at once"));
    note(c.ui, (lent > 0 ? say("{} of {} layers read the keys of an earlier one. ", lent, config.dims.layers)
                         : std::string()) +
                   said("No one number of key heads, and no one latent, is that of all. The edits “share keys” and "
                        "“latent keys” work on one layer at a time."));
    drawing(c);
    published(c);
  }
  std::optional<RunRequest> wanted(const PageContext& c) const override {
    if (!c.results().model.model || !alike_in_keys(c.results().model.model->config())) return std::nullopt;
    return c.results().run ? std::optional(c.results().run->request) : std::nullopt;
  }
  double passes(const PageContext&) const override { return 14; }

  /// Which query heads read which key heads, and the cache that is left.
  void drawing(const PageContext& c) {
    const double width = std::floor(c.room());
    const auto model = c.results().model.model;
    ways_.want(c.jobs, c.ui, model, fmt::format("{}", width), [model, width](const Style& style) {
      return sharing_ways_scene(model ? &model->config() : nullptr, width, style);
    });
    const Scene* scene = ways_.scene();
    SceneViewOptions how;
    how.fit_height = false;
    ways_.draw(c.ui, "sharing ways", how, width, scene ? scene->height : 300);
  }

  void charts(const PageContext& c) {
    const double width = std::floor(c.room()),
                 height = std::clamp(ImGui::GetContentRegionAvail().y / c.ui.scale * 0.36, 160.0, 300.0);
    slot_.want(c.jobs, c.ui, result(), fmt::format("{} {}", width, height),
               [result = result(), width, height](const Style& style) {
                 const double half = std::floor((width - 30) / 2);
                 LineChart loss, error;
                 for (LineChart* chart : {&loss, &error}) {
                   chart->width = half;
                   chart->height = height;
                   chart->grid = true;
                   chart->log_x = true;
                   chart->x_title = said("numbers kept per token and layer");
                 }
                 const bool losses = by_loss(*result);
                 loss.y_title = losses ? said("loss on this text, nats") : said("KL of the answer, nats");
                 error.y_title = said("‖W − W_r‖ / ‖W‖ of [W_K W_V]");
                 error.y_low = 0;
                 ChartSeries groups{said("groups"), style.theme.key, {}, {}, 2},
                     latent{said("latent"), style.theme.accent, {}, {}, 2}, weights{"", style.theme.accent, {}, {}, 2};
                 for (const KeySharing::Entry& each : result->entries) {
                   ChartSeries& line = each.latent ? latent : groups;
                   line.x.push_back(each.kept);
                   line.y.push_back(losses ? each.outcome.loss : each.outcome.kl);
                   if (each.latent) weights.x.push_back(each.kept), weights.y.push_back(each.weight_error);
                 }
                 for (const auto* line : {&groups, &latent})
                   for (const double x : line->x) loss.x_ticks.push_back(x);
                 std::ranges::sort(loss.x_ticks);
                 error.x_ticks = weights.x;
                 std::ranges::sort(error.x_ticks);
                 loss.series = {groups, latent};
                 error.series = {weights};
                 const Scene parts[] = {line_chart_scene(loss, style), line_chart_scene(error, style)};
                 return beside(parts, 30);
               });
    slot_.draw(c.ui, "sharing", {}, width, height);
  }

  static std::string way(const KeySharing::Entry& each, const ModelDims& dims) {
    return each.latent                 ? say("latent of {}", each.number)
           : each.number == dims.heads ? std::string("MHA")
           : each.number == 1          ? std::string("MQA")
                                       : say("GQA, {} groups", each.number);
  }

  void table(const PageContext& c) {
    c.ui.pictures.add_table("ways of sharing", said("ways of sharing"), [result = result(), per_number = bytes()] {
      Table out{said("ways of sharing"),
                {to_say("way"), to_say("numbers per token"), to_say("bytes per token"), to_say("loss"),
                 to_say("KL of the answer")},
                {}};
      for (const KeySharing::Entry& each : result->entries) {
        const double kept = each.kept * attending_layers(result->dims);
        out.rows.push_back({way(each, result->dims), number_cell(kept), number_cell(kept * per_number),
                            number_cell(each.outcome.loss), number_cell(each.outcome.kl)});
      }
      return out;
    });
    section(c.ui, said("WAYS OF SHARING"), said("all layers at once; click to try one in Explore"));
    const UseFont font(c.ui, c.ui.number());
    if (!ImGui::BeginTable("ways of sharing", 6, ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_NoSavedSettings))
      return;
    for (const char* title :
         {"", said("Kept per token"), said("Cache"), said("Of as it is"), said("Loss"), said("KL of the answer")})
      ImGui::TableSetupColumn(title);
    ImGui::TableHeadersRow();
    const ModelDims& d = result()->dims;
    const auto own = static_cast<double>(kept_numbers(d).numbers);
    for (const KeySharing::Entry& each : result()->entries) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const std::string name = way(each, d);
      if (ImGui::Selectable(name.c_str(), false, ImGuiSelectableFlags_SpanAllColumns)) try_out(c, each);
      if (ImGui::IsItemHovered())
        tooltip(c.ui, {text_of(each.latent ? EditAction(LatentKeys{each.number}) : EditAction(ShareKeys{each.number})),
                       each.latent ? said("singular value decomposition of [W_K W_V], cut off at the rank")
                                   : said("W_K and W_V of neighbouring heads, averaged")});
      ImGui::TableNextColumn();
      ImGui::Text("%s", short_number(each.kept * attending_layers(d), 6).c_str());
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(bytes_words(each.kept * attending_layers(d) * tokens_ * bytes()).c_str());
      ImGui::TableNextColumn();
      ImGui::Text("%s %%", short_number(100 * each.kept / own, 3).c_str());
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(std::isnan(each.outcome.loss) ? "–" : fmt::format("{:.3f}", each.outcome.loss).c_str());
      ImGui::TableNextColumn();
      ImGui::Text("%.4f", each.outcome.kl);
    }
    ImGui::EndTable();
  }

  void try_out(const PageContext& c, const KeySharing::Entry& entry) {
    std::vector<Intervention> edits = c.state().document.edits;
    std::erase_if(edits, [](const Intervention& e) { return e.action.as<ShareKeys>() || e.action.as<LatentKeys>(); });
    edits.push_back({{}, entry.latent ? EditAction(LatentKeys{entry.number}) : EditAction(ShareKeys{entry.number})});
    c.editor.history().close_step();
    c.editor.set_edits(std::move(edits));
    c.app.ui.workspace = workspace_index("Explore");
  }

  void published(const PageContext& c) {
    section(c.ui, said("PUBLISHED MODELS"), said("from the papers named in the last column"));
    const UseFont font(c.ui, c.ui.number());
    constexpr ImGuiTableFlags flags =
        ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
    if (!ImGui::BeginTable("published caches", 7, flags, {0, std::max(ImGui::GetContentRegionAvail().y, c.ui.px(120))}))
      return;
    ImGui::TableSetupScrollFreeze(0, 1);
    for (const char* title :
         {said("Model"), said("Sharing"), said("Layers"), said("Key heads"), said("Per token"), said("Cache")})
      ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_WidthFixed);
    ImGui::TableSetupColumn(said("Source"), ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableHeadersRow();
    for (const PublishedCache& each : published_caches()) {
      ImGui::TableNextRow();
      const std::string cells[] = {std::string(each.model),
                                   std::string(each.sharing),
                                   std::to_string(each.layers),
                                   each.latent > 0 ? fmt::format("{} + {}", each.latent, each.rotary)
                                                   : say("{} of {} × {}", each.kv_heads, each.heads, each.d_head),
                                   bytes_words(static_cast<double>(each.bytes(1, static_cast<std::uint64_t>(bytes())))),
                                   bytes_words(static_cast<double>(each.bytes(static_cast<std::uint64_t>(tokens_),
                                                                              static_cast<std::uint64_t>(bytes())))),
                                   std::string(each.source)};
      for (const std::string& cell : cells) {
        ImGui::TableNextColumn();
        text_line(c.ui, cell);
      }
    }
    ImGui::EndTable();
  }

  SceneSlot slot_{"scene.sharing"}, ways_{"scene.sharing.ways"};
  double tokens_ = 8192;
  int bytes_choice_ = 1;
};

}  // namespace

std::unique_ptr<Page> make_key_sharing(JobRunner& jobs) {
  return std::make_unique<KeySharingPage>(jobs);
}

}  // namespace headscope
