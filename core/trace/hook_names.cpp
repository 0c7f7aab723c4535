#include "core/trace/hook_names.h"

#include <charconv>
#include <utility>

#include "core/base/named_values.h"

namespace headscope {

namespace {

constexpr NamedValue<HookNames> hook_spellings[] = {{"transformer-lens", HookNames::transformer_lens},
                                                    {"bridge", HookNames::bridge},
                                                    {"bridge-gated", HookNames::bridge_gated}};

/// Without "blocks.{i}." where there is one. Empty: as TransformerLens always called it.
std::string_view bridge_tail(SiteKind kind, bool gated) {
  switch (kind) {
    case SiteKind::embed:
      return "embed.hook_out";
    case SiteKind::pos_embed:
      return "pos_embed.hook_out";
    case SiteKind::resid_pre:
      return "hook_in";
    case SiteKind::q:
      return "attn.q.hook_out";
    case SiteKind::k:
      return "attn.k.hook_out";
    case SiteKind::v:
      return "attn.v.hook_out";
    case SiteKind::z:
      return "attn.o.hook_in";
    case SiteKind::attn_out:
      return "attn.hook_out";
    case SiteKind::resid_mid:
      return "ln2.hook_in";
    case SiteKind::router_weights:
      return "mlp.hook_router_scores";
    case SiteKind::mlp_pre:
      return gated ? "mlp.gate.hook_out" : "mlp.in.hook_out";
    case SiteKind::mlp_pre_linear:
      return "mlp.in.hook_out";
    case SiteKind::mlp_post:
      return "mlp.out.hook_in";
    case SiteKind::mlp_out:
      return "mlp.hook_out";
    case SiteKind::resid_post:
      return "hook_out";
    case SiteKind::logits:
      return "unembed.hook_out";
    default:
      return {};
  }
}

}  // namespace

std::string name(Site site, HookNames names) {
  const std::string_view tail = names == HookNames::transformer_lens
                                    ? std::string_view{}
                                    : bridge_tail(site.kind, names == HookNames::bridge_gated);
  if (tail.empty()) return name(site);
  return site.layer < 0 ? std::string(tail) : "blocks." + std::to_string(site.layer) + "." + std::string(tail);
}

std::string name(Site site, Stack stack, HookNames names) {
  const std::string own = name(site, names);
  if (stack == Stack::only) return own;
  if (stack == Stack::encoder) return "encoder." + own;
  // A decoder's block has cross-attention, with a norm of its own, between its attention and its MLP.
  const bool lens = names == HookNames::transformer_lens, cross = stack == Stack::cross;
  const std::pair<std::string_view, std::string_view> other[] = {
      {cross ? ".attn." : "", ".cross_attn."},
      {cross ? ".hook_attn_out" : "", ".hook_cross_attn_out"},
      {cross ? ".ln1." : ".ln2.", cross ? ".ln2." : ".ln3."},
      {cross ? ".hook_resid_pre" : ".hook_resid_mid", cross ? ".hook_resid_mid" : ".hook_resid_mid_cross"},
      {cross && !lens && site.kind == SiteKind::resid_pre ? ".hook_in" : "", ".ln2.hook_in"}};
  std::string text = own;
  for (const auto& [from, to] : other)
    if (const auto at = from.empty() ? std::string::npos : text.find(from); at != std::string::npos) {
      text.replace(at, from.size(), to);
      break;
    }
  return "decoder." + text;
}

std::optional<Site> parse_site(std::string_view text, HookNames names) {
  if (names == HookNames::transformer_lens) return parse_site(text);
  const bool gated = names == HookNames::bridge_gated;
  // With the tail of a kind put back to what parse_site() knows.
  for (const SiteInfo& entry : site_table()) {
    const std::string_view tail = bridge_tail(entry.kind, gated);
    if (entry.kind == SiteKind::mlp_pre_linear && !gated) continue;
    if (tail.empty() || !text.ends_with(tail)) continue;
    const std::string_view head = text.substr(0, text.size() - tail.size());
    const std::string_view own = entry.pattern.substr(entry.per_layer ? entry.pattern.find("}.") + 2 : 0);
    if (const auto site = parse_site(std::string(head) + std::string(own)); site && name(*site, names) == text)
      return site;
  }
  const auto site = parse_site(text);
  return site && name(*site, names) == text ? site : std::nullopt;
}

std::optional<Site> parse_site(std::string_view text, Stack stack, HookNames names) {
  if (stack == Stack::only) return parse_site(text, names);
  constexpr std::string_view blocks = "blocks.";
  int layer = -1;
  if (const auto at = text.find(blocks); at != std::string_view::npos)
    std::from_chars(text.data() + at + blocks.size(), text.data() + text.size(), layer);
  for (const SiteInfo& entry : site_table())
    if (entry.per_layer == (layer >= 0))
      if (const Site site{entry.kind, layer}; name(site, stack, names) == text) return site;
  return std::nullopt;
}

std::string_view text_of(HookNames names) {
  return name_in(hook_spellings, names);
}

std::optional<HookNames> parse_hook_names(std::string_view text) {
  return value_in(hook_spellings, text);
}

}  // namespace headscope
