#pragma once
// Generated text as a session keeps it: the prompt, and for every step of every branch how its token was chosen. No
// tensors: from these the same steps can be made again.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/generate/generation.h"
#include "core/run/run_request.h"

namespace headscope {

class JsonView;

struct TranscriptRecord {
  struct Step {
    std::int32_t token = 0;
    Generator::Choice choice;  ///< settings, seed; `given` when the token was
    bool operator==(const Step&) const = default;
  };
  struct Branch {
    int id = 0, parent = -1;
    std::size_t from = 0;     ///< steps shared with the parent
    std::vector<Step> steps;  ///< the shared ones first
    bool operator==(const Branch&) const = default;
  };
  RunRequest prompt;             ///< with its edits; the model is the session's
  std::vector<Branch> branches;  ///< at least one
  std::size_t chosen = 0;
  Generator::Choice next;  ///< what the next token would be drawn with

  bool operator==(const TranscriptRecord&) const = default;
};

/// {"prompt": {…}, "choices": [{temperature, top_k, top_p, seed}, …], "branches": [{"tokens": […], "choices": […],
/// "given": […]}], …}: tokens with the index of their choice, and the steps whose token was given.
nlohmann::ordered_json to_json(const TranscriptRecord& transcript);
/// Throws Error at `where` on anything that makes no sense.
TranscriptRecord transcript_from_json(const JsonView& value);

}  // namespace headscope
