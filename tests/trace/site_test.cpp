#include "core/trace/site.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace headscope;

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
  CHECK(names.size() == 4 + 3 * (site_kind_count - 4));  // four kinds stand outside the blocks
}

TEST_CASE("site names are TransformerLens' hook names") {
  CHECK(name({SiteKind::pattern, 3}) == "blocks.3.attn.hook_pattern");
  CHECK(name({SiteKind::rot_q, 0}) == "blocks.0.attn.hook_rot_q");
  CHECK(name({SiteKind::ln2_normalized, 11}) == "blocks.11.ln2.hook_normalized");
  CHECK(name({SiteKind::mlp_post, 1}) == "blocks.1.mlp.hook_post");
  CHECK(name({SiteKind::resid_mid, 2}) == "blocks.2.hook_resid_mid");
  CHECK(name({SiteKind::final_normalized}) == "ln_final.hook_normalized");
  CHECK(name({SiteKind::embed}) == "hook_embed");
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
  CHECK(!parse_site_kind("normalized").has_value());  // three norms end so
  CHECK(!parse_site_kind("").has_value());
  CHECK(!parse_site_kind("keys").has_value());
}
