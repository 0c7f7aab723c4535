#pragma once
// What an intervention does, as plain values. Every action has words ("ablate zero", "weight 5 2 0.8") that read back
// to the same value; those words are its form in files, on the command line and on screen.
// A new action is one struct here, its line in EditAction, its entry in the table of edit_action.cpp, and its arm in
// intervention_tap.cpp.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/position_edit.h"
#include "core/model/weights.h"
#include "core/trace/site.h"

namespace headscope {

/// Scores are divided by τ before the softmax, biases of positions included: (q·k/√d − m · distance) / τ. Below 1
/// sharper, above 1 flatter.
struct SetTemperature {
  static constexpr double lowest = 1e-6, highest = 1e6;
  double tau = 1;
  bool operator==(const SetTemperature&) const = default;
};

/// The mask takes the place of the model's own (causal) one. `spec` as in core/attention/masks.h.
struct SetMask {
  std::string spec = "causal";
  bool operator==(const SetMask&) const = default;
};

/// Scores of a row that sees n keys under the head's mask are multiplied by ln n / ln m, so that a longer row is not
/// flatter (Su, Entropy-invariant attention, 2021; Chiang & Cholak, Overcoming a Theoretical Limitation of
/// Self-Attention, 2022).
struct ScaleByLength {
  int trained = 512;  ///< m, the row length at which nothing changes
  bool operator==(const ScaleByLength&) const = default;
};

/// Nobody sees the first `count` tokens. Renormalised, the others share their weight; else it is lost.
struct DropFirst {
  int count = 1;
  bool renormalize = true;
  bool operator==(const DropFirst&) const = default;
};

/// The heads look by rule, whatever their queries and keys say, at visible keys only.
struct ForcePattern {
  enum class Shape { uniform, previous, self, first } shape = Shape::uniform;
  bool operator==(const ForcePattern&) const = default;
};

/// One weight of one row; the other weights of the row keep their ratios and share the rest. A masked key can be given
/// weight too. A row with no other key stays as it is. After an edit that writes the row's weights themselves (a frozen
/// pattern, a mechanism, lost weight) it changes those; one listed before is replaced by them.
struct SetWeight {
  int query = 0, key = 0;  ///< positions; below 0 they count from the end
  double weight = 1;       ///< 0…1
  bool operator==(const SetWeight&) const = default;
};

/// Which position of another text stands for a position of this one.
struct TextPairing {
  enum class By { start, end, tokens, hand } by;
  /// By hand: position here, position there, each at most once; from 0.
  std::vector<std::pair<int, int>> pairs;
  // Not explicit: most pairings are a word.
  TextPairing(By how = By::start, std::vector<std::pair<int, int>> by_hand = {}) : by(how), pairs(std::move(by_hand)) {}
  bool operator==(const TextPairing&) const = default;
};
/// "start", "end", "tokens" (as a difference of the two texts pairs them), or pairs, "0:0,3:4"; "none" is no pair.
/// Throws Error at `where`.
std::string text_of(const TextPairing& pairing);
TextPairing parse_pairing(std::string_view word, const std::string& where);

/// The pattern that the heads had on another text, or (`text` empty) on this one before any edit. Rows without a
/// partner in the other text are left alone. A row takes the weights of its partner row at paired keys; what that row
/// gave to keys without a partner (or, where pairs cross, to later ones) is shared by the others in proportion. A row
/// that gave all to those is left alone.
struct FreezePattern {
  std::string text;
  TextPairing align = {};
  bool operator==(const FreezePattern&) const = default;
};

/// What the heads read (z) is replaced.
///   zero
///   mean      by its mean over this position and those before it: nothing that comes later is told. `over_text`: over
///             all positions of this text, later ones too. `from`: over all positions of reference texts, each counting
///             once (mean ablation over a data set, as in Wang et al., Interpretability in the Wild, 2023).
///   resample  by that of another position of this text, later ones too (a permutation drawn with `seed`). `from`: of
///             one position of the reference texts, drawn with `seed` for each position.
struct Ablate {
  enum class By { zero, mean, resample } by = By::zero;
  std::uint64_t seed = 1;
  bool over_text = false;
  std::vector<std::string> from = {};  ///< the reference texts; empty = this text
  /// Whether a row may get something of positions after it.
  bool tells_future() const { return from.empty() && (by == By::resample || (by == By::mean && over_text)); }
  bool operator==(const Ablate&) const = default;
};

/// Activation patching (Vig et al., Causal Mediation Analysis, 2020; Meng et al., Locating and Editing Factual
/// Associations, 2022): the activations of another text at aligned positions.
struct Patch {
  using Align = TextPairing::By;
  TextPairing align = {};
  SiteKind site = SiteKind::z;
  std::string text;
  bool operator==(const Patch&) const = default;
};

/// A part of the block adds nothing (attention, MLP), or passes on what it is given (a norm).
struct SwitchOff {
  enum class Part { attention, mlp, ln1, ln2 } part = Part::mlp;
  bool operator==(const SwitchOff&) const = default;
};

/// Each norm of the block moves behind its sum, with the weights it has: x' = norm(x + part(x)), as in the first
/// Transformer (Vaswani et al., Attention Is All You Need, 2017), where the model has x' = x + part(norm(x)) (Xiong et
/// al., On Layer Normalization in the Transformer Architecture, 2020). The norm after the last block stays. No model of
/// the families that open here was trained so.
struct PostNorm {
  bool operator==(const PostNorm&) const = default;
};

/// Keys and values are shared by more heads than in training: the model's key heads, in `groups` equal groups, become
/// their group's mean (Ainslie et al., GQA, 2023: how a trained model is converted). 1 = MQA.
struct ShareKeys {
  int groups = 1;
  bool operator==(const ShareKeys&) const = default;
};

/// Keys and values pass through a latent of `rank` numbers per token, from which both are made again: [W_K W_V] by its
/// singular value decomposition (DeepSeek-V2, 2024, multi-head latent attention; there it is trained, and rotary
/// positions have a key of their own. Here keys are turned after they were made again).
struct LatentKeys {
  int rank = 32;
  bool operator==(const LatentKeys&) const = default;
};

/// A weight matrix with its singular values scaled, W′ = U diag(z σ) Vᵀ (Sun, Cetin & Tang, Transformer²: Self-adaptive
/// LLMs, 2025: singular value fine-tuning, whose experts are such vectors z). Every z that is not named is 1. What the
/// matrix gives is made anew at the positions reached, before any other edit of it acts; of several edits of one matrix
/// the last counts, and a latent is made of the model's own matrices.
struct ScaleSingular {
  static constexpr double largest = 100;  ///< of |z|
  struct Range {
    int first = 1, last = 1;  ///< σ_first … σ_last, both included; 1 is the largest value; last 0 = the smallest one
    double z = 1;
    bool operator==(const Range&) const = default;
  };
  WeightMatrix matrix = WeightMatrix::v;
  std::vector<Range> scales = {{1, 1, 0.0}};  ///< at least one; a later one wins

