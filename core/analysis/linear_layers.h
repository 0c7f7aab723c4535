#pragma once
// Which layers of a model may become linear: on one text, the loss of the model with the attention of single layers
// and of sets of layers run by a linear mechanism (core/edits/mechanism_edit.h), all other weights as they are.
//
// The question is that of Jet-Nemotron (Gu et al., Jet-Nemotron: Efficient Language Model with Post Neural Architecture
// Search, 2025): of a trained model, which few layers have to keep full attention? There a super network is trained
// first, and a beam search over placements asks tasks. Here nothing is trained, and the search is greedy on the loss of
// one text:
//   restore: begins with every layer linear. In each round every layer that is linear gets softmax back on trial; the
//     one that leaves the lowest loss keeps it.
//   replace: begins with every layer softmax. In each round every layer that has softmax is made linear on trial; the
//     one that leaves the lowest loss stays linear.
// What a decoder answers comes after the last token of the text, and is in no loss of it: a set of layers that leaves
// the loss as it is may answer otherwise. Hence both are told of a set, and the search may be asked to go by
// KL(before ‖ after) of the answer instead.
// Either gives a set of every size k, not proven to be the best of its size. Beside it stand what needs no search: the
// k layers spaced evenly, the last of each stretch, as hybrids place theirs (MiniMax-01, 2025: the last of every
// eight), and k layers drawn at random.
// A set of layers is measured once, however many of these ask for it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/analysis/edit_probe.h"
#include "core/analysis/sweep.h"

namespace headscope {

struct LinearLayersAsked {
  /// Its edits stay in force, but for those that have heads run a mechanism already: that is what is asked.
  RunRequest run;
  std::string mechanism = "linear map=elu normalise=sum";  ///< as parse_mechanism reads it
  enum class Method { restore, replace } method = Method::restore;
  int draws = 3;  ///< orders of layers drawn at random, ≥ 0
  std::uint64_t seed = 1;
  Stack stack = Stack::only;  ///< whose self-attention
  /// What sets are held against: the loss of the text, or KL(before ‖ after) of the answer.
  enum class By { loss, answer } by = By::loss;
  bool operator==(const LinearLayersAsked&) const = default;
};

/// What the model does with a set of layers linear.
struct LinearOutcome : Outcome {
  std::int32_t answer = -1;  ///< the most probable token or class; −1: the model is asked for none
  LinearOutcome() = default;
  LinearOutcome(const Outcome& outcome, std::int32_t said = -1) : Outcome(outcome), answer(said) {}
};

struct LinearLayers {
  struct Step {
    int layer = 0;  ///< that got softmax back, or was made linear
    LinearOutcome outcome;
  };
  struct Trial {
    int round = 0, layer = 0;
    LinearOutcome outcome;
  };
  /// How the answers are called, for sentences.
  using Namer = std::function<std::string(std::int32_t)>;
  LinearLayersAsked asked;
  std::shared_ptr<const Trace> before_trace;
  int layers = 0;
  LinearOutcome before;                ///< every layer softmax
  LinearOutcome none;                  ///< every layer linear; NaN until it is known
  std::vector<LinearOutcome> alone;    ///< [layer]: that layer linear, all others softmax; as far as they are known
  std::vector<LinearOutcome> without;  ///< [layer]: that layer's attention adds nothing at all; likewise
  std::vector<LinearOutcome> even;     ///< [k − 1]: k layers spaced evenly keep softmax, 0 < k < layers; likewise
  std::vector<Step> order;             ///< the greedy search's; likewise
  std::vector<Trial> trials;           ///< what each of its rounds tried, in order
  /// [draw][k − 1]: the first k of an order drawn at random keep softmax
  std::vector<std::vector<LinearOutcome>> drawn;
  std::vector<std::vector<int>> drawn_orders;  ///< [draw]
  /// Sets are held against KL(before ‖ after): it was asked for, or the text has nothing that a loss could be of.
  bool by_kl = false;

