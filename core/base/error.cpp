#include "core/base/error.h"

#include "core/base/excerpt.h"

namespace headscope {

namespace {

// Of our own phrases, which may list names, and of a path with a name inside the file: more is a file's doing.
constexpr std::size_t longest_phrase = 4000, longest_where = 1000;

std::string message(const std::string& where, const std::string& expected, const std::string& found,
                    const std::string& hint) {
  return where + ": expected " + expected + ", found " + found + (hint.empty() ? "" : "\n  hint: " + hint);
}

std::string phrase(const std::string& text) {
  return excerpt(text, longest_phrase, Lines::kept);
}

}  // namespace

Error::Error(const std::string& where_, const std::string& expected_, const std::string& found_,
             const std::string& hint_)
    : std::runtime_error(message(excerpt(where_, longest_where), phrase(expected_),
                                 excerpt(found_, longest_excerpt, Lines::kept), phrase(hint_))),
      where(excerpt(where_, longest_where)),
      expected(phrase(expected_)),
      found(excerpt(found_, longest_excerpt, Lines::kept)),
      hint(phrase(hint_)) {}

}  // namespace headscope