  /// z of `count` singular values, largest first.
  std::vector<double> vector(std::size_t count) const;
  /// The shortest such edit with this z; every z = 1 gives "1=1".
  static ScaleSingular of(WeightMatrix matrix, const std::vector<double>& z);
  bool operator==(const ScaleSingular&) const = default;
};

/// Another mechanism takes the place of softmax attention, on the head's own queries, keys and values, its mask and its
/// scale. `spec` as parse_mechanism (core/attention/mechanism.h) reads it, every value written out.
struct SwapMechanism {
  std::string spec = "linear map=elu normalise=sum";
  bool operator==(const SwapMechanism&) const = default;
};

using EditAction =
    std::variant<SetTemperature, SetMask, ScaleByLength, DropFirst, ForcePattern, SetWeight, FreezePattern, Ablate,
                 Patch, SwitchOff, PostNorm, SetPositions, ShareKeys, LatentKeys, ScaleSingular, SwapMechanism>;

struct EditForm {
  std::string_view form;     ///< "ablate zero | mean | resample SEED": capitals stand for what one writes
  std::string_view meaning;  ///< one sentence
  EditAction usual;          ///< a sensible start for a chooser
  bool per_head;             ///< may name a head; else it concerns the whole layer
};

/// Every action, in the order in which a chooser lists them; one for each alternative of EditAction.
std::span<const EditForm> edit_forms();
const EditForm& form_of(const EditAction& action);

/// "ablate zero"; parse_edit_action reads it back to an equal value. Throws Error at `where`: lists the forms for an
/// unknown word, names the bounds for a number outside them.
std::string text_of(const EditAction& action);
EditAction parse_edit_action(std::string_view words, const std::string& where);

/// Throws Error at `where` when a number is out of range or a mask's spec does not parse.
void check(const EditAction& action, const std::string& where);

/// Whether this site can be patched, and the list of those that can, for messages and choosers.
std::span<const SiteKind> patch_sites();

}  // namespace headscope
