#pragma once
// What an edit that takes from another text takes from where: that text's tokens, and which of them stands for which
// token of the text that is run.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/edits/text_pairing.h"
#include "core/run/run_request.h"

namespace headscope {

struct EditPairs {
  std::string text;           ///< the other one
  std::vector<Token> tokens;  ///< of it, BOS included
  std::vector<int> partner;   ///< position there by position here, −1 = none
};

/// The run of a text that edits take from, read as the request reads its own; `text` empty: the request's own, before
/// any edit. Nowhere else is it decided whether such a text begins with BOS.
RunRequest source_request(const RunRequest& request, const std::string& text);

/// nullopt when the edit takes from no other text. `here`: the tokens of the request's own text. Reads no more than the
/// tokenizer. Throws Error as tokenize() does, of the other text, and align_positions().
std::optional<EditPairs> edit_pairs(const LoadedModel& loaded, const RunRequest& request,
                                    const std::vector<std::int32_t>& here, const Intervention& edit);

/// Which of `edits` is `edit`, or else takes the same from the same text and pairs its positions otherwise; nullopt
/// when none does, or `edit` takes from no text.
std::optional<std::size_t> same_source(const std::vector<Intervention>& edits, const Intervention& edit);

/// "12 of 14 positions"
std::string count_of_pairs(const std::vector<int>& partner);
/// "12 of 14 positions: 0–8 from 0–8, 10–12 from 9–11": stretches of neighbours.
std::string stretches_of_pairs(const std::vector<int>& partner);

}  // namespace headscope
