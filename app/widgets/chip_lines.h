#pragma once
// Tokens as tiles, wrapped to lines in a field that scrolls. Of a long text only what is in sight is drawn; where its
// lines break is kept until the text, the width or the type changes. Thread rule: the UI thread.

#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "app/widgets/ui.h"
#include "core/trace/trace.h"

namespace headscope {

class ChipLines {
 public:
  /// In the width that is left, at most five lines high. `source`: what `tokens` belong to, the same while they are.
  /// `chip` draws the token of that number by token_chip().
  void draw(const Ui& ui, const char* id, const std::shared_ptr<const void>& source, std::span<const Token> tokens,
            const std::function<void(std::size_t)>& chip);

 private:
  using Key = std::tuple<std::shared_ptr<const void>, std::size_t, float, float, float>;
  void wrap(const Ui& ui, std::span<const Token> tokens, float room);
  Key wrapped_;
  std::vector<std::size_t> first_;  // tokens of the lines, and behind the last
};

}  // namespace headscope
