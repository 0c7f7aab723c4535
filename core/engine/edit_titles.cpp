#include "core/engine/edit_titles.h"

#include <string>
#include <utility>
#include <vector>

namespace headscope {

namespace {

using Kind = EditField::Kind;

/// What the forms cannot say of their capitals. `of` is the edit's lead, "" = of any edit.
struct Described {
  std::string_view of;
  EditField field;
};

std::vector<std::string> patch_site_names() {
  std::vector<std::string> names;
  for (const SiteKind site : patch_sites()) {
    const std::string words = text_of(EditAction(Patch{.align = {}, .site = site, .text = "x"}));
    const auto begin = words.find(' ') + 1;
    names.push_back(words.substr(begin, words.find(' ', begin) - begin));
  }
  return names;
}

const std::vector<Described>& descriptions() {
  static const std::vector<Described> all{
      {"temperature", {Kind::number, "TAU", "Temperature", "1 is the model's own", 0.05, 20, true}},
      {"scale by length", {Kind::whole, "M", "Trained length", "tokens of a row that stays as it is", 2, 4096, true}},
      {"drop first", {Kind::whole, "COUNT", "Tokens", "from the beginning of the text", 1, 16}},
      {"weight", {Kind::position, "QUERY", "Row", "the token that looks"}},
      {"weight", {Kind::position, "KEY", "Key", "the token that it looks at"}},
      {"weight", {Kind::number, "VALUE", "Weight", "the others of the row share what is left", 0, 1}},
      {"", {Kind::text, "TEXT", "Other text", "what the values are taken from"}},
      {"ablate",
       {Kind::line,
        "TEXT …",
        "Reference texts",
        "each in quotes, one behind the other",
        0,
        0,
        false,
        {},
        "\"Another text.\""}},
      {"", {Kind::word, "I:J,…", "Pairs", "position here:position there, separated by commas", 0, 0, false, {}, "0:0"}},
      {"", {Kind::whole, "SEED", "Seed", "another number, another draw", 1, 100, false, {}, "1"}},
      {"patch", {Kind::choice, "SITE", "Activation", "", 0, 0, false, patch_site_names(), "z"}},
      {"position", {Kind::number, "B", "Base", "of the slowest rotation", 10, 1e6, true, {}, "10000"}},
      {"position", {Kind::number, "FACTOR", "Factor", "how much longer texts may be", 1, 64, true, {}, "2"}},
      {"position", {Kind::whole, "MAX", "Largest distance", "beyond it all share a bucket", 8, 1024, true, {}, "128"}},
      {"position",
       {Kind::word, "B0,B1,…", "Biases", "a number per bucket of distances", 0, 0, false, {}, "0,-0.5,-1,-2"}},
      {"position", {Kind::whole, "S", "Tokens in a chunk", "", 1, 4096, true, {}, "32"}},
      {"position", {Kind::whole, "N", "Positions", "all tokens stand so many later", 0, 1024, false, {}, "16"}},
      {"share keys", {Kind::whole, "GROUPS", "Groups", "1: all heads share keys and values", 1, 16}},
      {"latent keys", {Kind::whole, "RANK", "Rank", "numbers kept per token", 1, 256, true}},
      {"singular",
       {Kind::line,
        "FIRST..LAST=Z …",
        "Scales",
        "1=0 takes the largest value out, 1..4=0.5 halves four, 9..=0 the rest",
        0,
        0,
        false,
        {},
        "1=0"}},
  };
  return all;
}

/// How the edits are grouped in a chooser; one that is not named here stands by itself.
constexpr std::pair<std::string_view, std::string_view> groups[] = {{"temperature", "Attention weights"},
                                                                    {"mask", "Attention weights"},
                                                                    {"scale by length", "Attention weights"},
                                                                    {"drop first", "Attention weights"},
                                                                    {"pattern", "Attention weights"},
                                                                    {"weight", "Attention weights"},
                                                                    {"freeze pattern", "Attention weights"},
                                                                    {"mechanism", "Attention weights"},
                                                                    {"ablate", "Activations"},
                                                                    {"patch", "Activations"},
                                                                    {"switch off", "The block"},
                                                                    {"post norm", "The block"},
                                                                    {"position", "Positions"},
                                                                    {"share keys", "Keys and values"},
                                                                    {"latent keys", "Keys and values"},
                                                                    {"singular", "Weight matrices"}};

bool begins_with_words(std::string_view text, std::string_view words) {
  return text.starts_with(words) && (text.size() == words.size() || text[words.size()] == ' ');
}

}  // namespace

EditField described_field(std::string_view form, std::string_view name) {
  for (const Described& each : descriptions())
    if (each.field.name == name && (each.of.empty() || begins_with_words(form, each.of))) return each.field;
  EditField unknown{Kind::word, std::string(name), std::string(name), ""};
  if (name.ends_with("…")) unknown.kind = Kind::line;
  if (name.find(',') != std::string_view::npos) unknown.kind = Kind::word;
  return unknown;
}

std::string_view group_of_lead(std::string_view lead) {
  for (const auto& [named, group] : groups)
    if (named == lead) return group;
  return "Other";
}

}  // namespace headscope
