#pragma once
// Activation patching: the model reads a corrupted prompt, and one activation at a time is taken from a clean prompt
// that is answered differently. Where the clean answer comes back, that activation carries what tells the two apart
// (Vig et al., Causal Mediation Analysis, 2020; Meng et al., Locating and Editing Factual Associations, 2022; metric:
// Wang et al., Interpretability in the Wild, 2022).

#include <memory>
#include <string>
#include <vector>

#include "core/analysis/cell_sweep.h"
#include "core/edits/freeze_pattern_edit.h"
#include "core/edits/text_pairing.h"

namespace headscope {

struct PatchingRequest {
  std::filesystem::path model;  ///< folder
  std::string clean, corrupted;
  std::optional<bool> add_bos;  ///< empty: as the tokenizer says
  /// resid_pre, resid_mid, resid_post, attn_out, mlp_out: layer × position. z, q, k, v, pattern: layer × head (of k and
  /// v: key heads), at all positions.
  SiteKind site = SiteKind::resid_pre;
  TextPairing align = TextPairing::By::tokens;  ///< which clean position stands for a corrupted one
  std::optional<AnswerPair> answers;            ///< else likely_answers(clean, corrupted)
  /// Of encoder-decoders, whose prompts are sources: the target that is read beside both, and where to patch.
  std::string target = {};
  Stack stack = Stack::only;
  bool operator==(const PatchingRequest&) const = default;
};

/// The sites that can be swept, by position first, then by head.
std::span<const SiteKind> patching_sites();
bool is_by_head(SiteKind site);

/// First: the token whose probability falls most from the clean prompt to the corrupted one; second: the one whose
/// probability rises most. REQUIRES logits of the last position, of one vocabulary.
AnswerPair likely_answers(const Trace& clean, const Trace& corrupted);

struct Patching {
  PatchingRequest request;
  std::shared_ptr<const Trace> clean, corrupted;  ///< tokens and last logits of the runs as they are
  std::vector<int> partner;                       ///< clean position by corrupted position, −1 = none
  AnswerPair answers;
  double clean_difference = 0, corrupted_difference = 0;  ///< logit[right] − logit[wrong] after the last token
  int rows = 0, columns = 0;                              ///< layers; positions or heads
  std::vector<double> difference;  ///< row-major, those computed so far; NaN where a position has no partner
  /// Of one of both runs the text whose positions are paired and patched: the encoder's where that is patched.
  std::shared_ptr<const Trace> patched(const std::shared_ptr<const Trace>& run) const;
  /// (x − corrupted) / (clean − corrupted): 0 = nothing came back, 1 = all of it. NaN where `difference` is.
  double recovered(std::size_t cell) const;
};

/// Throws Error in its first step when a site is none of the list, the prompts are the same, or the model answers both
/// alike. Prompts may differ in length: what has no partner stays as it is (of patterns see FreezePattern).
class PatchingSweep final : public CellSweep {
 public:
  using Result = Patching;
  PatchingSweep(LoadedModel loaded, PatchingRequest request);
  std::shared_ptr<const Patching> result() const;

 private:
  EditProbe prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) override;
  void measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) override;
  LoadedModel loaded_;
  Patching known_;
};

}  // namespace headscope
