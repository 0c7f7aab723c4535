// The right column of the Mechanisms workspace: where Q, K and V come from, the parameters, what it costs.

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "core/attention/layer_complexity.h"
#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/trace/mixer_words.h"

namespace headscope {

namespace {

constexpr Index most_rows = 64, most_columns = 64;
constexpr double long_text = 32768;

/// In as many digits as it takes to read the same numbers back.
std::string written(const Tensor& x) {
  std::string text;
  for (Index i = 0; i < x.dim(0); ++i) {
    for (Index j = 0; j < x.dim(1); ++j) text += fmt::format("{}{}", j ? " " : "", x.at(i, j));
    if (i + 1 < x.dim(0)) text += "\n";
  }
  return text;
}

/// Lines of numbers; throws Error naming `what` and the line.
Tensor read_matrix(const std::string& text, const std::string& what) {
  std::vector<float> values;
  Index columns = -1, row_count = 0;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    std::ranges::replace(line, ',', ' ');
    begin = end + 1;
    Index count = 0;
    const char *at = line.data(), *stop = line.data() + line.size();
    while (at < stop) {
      if (*at == ' ' || *at == '\t' || *at == '\r') {
        ++at;
        continue;
      }
      float value = 0;
      const auto [next, error] = std::from_chars(at, stop, value);
      if (error != std::errc() || !std::isfinite(value) || std::abs(value) > 1e6f)
        throw Error(fmt::format("{}, line {}", what, row_count + 1), "numbers up to a million",
                    "\"" + std::string(at, stop) + "\"");
      values.push_back(value);
      ++count;
      at = next;
    }
    if (count == 0) continue;
    if (columns >= 0 && count != columns)
      throw Error(fmt::format("{}, line {}", what, row_count + 1),
                  fmt::format("{} numbers, as in the line before", columns), std::to_string(count));
    columns = count;
    ++row_count;
  }
  if (row_count == 0 || row_count > most_rows || columns > most_columns)
    throw Error(what, fmt::format("1 to {} lines of up to {} numbers", most_rows, most_columns),
                fmt::format("{} lines", row_count));
  return Tensor::from({row_count, columns}, values);
}

/// Whether the layer's own heads leave this one without a say.
bool idle_beside_own_heads(const MechanismValues& values, const Mechanism& m, std::string_view name, bool of_head) {
  if (!m.parameter("own")) return false;
  return (name == "heads" && of_head && values.on("own")) || (name == "own" && !of_head);
}

}  // namespace

