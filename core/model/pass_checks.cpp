#include "core/model/pass_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "core/base/error.h"
#include "core/model/picture_input.h"
#include "core/model/sound_input.h"

namespace headscope {

void check_pass(const ModelConfig& c, const Ctx& ctx, std::span<const std::int32_t> tokens, const KvCache* cache,
                const LayerRange& layers, std::span<const Index> lengths) {
  if (tokens.empty()) throw Error(c.name, "at least one token", "none");
  if (c.vision && layers.first == 0) check_patches(c, tokens.size(), ctx.patches);
  if (c.sound && layers.first == 0) check_sound(c, tokens.size(), ctx.patches);
  for (std::size_t i = 0; !c.vision && !c.sound && i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= c.dims.vocab)
      throw Error(c.name, fmt::format("token ids in [0, {})", c.dims.vocab),
                  fmt::format("{} at position {}", tokens[i], i));
  if (c.cross() != (ctx.source != nullptr) && (ctx.source || layers.first < c.dims.layers))
    throw Error(c.name, c.cross() ? "what its encoder made of a source text" : "a text alone",
                c.cross() ? "no source" : "a source beside it",
                c.cross() ? "this model is an encoder-decoder" : "this model is of one stack");
  if (c.cross() && lengths.size() > 1 &&
      (ctx.source->lengths.size() != lengths.size() ||
       std::accumulate(ctx.source->lengths.begin(), ctx.source->lengths.end(), Index{0}) != ctx.source->memory.dim(0)))
    throw Error(
        c.name,
        fmt::format("a source for each of {} texts, {} tokens together", lengths.size(), ctx.source->memory.dim(0)),
        fmt::format("{} lengths", ctx.source->lengths.size()));
  if (cache && !c.causal)
    throw Error(c.name, "a whole text at once", "a cache of its beginning",
                "every token of this model sees the later ones too, so that nothing stays when one more comes");
  for (std::size_t i = 0; c.segments > 0 && i < ctx.segments.size(); ++i)
    if (ctx.segments.size() != tokens.size() || ctx.segments[i] < 0 || ctx.segments[i] >= c.segments)
      throw Error(c.name, fmt::format("a segment in [0, {}) for each of {} tokens", c.segments, tokens.size()),
                  fmt::format("{} of {}", ctx.segments[i], ctx.segments.size()));
  assert(ctx.context <= 0 || !c.ends_at_context());
  const int context = ctx.context > 0 ? ctx.context : c.context;
  const auto limit = static_cast<Index>(cache ? std::min(cache->capacity(), context) : context);
  Index longest = 0, total = 0;
  for (const Index length : lengths) {
    if (length < 1) throw Error(c.name, "at least one token in every text", fmt::format("a length of {}", length));
    longest = std::max(longest, length);
    total += length;
  }
  const auto given = static_cast<Index>(tokens.size());
  if (lengths.empty()) longest = given + (cache ? cache->length() : 0);
  if (!lengths.empty() && total != given)
    throw Error(c.name, fmt::format("texts of {} tokens together", given),
                fmt::format("lengths that add up to {}", total));
  if (longest > limit)
    throw Error(c.name, fmt::format("at most {} tokens", limit),
                fmt::format("{}, {} too many", longest, longest - limit),
                "cut the text, or choose a model with a longer context");
  assert(layers.first >= 0 && layers.first <= c.dims.layers && layers.end <= c.dims.layers);
  assert(layers.first == 0 || (layers.residual.dim(0) == given && !cache));
  for (const Tap* tap : {ctx.tap, ctx.source ? ctx.source->tap : nullptr})
    for (int layer = 0; ctx.tape && tap && layer < c.dims.layers; ++layer)
      if (tap->wants({SiteKind::result, layer}))
        throw Error(name(Site{SiteKind::result, layer}), "no request for it together with gradients", "one");
  if (!c.dims.attends() && ctx.entropy_price != 0)
    throw Error(c.name, "heads with a softmax, whose entropy has a price", "a state in some layer, which has none",
                "set the price of entropy to 0");
}

}  // namespace headscope
