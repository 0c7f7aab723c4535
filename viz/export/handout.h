#pragma once
// Prose and pictures for paper: one description, of which a page for browsers and pages of a PDF are made.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viz/scene/scene.h"

namespace headscope {

struct HandoutSpan {
  std::string text;
  bool emphasised = false;
  bool operator==(const HandoutSpan&) const = default;
};
using HandoutWords = std::vector<HandoutSpan>;
/// What stands between asterisks is emphasised.
HandoutWords emphasised(std::string_view text);

struct HandoutBlock {
  enum class Kind {
    heading,  ///< begins a section
    prose,
    picture,   ///< `words` say what it is, for who cannot see it
    aside,     ///< small: what stands for a picture that is none on paper
    question,  ///< and what may be answered
    answer,
    note,  ///< of who presents it
  };
  Kind kind = Kind::prose;
  HandoutWords words = {};
  std::vector<HandoutWords> choices = {};
  std::optional<Scene> picture = {};
};

struct Handout {
  std::string title, about;
  std::vector<HandoutBlock> blocks = {};
  std::string language = "en";  ///< of its words (BCP 47): "de"
};

/// One file that needs nothing else and that browsers print.
std::string encode_handout_html(const Handout& handout);

enum class Paper { a4, letter };
/// Pages with the title above and their number below, and a list of contents beside them. No heading, question or
/// picture is torn apart or parted from what belongs to it; no line of a paragraph stands alone. Throws Error on what
/// cairo reports.
std::string encode_handout_pdf(const Handout& handout, Paper paper);

}  // namespace headscope
