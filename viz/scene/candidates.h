#pragma once
// How one token is chosen: the most probable ones with their probability before and after temperature and cuts, and
// where the random number falls in the cumulative distribution.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct Candidate {
  std::int32_t id = 0;
  std::string label;
  double plain = 0;  ///< softmax(logits)
  double kept = 0;   ///< what is drawn from; 0 = cut
  enum class Cut { none, top_k, top_p, greedy } cut = Cut::none;
};

struct CandidatesOptions {
  std::vector<Candidate> first;          ///< the most probable, in order
  std::size_t vocabulary = 0, kept = 0;  ///< all tokens, and those not cut
  std::optional<std::int32_t> chosen;    ///< id
  std::optional<Candidate> chosen_far;   ///< the chosen one where it is not among the first …
  std::size_t chosen_rank = 0;           ///< … and its rank, from 0
  std::optional<double> random;          ///< in [0, 1)
  double width = 320;
};

/// Marks "candidate.<id>" are rows, "random" the marker. Series: both probabilities over the rank,
/// from 1.
Scene candidates_scene(const CandidatesOptions& options, const Style& style);

}  // namespace headscope
