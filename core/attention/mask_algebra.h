#pragma once
// Masks made of masks. The parts say yes or no only (no biases), and their ranges of keys depend on the number of keys
// by being cut to it only: a part that counts keys from the end of the text can be joined by `both` alone.

#include <memory>
#include <vector>

#include "core/attention/cell_set.h"
#include "core/trace/attention_rule.h"

namespace headscope {

using MaskParts = std::vector<std::shared_ptr<const AttentionRule>>;

/// What every part sees. `text` is what describe() gives.
std::shared_ptr<const AttentionRule> both(MaskParts parts, std::string text);
/// What some part sees.
std::shared_ptr<const AttentionRule> either(MaskParts parts, std::string text);
/// What `part` does not see, later keys included.
std::shared_ptr<const AttentionRule> opposite(std::shared_ptr<const AttentionRule> part, std::string text);
/// The listed cells and no others.
std::shared_ptr<const AttentionRule> only(CellSet cells, std::string text);

}  // namespace headscope
