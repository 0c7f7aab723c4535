#include "app/render/sharing_pictures.h"

#include <algorithm>
#include <vector>

#include "core/attention/key_sharing.h"
#include "core/base/words.h"
#include "core/model/kv_cache.h"
#include "core/trace/layer_kinds.h"
#include "viz/scene/compose.h"

namespace headscope {

namespace {

std::string way_name(int heads, int key_heads) {
  return key_heads == heads ? say("MHA, {} key heads", heads)
         : key_heads == 1   ? std::string(said("MQA, 1 key head"))
                            : say("GQA, {} key heads", key_heads);
}

/// Eight heads: what each keeps is counted in head widths d, so that it holds for every d.
SharingPicture eight_heads() {
  constexpr int heads = 8;
  // DeepSeek-V2 keeps a latent of 4 d and half a d for the key that carries positions (its table 1: 9/2 d for a layer).
  constexpr double latent = 4.5;
  SharingPicture picture{
      said("EIGHT QUERY HEADS · lines: whose keys and values a head reads · bar: what the cache keeps"), {}};
  for (const int key_heads : {8, 4, 2, 1}) {
    const auto kept = static_cast<double>(key_cache_bytes(1, static_cast<std::uint64_t>(key_heads), 1, 1, 1));
    const auto all = static_cast<double>(key_cache_bytes(1, heads, 1, 1, 1));
    picture.ways.push_back({way_name(heads, key_heads), heads, key_heads, kept / all, say("{:.0f} d per token", kept),
                            false, say("2 · {} key heads · d ÷ (2 · {} · d)", key_heads, heads)});
  }
  picture.ways.push_back({said("MLA, one latent"), heads, 0, latent / (2.0 * heads), say("{} d per token", latent),
                          false,
                          said("a latent of 4 d, and d ÷ 2 for the key that carries positions, as in DeepSeek-V2; "
                               "each head makes its own keys and values of it")});
  return picture;
}

/// The model's numbers of heads, in layers of one kind; its own way is marked.
SharingPicture own_heads(const ModelConfig& config, const LayerKind& kind) {
  const ModelDims& d = kind.dims;
  SharingPicture picture{config.dims.widths.empty()
                             ? say("THE OPEN MODEL · {} query heads of {} numbers", d.heads, d.d_head)
                             : say("THE OPEN MODEL, {} OF ITS {} LAYERS · {} query heads of {} numbers", kind.layers,
                                   config.dims.layers, d.heads, d.d_head),
                         {}};
  const double each = d.d_head + d.value_width(), all = d.heads * each;
  std::vector<int> ways;
  for (int key_heads = d.heads; key_heads >= 1; --key_heads)
    if (d.heads % key_heads == 0) ways.push_back(key_heads);
  // All heads, one, the model's own, and what lies between halves as long as there is room.
  while (ways.size() > (d.kv_latent > 0 ? 4u : 5u)) {
    const auto drop = std::find_if(ways.rbegin() + 1, ways.rend() - 1, [&](int way) { return way != d.kv_heads; });
    ways.erase(std::next(drop).base());
  }
  const bool latent = d.kv_latent > 0;
  for (const int key_heads : ways)
    picture.ways.push_back({way_name(d.heads, key_heads), d.heads, key_heads, key_heads * each / all,
                            say("{:.0f} per token, layer", key_heads * each), !latent && key_heads == d.kv_heads,
                            say("{} key heads · ({} + {}){}", key_heads, d.d_head, d.value_width(),
                                !latent && key_heads == d.kv_heads ? said(": this model") : "")});
  if (latent) {
    const CachedNumbers own = needed_numbers(config);
    const auto kept = static_cast<double>(own.numbers);
    picture.ways.push_back({said("MLA, its latent"), d.heads, 0, kept / all, say("{:.0f} per token, layer", kept), true,
                            say("{} = {}: this model", own.words, own.sum)});
  }
  return picture;
}

}  // namespace

Scene sharing_ways_scene(const ModelConfig* model, double width, const Style& style) {
  SharingPicture eight = eight_heads();
  eight.width = width;
  Scene scene = key_sharing_scene(eight, style);
  if (model && model->dims.any_attends()) {
    // Layers that have the same heads are one kind here, whatever their MLPs.
    ModelDims dims = model->dims;
    for (LayerWidths& each : dims.widths) each.d_mlp = dims.d_mlp;
    std::vector<Scene> parts{std::move(scene)};
    for (const LayerKind& kind : layer_kinds(dims)) {
      if (kind.mixer != Mixer::attention) continue;
      SharingPicture own = own_heads(*model, kind);
      own.width = width;
      parts.push_back(key_sharing_scene(own, style));
    }
    scene = below(parts, 14);
  }
  scene.title = said("Query heads and the key heads they share");
  scene.description = said("numbers that a cache keeps per token: 2 · key heads · d_head, of a latent its width");
  return scene;
}

}  // namespace headscope
