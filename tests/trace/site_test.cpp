#include "core/trace/hook_names.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

namespace headscope::site_test {

TEST_CASE("every site's name parses back to the site, at any layer") {
  std::set<std::string> names;
  for (const SiteInfo& entry : site_table())
    for (const int layer : {0, 3, 47}) {
      const Site site{entry.kind, entry.per_layer ? layer : -1};
      const auto parsed = parse_site(name(site));
      REQUIRE(parsed.has_value());
      CHECK(*parsed == site);
      names.insert(name(site));
    }
  CHECK(site_table().size() == site_kind_count);
  CHECK(names.size() == 5 + 3 * (site_kind_count - 5));  // four kinds stand outside the blocks
}

TEST_CASE("site names are TransformerLens' hook names") {
  CHECK(name({SiteKind::pattern, 3}) == "blocks.3.attn.hook_pattern");
  CHECK(name({SiteKind::rot_q, 0}) == "blocks.0.attn.hook_rot_q");
  CHECK(name({SiteKind::ln2_normalized, 11}) == "blocks.11.ln2.hook_out");
  CHECK(name({SiteKind::mlp_post, 1}) == "blocks.1.mlp.hook_post");
  CHECK(name({SiteKind::resid_mid, 2}) == "blocks.2.hook_resid_mid");
  CHECK(name({SiteKind::final_normalized}) == "ln_final.hook_out");
  CHECK(name({SiteKind::embed}) == "hook_embed");
  // What older versions called them, which TransformerLens says of what stands before gain and bias.
  CHECK(parse_site("blocks.11.ln2.hook_normalized") == Site{SiteKind::ln2_normalized, 11});
  CHECK(parse_site("ln_final.hook_normalized") == Site{SiteKind::final_normalized});
}

TEST_CASE("sites have the names of TransformerLens' bridges, too") {
  const Site pre{SiteKind::mlp_pre, 2}, linear{SiteKind::mlp_pre_linear, 2};
  CHECK(name({SiteKind::resid_pre, 3}, HookNames::bridge) == "blocks.3.hook_in");
  CHECK(name({SiteKind::resid_mid, 3}, HookNames::bridge) == "blocks.3.ln2.hook_in");
  CHECK(name({SiteKind::resid_post, 3}, HookNames::bridge) == "blocks.3.hook_out");
  CHECK(name({SiteKind::ln1_normalized, 3}, HookNames::bridge) == "blocks.3.ln1.hook_out");
  CHECK(name({SiteKind::q, 0}, HookNames::bridge) == "blocks.0.attn.q.hook_out");
  CHECK(name({SiteKind::rot_k, 0}, HookNames::bridge) == "blocks.0.attn.hook_rot_k");
  CHECK(name({SiteKind::pattern, 0}, HookNames::bridge) == "blocks.0.attn.hook_pattern");
  CHECK(name({SiteKind::z, 0}, HookNames::bridge) == "blocks.0.attn.o.hook_in");
  CHECK(name({SiteKind::attn_out, 0}, HookNames::bridge) == "blocks.0.attn.hook_out");
  CHECK(name({SiteKind::mlp_out, 0}, HookNames::bridge) == "blocks.0.mlp.hook_out");
  CHECK(name({SiteKind::embed}, HookNames::bridge) == "embed.hook_out");
  CHECK(name({SiteKind::logits}, HookNames::bridge) == "unembed.hook_out");
  CHECK(name(pre, HookNames::bridge) == "blocks.2.mlp.in.hook_out");
  CHECK(name(pre, HookNames::bridge_gated) == "blocks.2.mlp.gate.hook_out");
  CHECK(name(linear, HookNames::bridge_gated) == "blocks.2.mlp.in.hook_out");
  for (const HookNames names : {HookNames::transformer_lens, HookNames::bridge, HookNames::bridge_gated}) {
    std::set<std::string> all;
    for (const SiteInfo& entry : site_table())
      for (const int layer : {0, 11}) {
        const Site site{entry.kind, entry.per_layer ? layer : -1};
        if (entry.kind == SiteKind::mlp_pre_linear && names == HookNames::bridge) continue;  // there is no gate
        CAPTURE(name(site, names));
        CHECK(parse_site(name(site, names), names) == site);
        all.insert(name(site, names));
      }
    const std::size_t kinds = site_kind_count - (names == HookNames::bridge);
    CHECK(all.size() == 5 + 2 * (kinds - 5));
    CHECK(parse_hook_names(text_of(names)) == names);
  }
  for (const char* text : {"blocks.0.attn.hook_q", "blocks.0.hook_resid_pre", "hook_out", "blocks.hook_out",
                           "blocks.00.hook_in", "logits", "blocks.0.mlp.gate.hook_out"})
    CHECK_MESSAGE(!parse_site(text, HookNames::bridge).has_value(), text);
}

TEST_CASE("what is not exactly a site's name is not parsed") {
  for (const char* text : {"", "blocks.", "blocks.3", "blocks.3.", "blocks..attn.hook_q", "blocks.-1.attn.hook_q",
                           "blocks.03.attn.hook_q", "blocks.3.attn.hook_q ", "blocks.99999999999.attn.hook_q",
                           "blocks.{i}.attn.hook_q", "blocks.3.hook_embed", "attn.hook_q", "blocks.1x.attn.hook_q"})
    CHECK_MESSAGE(!parse_site(text).has_value(), text);
}

TEST_CASE("site kinds are known by the abbreviations notebooks use") {
  CHECK(parse_site_kind("pattern") == SiteKind::pattern);
  CHECK(parse_site_kind("q") == SiteKind::q);
  CHECK(parse_site_kind("hook_q") == SiteKind::q);
  CHECK(parse_site_kind("attn.hook_rot_k") == SiteKind::rot_k);
  CHECK(parse_site_kind("resid_pre") == SiteKind::resid_pre);
  CHECK(parse_site_kind("mlp_out") == SiteKind::mlp_out);
  CHECK(parse_site_kind("mlp_pre") == SiteKind::mlp_pre);
  CHECK(parse_site_kind("pre_linear") == SiteKind::mlp_pre_linear);
  CHECK(parse_site_kind("ln1_normalized") == SiteKind::ln1_normalized);
  CHECK(parse_site_kind("final_normalized") == SiteKind::final_normalized);
  CHECK(parse_site_kind("blocks.{i}.attn.hook_z") == SiteKind::z);
  CHECK(parse_site_kind("logits") == SiteKind::logits);
  CHECK(parse_site_kind("ln1.hook_out") == SiteKind::ln1_normalized);
  CHECK(parse_site_kind("ln2_out") == SiteKind::ln2_normalized);
  CHECK(parse_site_kind("final_out") == SiteKind::final_normalized);
  CHECK(!parse_site_kind("normalized").has_value());  // three norms ended so
  CHECK(!parse_site_kind("hook_out").has_value());    // … and end so
  CHECK(!parse_site_kind("out").has_value());
  CHECK(!parse_site_kind("").has_value());
  CHECK(!parse_site_kind("keys").has_value());
}

}  // namespace headscope::site_test
