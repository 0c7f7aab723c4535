#pragma once
// Beam search: the most probable continuations looked for several at a time (Lowerre, The Harpy Speech Recognition
// System, 1976; Sutskever et al., Sequence to Sequence Learning with Neural Networks, 2014). At every step the best
// continuations of all texts that are kept are told apart: those that end are finished, the `width` best of the others
// are kept, the rest is dropped. Nothing is drawn at random.
//
// A text of n tokens behind the prompt scores Σ ln p / n^length_penalty. What counts, what is kept and when the search
// ends are those of the library `transformers` (generate with num_beams, do_sample=False), so that the same model
// writes the same beams.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/named_values.h"
#include "core/generate/generation.h"

namespace headscope {

struct BeamSettings {
  int width = 4;              ///< texts that are kept at each step
  double length_penalty = 1;  ///< above 0 longer texts are favoured, below 0 shorter ones; 0: the sum alone
  /// Once `width` texts are finished (`early_stopping` of the library: False, True, "never"):
  enum class Stopping {
    likely,  ///< when the best kept text, as long as it is now, scores less than the worst finished one
    full,    ///< at once
    never    ///< when no text could still become better, however long it grew
  } stopping = Stopping::likely;
  int tokens = 32;                       ///< behind the prompt, at most
  std::optional<std::int32_t> end = {};  ///< the token that ends texts; none: all grow to the last step
  bool operator==(const BeamSettings&) const = default;
};
constexpr int most_beams = 64, most_length_penalty = 50;
/// As the library's `early_stopping` is written.
inline constexpr NamedValue<BeamSettings::Stopping> stopping_names[] = {{"false", BeamSettings::Stopping::likely},
                                                                        {"true", BeamSettings::Stopping::full},
                                                                        {"never", BeamSettings::Stopping::never}};
/// Throws Error at `where` when a number is out of range.
void check(const BeamSettings& settings, const std::string& where);

/// One continuation that was among the best of its step: 2 · width of them are looked at, so that enough are left to go
/// on with when half of them end.
struct BeamNode {
  std::optional<std::size_t> parent = {};  ///< the node it continues; none: the prompt
  int step = 1;                            ///< tokens behind the prompt, its own included
  std::int32_t token = 0;
  double log_probability = 0;  ///< ln softmax(logits)[token] behind its parent, in nats
  double sum = 0;              ///< of its own and those of all nodes it continues
  enum class Fate { kept, finished, dropped } fate = Fate::dropped;
};
inline constexpr NamedValue<BeamNode::Fate> fate_names[] = {
    {"kept", BeamNode::Fate::kept}, {"finished", BeamNode::Fate::finished}, {"dropped", BeamNode::Fate::dropped}};

/// A finished text.
struct Beam {
  std::size_t node = 0;  ///< its last token's
  double score = 0;      ///< sum / tokens^length_penalty
  bool ended = false;    ///< by the token that ends texts; else there was no further step
};

struct BeamTree {
  std::vector<std::int32_t> prompt;
  std::vector<BeamNode> nodes;  ///< step after step, those of a step by their sum, highest first
  std::vector<Beam> beams;      ///< the `width` best finished texts, best first
  /// The nodes from the first token behind the prompt to this one.
  std::vector<std::size_t> path(std::size_t node) const;
  std::vector<std::int32_t> tokens(std::size_t node) const;  ///< of path()
};

/// The same with no more tokens than a prompt of this length leaves room for: the last is not read again.
BeamSettings inside_context(BeamSettings settings, const Model& model, std::size_t prompt);

/// The search without a model: whoever reads the texts in live() says what comes next, until done().
class BeamSearch {
 public:
  BeamSearch(std::vector<std::int32_t> prompt, BeamSettings settings);
  bool done() const { return live_.empty(); }
  /// Which texts are to be read next, best first, as the node that they end with; none: the prompt.
  const std::vector<std::optional<std::size_t>>& live() const { return live_; }
  /// `logits` (vocab) behind each of live().
  void advance(std::span<const Tensor> logits);
  const BeamTree& tree() const { return tree_; }

 private:
  bool goes_on(double best_sum) const;
  BeamSettings settings_;
  BeamTree tree_;
  std::vector<std::optional<std::size_t>> live_{std::nullopt};
  int step_ = 0;
};

/// `like`: see Generator; its edits act on every text. Each text has a key-value cache of its own. Ends at the latest
/// where the context does. Throws as Generator::step.
BeamTree beam_search(const LoadedModel& model, std::span<const std::int32_t> prompt, const BeamSettings& settings,
                     const RunRequest& like, const Ctx& ctx);

}  // namespace headscope
