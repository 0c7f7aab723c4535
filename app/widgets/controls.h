#pragma once
// Small controls in the house look. Each is one call, keeps no state, and is named for tests by its label. Labels are
// given in English (to_say), which is also the id, and drawn as the table in use says them; all other text comes as it
// is to be read.
// Thread rule: the UI thread.

#include <span>
#include <string>
#include <vector>

#include "app/widgets/text_draw.h"
#include "app/widgets/ui.h"

namespace headscope {

/// "PROMPT" in small spaced capitals, with an optional quiet remark after it: "· click to pin".
/// `taken` window pixels at its right end belong to something else.
void section(const Ui& ui, const std::string& title, const std::string& remark = "", float taken = 0);

/// A push button as high as `height` window pixels (0 = 30 logical).
bool button(const Ui& ui, const char* label, float height = 0);
float button_width(const Ui& ui, const char* label);
/// A button that shows a value, a quiet remark and "▾"; `id` is its name for tests.
bool menu_button(const Ui& ui, const char* id, const std::string& value, const std::string& remark, float height = 0);

/// What a control of Dear ImGui's own takes as its label: the text as it is said, with the English as id and name.
std::string control_label(const Ui& ui, const char* english);
bool check_box(const Ui& ui, const char* label, bool& on);
bool menu_item(const Ui& ui, const char* label, const char* shortcut = nullptr, bool chosen = false,
               bool enabled = true);

/// One line to type in; `hint` stands in it while it is empty. While it is typed in, scripts that join are shown letter
/// by letter. True when the text changed. Width: ImGui::SetNextItemWidth.
bool input_line(const Ui& ui, const char* id, const char* hint, std::string& text, ImGuiInputTextFlags flags = 0);

/// Choices side by side, one of them on: [Map|Entropy|Sink]. True when `chosen` changed. `width` 0 = as needed.
/// Items are named by their labels.
bool segmented(const Ui& ui, const char* id, std::span<const char* const> labels, int& chosen, float width = 0);
/// Where they do not fit they are squeezed a little, else they stand in rows.
float segmented_width(const Ui& ui, std::span<const char* const> labels);

/// The next item, so wide, on the same line where it still fits there. `gap` 0 = 8 logical pixels.
void beside(const Ui& ui, float width, float gap = 0);

/// A whole number to type or step, beside its name from `column` logical pixels on, or below it. `id`: "##…".
bool number_field(const Ui& ui, const char* label, const char* id, int& value, int step, double column);

/// Label, a thin line with a round grab, the value: one row as wide as there is room. `logarithmic` spaces by ratios.
/// Double click puts `usual` back; at the keyboard Left and Right move it by hundredths, with Shift by tenths. True in
/// a frame that changes the value; a drag is over when ImGui::IsMouseReleased() (the state's history merges what lies
/// between).
struct SliderOptions {
  double low = 0, high = 1, usual = 0;
  bool logarithmic = false;
  std::string unit = "";
  int decimals = 2;
};
bool slider(const Ui& ui, const char* label, double& value, const SliderOptions& options);

/// A token as a small tile. `shade` in [0, 1] comes from the theme's sequential map. Returns what the pointer did.
struct ChipOptions {
  double shade = -1;  ///< < 0 = none
  bool selected = false, hovered = false, faint = false;
  bool asked = false;  ///< the model is asked what stands here: a dashed line below
};
struct Touch {
  bool hovered = false, clicked = false, right_clicked = false;
};
Touch token_chip(const Ui& ui, const std::string& text, const std::string& id, const ChipOptions& options);
/// Logical width the chip takes, for wrapping lines.
double token_chip_width(const Ui& ui, const std::string& text);

/// Name on the left, value right-aligned in mono, at the end of the row or before a quiet `remark` (what chance gives).
/// `value_color` nullptr = text colour; another is made dark or light enough to read.
void fact(const Ui& ui, const std::string& name, const std::string& value, const Color* value_color = nullptr,
          const std::vector<std::string>& provenance = {}, const std::string* remark = nullptr);

/// One line of a bar list: a token, its share before (quiet) and now (accent), the numbers.
struct Bar {
  std::string label;
  double now = 0, before = -1;  ///< 0 … 1 of the longest bar's scale; before < 0 = nothing to compare with
  std::string text;
  std::string tooltip;
};
/// Returns what was clicked.
struct BarClick {
  int left = -1, right = -1;  ///< index of the bar; −1 = none
};
BarClick bar_list(const Ui& ui, const char* id, std::span<const Bar> bars);

/// A tooltip at the pointer: first line strong, the rest quiet (tensor, layer, head, position, dtype, formula).
void tooltip(const Ui& ui, const std::vector<std::string>& lines);

/// A short coloured label, "induction 0.87".
void badge(const Ui& ui, const std::string& text, Color color);

/// Text that says what to do where there is nothing to show yet, wrapped and centred in the room that is left.
void empty_state(const Ui& ui, const std::string& title, const std::string& advice);
/// The same with a button below that does something about it. True when pressed.
bool empty_state(const Ui& ui, const std::string& title, const std::string& advice, const char* action);

}  // namespace headscope
