#include "app/state/step_names.h"
#include "core/base/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace headscope {

namespace {

/// The beginning of a text in one line.
std::string beginning(const std::string& text) {
  constexpr std::size_t most = 40;
  std::size_t end = std::min(text.size(), most);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  std::string line = text.substr(0, end) + (end < text.size() ? "…" : "");
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string edits_name(const std::vector<Intervention>& before, const std::vector<Intervention>& after) {
  const auto all_but_switches = [](Intervention a, const Intervention& b) {
    a.enabled = b.enabled;
    return a == b;
  };
  if (before.size() == after.size()) {
    std::size_t changed = 0, first = before.size();
    for (std::size_t i = 0; i < before.size(); ++i)
      if (before[i] != after[i]) first = std::min(first, i), ++changed;
    if (std::ranges::is_permutation(before, after)) return said("Edits in another order");
    const bool switches = std::ranges::equal(before, after, all_but_switches);
    if (switches) {
      const std::string what = changed == 1 ? describe(after[first]) : say("{} edits", changed);
      return after[first].enabled ? say("Switched on {}", what) : say("Switched off {}", what);
    }
    if (changed == 1) return say("Changed to {}", describe(after[first]));
    return say("{} edits changed", changed);
  }
  // One that only one of the lists holds.
  const auto extra = [](const std::vector<Intervention>& longer, const std::vector<Intervention>& shorter) {
    return *std::ranges::find_if(longer, [&](const Intervention& edit) {
      return std::ranges::count(longer, edit) > std::ranges::count(shorter, edit);
    });
  };
  if (after.size() == before.size() + 1) return say("Edit {}", describe(extra(after, before)));
  if (before.size() == after.size() + 1) return say("Removed {}", describe(extra(before, after)));
  if (after.empty()) return said("All edits removed");
  return after.size() > before.size() ? say("{} edits added", after.size() - before.size())
                                      : say("{} edits removed", before.size() - after.size());
}

}  // namespace

std::string step_name(const Document& before, const Document& after) {
  if (before.model != after.model) return say("Model {}", after.model.filename().string());
  if (before.text != after.text)
    return after.text.empty() ? said("Text removed") : say("Text: {}", beginning(after.text));
  if (before.source != after.source)
    return after.source.empty() ? said("Source removed") : say("Source: {}", beginning(after.source));
  if (before.source_ids != after.source_ids) return say("{} token ids of the source", after.source_ids.size());
  if (before.sound != after.sound) return say("Sound {}", after.sound.filename().string());
  if (before.image != after.image) return say("Picture {}", after.image.filename().string());
  if (before.ids != after.ids) return say("{} token ids", after.ids.size());
  if (before.masked != after.masked) {
    const auto was = static_cast<int>(before.masked.size()), now = static_cast<int>(after.masked.size());
    if (now == 0) return said("Nothing masked");
    if (now == was + 1) return said("Masked a token");
    if (now == was - 1) return said("A token shown again");
    return say("Masked {} tokens", now);
  }
  if (before.edits != after.edits) return edits_name(before.edits, after.edits);
  if (before.by_hand != after.by_hand) return said("Matrices by hand");
  if (before.too_long != after.too_long) return said("Another part of the text");
  if (before.add_bos != after.add_bos) return said("Beginning of the sequence");
  if (before.parse_special != after.parse_special)
    return after.parse_special ? said("Special tokens read") : said("Special tokens read as text");
  if (before.stack != after.stack)
    return after.stack == Stack::encoder ? said("The encoder")
           : after.stack == Stack::cross ? said("Cross-attention")
                                         : said("The decoder");
  if (before.selected != after.selected) return say("Head {}.{}", after.selected.layer, after.selected.head);
  if (before.query != after.query || before.key != after.key) {
    if (!after.query) return said("Unpinned");
    return after.key ? say("Row {}, key {}", *after.query, *after.key) : say("Row {}", *after.query);
  }
  return said("Nothing");
}

}  // namespace headscope