  /// What is minimised: the loss, or the KL, in nats.
  double cost(const Outcome& outcome) const { return by_kl ? outcome.kl : outcome.loss; }
  /// How far it lies above the model as it is.
  double rise(const Outcome& outcome) const { return cost(outcome) - cost(before); }
  /// Of the greedy search's set of `kept` layers with softmax; NaN while it is not known. REQUIRES 0 ≤ kept ≤ layers.
  double greedy(int kept) const;
  /// The same set's outcome; null while it is not known.
  const LinearOutcome* greedy_outcome(int kept) const;
  /// Of the evenly spaced ones; likewise.
  double evenly(int kept) const;
  /// The greedy set, ascending. REQUIRES that greedy(kept) is known.
  std::vector<int> kept_layers(int kept) const;
  /// The fewest layers with softmax among the greedy sets known whose rise is at most `allowed`; −1 while none is.
  int fewest(double allowed) const;
  int fewest_evenly(double allowed) const;
  /// No layer has anything to choose between: the text has one token, or the model does the same with every layer
  /// linear, as where no token sees more than one key.
  bool nothing_to_tell() const;
  /// What becomes of the answer: ", but the answer changes: green → black, KL 3.140 nats"; "" where there is none.
  std::string answer_words(const LinearOutcome& with, const Namer& name = {}) const;
  /// What the search found, in words: "2 of 4 layers may become linear, if layers 0 and 1 keep softmax: loss 0.852 →
  /// 0.869 nats, but the answer changes …". "" while it goes on, and where no set is within what is allowed.
  std::string finding(double allowed, const Namer& name = {}) const;
};

/// ⌊(i + 1) layers ÷ kept⌋ − 1 for i = 0 … kept − 1: the last layer of each stretch. REQUIRES 0 ≤ kept ≤ layers.
std::vector<int> evenly_spaced_layers(int layers, int kept);
/// The edits that leave softmax to the layers `kept` and have all others of that stack run the mechanism.
std::vector<Intervention> linear_layer_edits(const std::string& mechanism, int layers, const std::vector<int>& kept,
                                             Stack stack = Stack::only);
/// `edits` without those that have heads run a mechanism at all positions.
std::vector<Intervention> without_mechanisms(std::vector<Intervention> edits);
/// Mechanisms whose work grows with the text's length alone and that keep no key for later, in the catalogue's order:
/// what a layer may become. `causal`: whether every query sees itself and what came before, which some ask for.
std::vector<std::string> linear_mechanisms(bool causal = true);

class LinearLayersSearch final : public Sweep {
 public:
  using Result = LinearLayers;
  /// Throws Error on a mechanism that cannot stand in for softmax attention, or is none of linear_mechanisms().
  LinearLayersSearch(LoadedModel loaded, LinearLayersAsked asked);
  /// The first step throws Error where the model is asked nothing on this text; the second where a layer cannot run the
  /// mechanism.
  void step(const Ctx& ctx) override;
  int done() const override { return done_; }
  int total() const override { return total_; }
  bool finished() const override { return probe_ && done_ == total_; }
  double share() const override { return total_ ? static_cast<double>(done_) / total_ : 0; }
  std::shared_ptr<const LinearLayers> result() const;

 private:
  void prepare(const Ctx& ctx);
  void try_next(const Ctx& ctx);
  const LinearOutcome& outcome_of(std::vector<int> kept, const Ctx& ctx);
  bool restoring() const { return known_.asked.method == LinearLayersAsked::Method::restore; }

  LoadedModel loaded_;
  std::optional<EditProbe> probe_;
  LinearLayers known_;
  std::map<std::vector<int>, LinearOutcome> measured_;  // by the layers that keep softmax, ascending
  std::vector<int> kept_;                               // softmax in this round of the search, ascending
  std::vector<int> left_;                               // what this round tries, ascending …
  std::size_t next_ = 0;                                // … and the next of them
  std::optional<LinearLayers::Step> best_;              // so far in this round
  std::optional<std::vector<int>> base_;                // whose pass the probe remembers
  int done_ = 0, total_ = 0;
};

}  // namespace headscope
