#pragma once
// Everything one run left behind, immutable. Metrics, scenes, panels and exporters read only this: a GPT-2 on the CPU,
// an imported .npz and a trace opened from disk are the same thing to them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/trace/attention_map.h"
#include "core/trace/capture.h"
#include "core/trace/model_info.h"

namespace headscope {

struct Token {
  std::int32_t id = 0;
  std::string bytes;         ///< what the token stands for; may be part of a UTF-8 character; "" for a special token
  std::string label;         ///< for people: spaces as ␣, newlines as ⏎, partial bytes as <E2>, specials by name
  int begin = -1, end = -1;  ///< byte span in the text, −1 when it has none (special tokens, ids given directly)
};

struct Trace {
  ModelInfo model;
  std::string text;  ///< "" when the run started from ids
  std::vector<Token> tokens;
  std::vector<AttentionMap> maps;  ///< layer-major, of the recorded layers; may be empty
  std::map<Site, Tensor> sites;    ///< recorded tensors, shapes as in site_table()
  Tensor logits;                   ///< (query, vocab), or (1, vocab) when only the last was kept; may be undefined
  std::string source;              ///< "headscope cpu f32", "imported from x.npz"
  CapturePlan plan;
  double milliseconds = 0;  ///< of the forward pass, metrics inside
  Index merged_tokens = 0;  ///< of how many tokens the positions are words (words.h); 0 = they are tokens

  /// Throws Error when that map was not recorded, or the model has no such head.
  const AttentionMap& map(HeadId head) const;
  std::vector<std::int32_t> ids() const;
};

}  // namespace headscope
