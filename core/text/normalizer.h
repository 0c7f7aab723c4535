#pragma once
// What a tokenizer does to the text before it looks for tokens ("normalizer" in tokenizer.json). Every step keeps the
// link back to the original bytes.

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "core/text/aligned_text.h"
#include "core/text/character_rules.h"
#include "core/text/pattern.h"
#include "core/text/precompiled_charsmap.h"

namespace headscope {

/// Puts a text in front, unless there is nothing to put it in front of.
struct PrependStep {
  std::string text;
};
struct ReplaceStep {
  Pattern pattern;
  std::string content;
};
/// Unicode normal forms (UAX #15).
enum class NormalForm { nfc, nfd, nfkc, nfkd };
struct NormalFormStep {
  NormalForm form = NormalForm::nfc;
};
struct CharacterStep {
  CharacterRule rule = lower_case;
};
struct PrecompiledStep {
  std::shared_ptr<const PrecompiledCharsmap> charsmap;
};
struct StripStep {
  bool left = true, right = true;
};

using NormalizerStep =
    std::variant<PrependStep, ReplaceStep, NormalFormStep, CharacterStep, PrecompiledStep, StripStep>;

/// What normal forms took: a run of combining marks must not take the square of its length.
struct NormalFormWork {
  std::size_t characters = 0;   ///< decomposed, each as often as it was
  std::size_t comparisons = 0;  ///< of marks that were put in order
};

/// Applies the steps in order; adds to `work` what they took. Throws Error when they make the text grow without measure
/// (AlignedTextWriter) or a pattern asks for too much, Cancelled when `stop` is requested.
AlignedText normalize(const std::vector<NormalizerStep>& steps, AlignedText text, const std::stop_token& stop = {},
                      NormalFormWork* work = nullptr);

}  // namespace headscope