void MechanismsWorkspace::input(Ui& ui, AppContext& app) {
  section(ui, said("INPUT"), said("queries, keys, values"));
  const HeadId head = controller_.head();
  const std::string of_head = head_title(head);
  const char* const labels[] = {of_head.c_str(), to_say("Random"), to_say("By hand")};
  MechanismSource& source = controller_.source();
  int kind = static_cast<int>(source.kind);
  if (segmented(ui, "mechanism input", labels, kind, ImGui::GetContentRegionAvail().x)) {
    source.kind = static_cast<MechanismSource::Kind>(kind);
    controller_.changed_source();
  }
  if (source.kind == MechanismSource::Kind::head) {
    const auto& run = app.explorer.results().run;
    if (!run) return note(ui, said("No text is open: type one in Explore, or choose another input."));
    if (holds_state(app.explorer.results(), app.explorer.state().document.selected.layer))
      return note(ui,
                  holds_state(app.explorer.results())
                      ? said("This model has no attention: choose another input.")
                      : say("Layer {} is {} and has none: choose a head of another layer.",
                            app.explorer.state().document.selected.layer,
                            said(mixer_words(run->trace->model.dims, app.explorer.state().document.selected.layer))));
    const auto tokens = static_cast<double>(std::max(run->trace->tokens.size(), run->trace->queries().size()));
    double first = std::min<double>(source.first, tokens);
    if (tokens > 2 && slider(ui, to_say("First tokens"), first, {2, tokens, std::min(24.0, tokens), true, "", 0})) {
      source.first = static_cast<int>(first);
      controller_.changed_source();
    }
    const bool translates = app.explorer.results().translates(), crosses = controller_.mechanism().crosses;
    if (crosses && !translates && app.explorer.results().model.tokenizer && !reads_pictures(app.explorer.results())) {
      ImGui::SetNextItemWidth(-1);
      if (input_line(ui, "##other text", said("Another text to ask"), source.other)) controller_.changed_source();
    }
    const std::string of =
        crosses && translates ? said("the cross-attention: the decoder asks the encoder")
        : crosses    ? source.other.empty() ? said("the open text, cut in two. Type another text to ask that one")
                                            : said("the open text, K, V of the other")
           : translates ? say("the stack on screen, {}", stack_word(app.explorer.state().document.stack))
                     : said("the open text");
    const int width = run->trace->model.dims.widths_of(app.explorer.state().document.selected.layer).d_head;
    note(ui,
         fmt::format("{} {}{}",
                     crosses && !translates && !source.other.empty() ? say("Q of {}, head_dim {}.", of, width)
                                                                     : say("Q, K, V of {}, head_dim {}.", of, width),
                     app.explorer.run.softer_head()
                         ? said("Chosen for soft rows: of all heads, on the text that the model opened with, its "
                                "entropy was nearest to half of an even one's.") +
                               std::string(" ")
                         : "",
                     said("Arrow keys change the head.")));
    return;
  }
  if (source.kind == MechanismSource::Kind::random) {
    double n = source.n, d = source.d, seed = static_cast<double>(source.seed);
    bool changed = slider(ui, to_say("Tokens n"), n, {2, 256, 24, true, "", 0});
    changed |= slider(ui, to_say("Width d"), d, {1, 128, 32, true, "", 0});
    changed |= slider(ui, to_say("Spread"), source.spread, {0.1, 4, 1, true, "", 2});
    changed |= slider(ui, to_say("Drawn with"), seed, {1, 100, 1, false, "", 0});
    source.n = static_cast<int>(n), source.d = static_cast<int>(d), source.seed = static_cast<std::uint64_t>(seed);
    if (changed) controller_.changed_source();
  } else {
    by_hand(ui);
  }
  static constexpr const char* masks[] = {to_say("causal"), to_say("full"), to_say("window 4")};
  int mask = source.mask == "full" ? 1 : source.mask == "window 4" ? 2 : 0;
  if (controller_.mechanism().needs_causal && mask != 0) source.mask = "causal", mask = 0, controller_.changed_source();
  ImGui::BeginDisabled(controller_.mechanism().needs_causal);
  ImGui::AlignTextToFramePadding();
  text_line(ui, said("Mask"));
  ImGui::SameLine(ui.px(96));
  if (segmented(ui, "mechanism mask", masks, mask)) controller_.set_mask(masks[mask]);
  ImGui::EndDisabled();
}

void MechanismsWorkspace::by_hand(Ui& ui) {
  const MechanismSource& source = controller_.source();
  std::string shown = said("your own numbers");
  for (const WorkedExample& example : worked_examples())
    if (example.id == source.example) shown = said_view(example.title);
  if (menu_button(ui, "Worked example", shown, "", ui.px(27))) ImGui::OpenPopup("worked examples");
  if (ImGui::BeginPopup("worked examples")) {
    for (const WorkedExample& example : worked_examples())
      if (menu_item(ui, std::string(example.title).c_str(), nullptr, example.id == source.example))
        controller_.use_example(example);
    ImGui::EndPopup();
  }
  Tensor matrices[] = {source.q, source.k, source.v};  // changed ones are copies: the controller's stay as they are
  static constexpr const char* names[] = {"Q", "K", "V"};
  const bool small = std::ranges::all_of(matrices, [](const Tensor& m) { return MatrixEdit::suits(m); });
  static constexpr const char* ways[] = {to_say("Cells"), to_say("Text")};
  ImGui::BeginDisabled(!small);
  segmented(ui, "matrices by hand", ways, as_text_);
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered())
    tooltip(ui, {said("Cells: drag a number up or down"),
                 said("Text: type or paste whole matrices, also of another size")});
  if (small && as_text_ == 0) {
    const Color roles[] = {ui.theme.query, ui.theme.key, ui.theme.value};
    for (int i = 0; i < 3; ++i) {
      if (cells_.draw(ui, names[i], legible(ui.theme, roles[i]), matrices[i]))
        controller_.set_numbers(matrices[0], matrices[1], matrices[2]);
      ImGui::Dummy({0, ui.px(3)});
    }
    return;
  }
  if (typed_of_ != controller_.numbers_version()) {  // other numbers than those typed
    for (int i = 0; i < 3; ++i) typed_[i] = written(matrices[i]);
    typed_of_ = controller_.numbers_version();
    typed_error_.clear();
  }
  bool changed = false;
  const float left = ImGui::GetCursorPosX();  // SameLine counts from the window's edge, which has a margin
  for (int i = 0; i < 3; ++i) {
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(names[i]);
    ImGui::SameLine(left + ui.px(18));
    const UseFont font(ui, ui.number());
    const auto lines = static_cast<float>(std::clamp<Index>(1 + std::ranges::count(typed_[i], '\n'), 1, 8));
    changed |= ImGui::InputTextMultiline(fmt::format("##matrix {}", names[i]).c_str(), &typed_[i],
                                         {-1, lines * ImGui::GetTextLineHeight() + ui.px(10)});
  }
  if (changed) {
    try {
      Tensor read[3];
      for (int i = 0; i < 3; ++i) read[i] = read_matrix(typed_[i], names[i]);
      if (read[0].dim(1) != read[1].dim(1))
        throw Error("K", fmt::format("{} numbers in a line, as Q has", read[0].dim(1)), std::to_string(read[1].dim(1)));
      if (read[1].dim(0) != read[2].dim(0))
        throw Error("V", fmt::format("{} lines, one for each key", read[1].dim(0)), std::to_string(read[2].dim(0)));
      controller_.set_numbers(read[0], read[1], read[2]);
      typed_of_ = controller_.numbers_version();
      typed_error_.clear();
    } catch (const Error& wrong) {
      typed_error_ = wrong.what();
    }
  }
  if (typed_error_.empty()) return;
  paragraph(ui, typed_error_, ui.theme.key);
}

