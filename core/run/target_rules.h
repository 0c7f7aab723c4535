#pragma once
// How a model of speech writes: what stands in front of every text (language, task, no time stamps) and which tokens
// are not written, as generation_config.json says.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/model/config.h"
#include "core/trace/head_id.h"

namespace headscope {

struct TargetRules {
  std::vector<std::int32_t> prompt;       ///< behind the token that every target begins with
  std::vector<std::int32_t> never;        ///< never written
  std::vector<std::int32_t> never_first;  ///< not as the first token behind the prompt
  std::vector<HeadId> alignment_heads;    ///< of cross-attention, that tell when a token was said; may be empty
  int smoothing = 7;                      ///< keys that a median of their weights is of
  bool operator==(const TargetRules&) const = default;
};

/// Of generation_config.json in a model's folder, or of config.json, which older files say it in: `forced_decoder_ids`;
/// where these leave the language or the task open, `language` or English by `lang_to_id`, and transcription by
/// `task_to_id`; at the end `no_timestamps_token_id`. `alignment_heads`, `median_filter_width`. Null of models that
/// read no sound. Throws Error on a broken file.
std::shared_ptr<const TargetRules> load_target_rules(const std::filesystem::path& folder, const ModelConfig& decoder);

}  // namespace headscope
