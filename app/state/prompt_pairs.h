#pragma once
// Pairs of prompts that come with the program, for activation patching: assets/examples/prompt_pairs.json.

#include <string>
#include <vector>

namespace headscope {

struct PromptPair {
  std::string title;
  std::vector<std::string> models;  ///< names of the bundled models that it is made for; empty = any
  std::string clean, corrupted;
  std::string right, wrong;  ///< the answers, one token each
  bool masked = false;       ///< of encoders: [MASK] in both stands for the model's token for what it is asked for
  std::string target = {};   ///< of encoder-decoders, whose prompts are sources: how far the target is written
};

/// Throws Error naming the file and what is wrong with it; empty when the file is not there.
std::vector<PromptPair> load_prompt_pairs();
/// The pair with that token, as it is written, in the place of [MASK].
PromptPair masked_by(PromptPair pair, const std::string& token);

}  // namespace headscope
