#pragma once
// The patterns that tokenizer files split or replace by. tokenizer.json is written for Oniguruma (Ruby syntax); a
// pattern is translated so that PCRE2 finds the same matches: \s is Unicode White_Space, \w and \b follow Oniguruma's
// words, ^ and $ match at lines. What cannot be translated exactly is refused, never approximated.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/text/aligned_text.h"

namespace headscope {

/// Immutable and cheap to copy; matching is safe from any thread.
class Pattern {
 public:
  /// `where` names the file and key in the Error that an unusable pattern raises.
  static Pattern regex(std::string_view oniguruma, const std::string& where);
  static Pattern literal(std::string_view text, const std::string& where);

  /// Calls `found` for each match in `range` of the valid UTF-8 `text`, from left to right, not overlapping. Lookaround
  /// sees only the range. A match may be empty, but not right after another match. Throws Error when the pattern tries
  /// more ways to match than a text of this length can ask for, at one place or at all of them together; Cancelled when
  /// `stop` is requested, which is looked at between bounded calls.
  void find_all(std::string_view text, ByteRange range, const std::function<void(ByteRange)>& found,
                const std::stop_token& stop = {}) const;

  /// GPT-2's rule for splitting text into words (Radford et al. 2019), as the byte-level tokenizers write it.
  static std::string_view gpt2_words();

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

/// The PCRE2 spelling of an Oniguruma pattern. Throws Error for what has no exact counterpart.
std::string pcre2_from_oniguruma(std::string_view pattern, const std::string& where);

}  // namespace headscope