void MechanismsWorkspace::parameters(Ui& ui) {
  const Mechanism& m = controller_.mechanism();
  if (m.parameters.empty()) return;
  section(ui, said("PARAMETERS"));
  if (!(controller_.values() == m.usual())) {
    ImGui::SameLine();
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                         std::max(0.0f, ImGui::GetContentRegionAvail().x - button_width(ui, "Usual")));
    if (button(ui, to_say("Usual"), ui.px(19))) controller_.reset_values();
  }
  MechanismShape shape{32, 32, 32};  // of a text as long as any on the page, while there is none
  if (const auto& page = controller_.page())
    shape = {page->input.m(), page->input.d(), page->input.d_v(), page->input.n()};
  for (const MechanismParameter* const shown : m.shown_parameters(controller_.values(), shape)) {
    const MechanismParameter& p = *shown;
    const std::string label(p.title);
    if (shown_view() == MechanismController::View::cost && p.name != "every") continue;
    if (idle_beside_own_heads(controller_.values(), m, p.name,
                              controller_.source().kind == MechanismSource::Kind::head))
      continue;
    // A ring has as many rounds as workers.
    const double high = p.name == "rounds" ? std::min(p.high, controller_.values().number("workers")) : p.high;
    const double before = std::min(controller_.values().number(p.name), high);
    double value = before;
    if (p.kind == MechanismParameter::Kind::choice || p.kind == MechanismParameter::Kind::toggle) {
      std::vector<std::string> words;
      for (const std::string_view each : p.choices) words.emplace_back(each);
      if (p.kind == MechanismParameter::Kind::toggle) words = {to_say("off"), to_say("on")};
      std::vector<const char*> labels;
      for (const std::string& each : words) labels.push_back(each.c_str());
      int chosen = static_cast<int>(value);
      const float width = segmented_width(ui, labels), room = ImGui::GetContentRegionAvail().x;
      ImGui::AlignTextToFramePadding();
      text_line(ui, said(label));
      const float words_width = ImGui::GetItemRectSize().x;
      const bool hovered = ImGui::IsItemHovered();
      if (words_width + width + ui.px(12) < room) ImGui::SameLine(room - width + ImGui::GetStyle().WindowPadding.x);
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - width));
      if (segmented(ui, label.c_str(), labels, chosen, std::min(width, room))) value = chosen;
      if (hovered)
        tooltip(ui, {said(label), std::string(said_view(p.words)),
                     say("command line: {}={}", p.name, value_text(p, value))});
    } else {
      const bool whole = p.kind == MechanismParameter::Kind::whole;
      slider(ui, label.c_str(), value, {p.low, high, p.usual, p.logarithmic, "", whole ? 0 : 2});
      if (ImGui::IsItemHovered())
        tooltip(ui, {said(label), std::string(said_view(p.words)),
                     say("command line: {}={}", p.name, value_text(p, value))});
    }
    if (value != before) controller_.set_value(p.name, value);
  }
}

