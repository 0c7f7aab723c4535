#include "core/train/batches.h"

#include <algorithm>

namespace headscope {

std::vector<std::int32_t> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const Token& token : tokenizer.encode(text)) ids.push_back(token.id);
  return ids;
}

std::vector<Batch> batches_of(const std::vector<std::vector<std::int32_t>>& rows, int sequences, std::int32_t end,
                              bool ends) {
  std::vector<Batch> batches;
  for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(sequences)) {
    const std::size_t count = std::min(rows.size() - at, static_cast<std::size_t>(sequences));
    std::size_t longest = 0;
    for (std::size_t i = at; i < at + count; ++i) longest = std::max(longest, rows[i].size() + (ends ? 1 : 0));
    Batch& batch = batches.emplace_back();
    batch.sequences = static_cast<int>(count);
    batch.length = static_cast<int>(longest);
    for (std::size_t i = at; i < at + count; ++i) {
      std::vector<std::int32_t> targets = rows[i];
      if (ends) targets.push_back(end);
      std::vector<std::int32_t> tokens{end};
      tokens.insert(tokens.end(), targets.begin(), targets.end() - 1);
      tokens.resize(longest, end);
      targets.resize(longest, -1);
      batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
      batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
    }
  }
  return batches;
}

std::int64_t counted(const std::vector<Batch>& batches) {
  std::int64_t count = 0;
  for (const Batch& batch : batches) count += std::ranges::count_if(batch.targets, [](auto id) { return id >= 0; });
  return count;
}

}  // namespace headscope
