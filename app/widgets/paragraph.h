#pragma once
// Text of any script as an item of Dear ImGui's: on one line, or on as many as it takes, broken at spaces alone. ImGui
// by itself also breaks after a point, and 0.82 would stand on two lines.

#include <functional>
#include <string>
#include <string_view>

#include "app/widgets/ui.h"

namespace headscope {

/// `text` with a line break in place of a space wherever a line would grow wider than `room`. A word that is too wide
/// by itself stays whole.
std::string broken_at_spaces(std::string_view text, double room, const std::function<double(std::string_view)>& width);

/// One line in the present font, in the present colour or in this one.
void text_line(const Ui& ui, std::string_view text);
void text_line(const Ui& ui, std::string_view text, Color color);

/// In the present font; `right`: where lines end, in the window's coordinates, 0 = at the edge of its content.
void paragraph(const Ui& ui, std::string_view text, Color color, float right = 0);
/// Quiet explaining text.
void note(const Ui& ui, std::string_view text);
/// What went wrong.
void error_text(const Ui& ui, std::string_view text);

}  // namespace headscope