void MechanismsWorkspace::cost(Ui& ui) {
  const auto& page = controller_.page();
  const Mechanism& m = controller_.mechanism();
  if (!page || !m.cost) return;
  const Index n = page->input.m(), d = page->input.d(), d_v = page->input.d_v();
  const Mechanism& softmax = *find_mechanism("softmax");
  const auto at = [&](const Mechanism& which, Index tokens) {
    return which.cost({tokens, d, d_v}, &which == &m ? controller_.values() : which.usual());
  };
  const auto long_n = static_cast<Index>(long_text);
  section(ui, say("COST AT N = {} AND N = 32 768", n));
  const auto row = [&](const std::string& name, double MechanismCost::*field, auto words, const std::string& what) {
    const bool itself = m.id == softmax.id;
    const double here = at(m, n).*field, far = at(m, long_n).*field;
    const std::string value =
        here == far ? (here == 0 ? said("none") : say("{}, constant", words(here))) : words(here) + " → " + words(far);
    fact(ui, name, value, nullptr, {name, what, say("one head, d = {}, d_v = {}, float32", d, d_v)});
    if (itself) return;
    const std::string plain = words(at(softmax, n).*field) + " → " + words(at(softmax, long_n).*field);
    if (at(softmax, long_n).*field > 0)
      fact(ui, said("  softmax"), plain, nullptr, {said("the same of softmax attention"), what});
  };
  row(said("Multiply-adds"), &MechanismCost::multiply_adds, count_words,
      said("of one pass over n queries and n keys, masked cells counted"));
  row(said("State per step"), &MechanismCost::state_bytes, byte_words,
      said("what is carried from token to token while generating"));
  row(said("Key-value cache"), &MechanismCost::cache_bytes, byte_words,
      said("keys and values that must be kept while generating"));
  row(said("Bytes moved"), &MechanismCost::moved_bytes, byte_words,
      said("between slow and fast memory, as the method is meant to be run"));
  layers(ui);
}

/// Table 1 of Vaswani et al. 2017 for the text on the page.
void MechanismsWorkspace::layers(Ui& ui) {
  const MechanismInput& in = controller_.page()->input;
  const std::vector<LayerComplexity> rows = layers_beside(controller_.mechanism().id, in.m(), in.d_v());
  if (rows.empty()) return;
  section(ui, said("LAYER AGAINST LAYER"), say("{} tokens, width {}", in.m(), in.d_v()));
  if (!ImGui::BeginTable("layers", 4, ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_NoSavedSettings)) return;
  ImGui::TableSetupColumn("", 0, 2.4f);
  for (int i = 0; i < 3; ++i) ImGui::TableSetupColumn("", 0, 1);
  static constexpr const char* titles[] = {to_say("products"), to_say("in a row"), to_say("path")};
  static constexpr const char* meanings[] = {
      to_say("multiply-adds of one layer over the whole text"), to_say("operations that must follow one another"),
      to_say("from the first token to the last: steps of a cell, or layers (a convolution's, dilated)")};
  const auto cell = [&](const std::string& words, Color color, const std::vector<std::string>& provenance) {
    ImGui::TableNextColumn();
    const float width = ImGui::CalcTextSize(words.c_str()).x;
    if (!provenance.empty())  // numbers end where their title does
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - width));
    ImGui::PushStyleColor(ImGuiCol_Text, vec(color));
    text_line(ui, words);
    ImGui::PopStyleColor();
    if (!provenance.empty() && ImGui::IsItemHovered()) tooltip(ui, provenance);
  };
  ImGui::TableNextRow();
  {
    const UseFont font(ui, ui.small());
    cell("", ui.theme.faint, {});
    for (int i = 0; i < 3; ++i) cell(said(titles[i]), ui.theme.muted, {said(titles[i]), said(meanings[i])});
  }
  for (const LayerComplexity& row : rows) {
    const Color color = &row == &rows.front() ? ui.theme.text : ui.theme.muted;
    ImGui::TableNextRow();
    cell(said(row.name), color, {});
    const UseFont font(ui, ui.number());
    const std::pair<double, std::string> numbers[] = {
        {row.multiply_adds, row.cost}, {row.sequential, row.in_sequence}, {row.longest_path, row.path}};
    for (int i = 0; i < 3; ++i)
      cell(count_words(numbers[i].first), color,
           {fmt::format("{}: {:.6g}, {}", said(row.name), numbers[i].first, said(numbers[i].second)), said(meanings[i]),
            say("n = {}, d = {}; Vaswani et al. 2017, table 1", in.m(), in.d_v())});
  }
  ImGui::EndTable();
}

}  // namespace headscope
