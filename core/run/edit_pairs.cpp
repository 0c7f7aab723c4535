#include "core/run/edit_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/edits/edit.h"

#include "core/base/words.h"
#include "core/edits/text_pairing.h"

namespace headscope {

RunRequest source_request(const RunRequest& request, const std::string& text) {
  RunRequest source = request;
  source.edits.clear();
  if (text.empty()) return source;
  if (!request.sound.empty()) {  // another sound, by its path, beside the same target
    source.sound = text;
    return source;
  }
  if (!request.source.empty() || !request.source_ids.empty()) {  // likewise
    source.source = text;
    source.source_ids.clear();
    return source;
  }
  if (request.image.empty())
    source.text = text;
  else
    source.image = text;  // another picture, by its path
  source.masked.clear();  // positions of the other text
  source.ids.clear();
  source.ids_are_whole = false;
  return source;
}

std::optional<EditPairs> edit_pairs(const LoadedModel& loaded, const RunRequest& request,
                                    const std::vector<std::int32_t>& here, const Intervention& edit) {
  const std::string* text = edit.action->paired_text();
  if (!text) return std::nullopt;
  if (loaded.model->encoder() && edit.target.stack == Stack::encoder)
    return edit_pairs(loaded.encoder(), encoder_request(*loaded.model, request), here, edit);
  EditPairs out{*text, tokenize(loaded, source_request(request, *text)), {}};
  std::vector<std::int32_t> there;
  for (const Token& token : out.tokens) there.push_back(token.id);
  out.partner = align_positions(*edit.action->pairing(), here, there);
  return out;
}

std::optional<std::size_t> same_source(const std::vector<Intervention>& edits, const Intervention& edit) {
  const auto unpaired = [](Intervention each) {
    if (each.action->pairing()) each.action = each.action->paired({});
    return each;
  };
  if (!edit.action->paired_text()) return std::nullopt;
  auto found = std::ranges::find(edits, edit);
  if (found == edits.end()) found = std::ranges::find(edits, unpaired(edit), unpaired);
  if (found == edits.end()) return std::nullopt;
  return static_cast<std::size_t>(found - edits.begin());
}

std::string count_of_pairs(const std::vector<int>& partner) {
  return say("{} of {} positions", std::ranges::count_if(partner, [](int p) { return p >= 0; }), partner.size());
}

std::string stretches_of_pairs(const std::vector<int>& partner) {
  std::string text = count_of_pairs(partner);
  const auto range = [](std::size_t first, std::size_t count) {
    return count == 1 ? fmt::format("{}", first) : fmt::format("{}–{}", first, first + count - 1);
  };
  const char* before = ": ";
  for (std::size_t i = 0; i < partner.size();) {
    if (partner[i] < 0) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < partner.size() && partner[end] == partner[end - 1] + 1) ++end;
    text += before + range(i, end - i) + " from " + range(static_cast<std::size_t>(partner[i]), end - i);
    before = ", ";
    i = end;
  }
  return text;
}

}  // namespace headscope
