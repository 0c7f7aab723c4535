#pragma once
// The names under which notebooks know sites. name() (site.h) writes those of TransformerLens' HookedTransformer, up to
// version 3. Version 4 has bridges around Hugging Face's modules in its place, whose hooks stand at modules: blocks.0's
// hook_q is blocks.0.attn.q.hook_out there.

#include <optional>
#include <string>
#include <string_view>

#include "core/trace/site.h"
#include "core/trace/stack.h"

namespace headscope {

enum class HookNames {
  transformer_lens,
  bridge,
  bridge_gated,  ///< of models whose MLP has a gate: blocks.0.mlp.in is then its branch without activation function
};

std::string name(Site site, HookNames names);
/// With the stack that the site is of: "encoder.blocks.0.attn.hook_q", "decoder.blocks.0.cross_attn.q.hook_out".
std::string name(Site site, Stack stack, HookNames names);
std::optional<Site> parse_site(std::string_view text, HookNames names);
std::optional<Site> parse_site(std::string_view text, Stack stack, HookNames names);

/// "transformer-lens", "bridge", "bridge-gated".
std::string_view text_of(HookNames names);
std::optional<HookNames> parse_hook_names(std::string_view text);

}  // namespace headscope
