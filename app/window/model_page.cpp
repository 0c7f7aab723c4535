#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "app/window/pages.h"
#include "core/base/memory.h"
#include "core/base/words.h"
#include "core/trace/layer_kinds.h"

namespace headscope {

namespace {
// Certificates are kept in English.
std::string text_words(const Certificate::Check& check) {
  return check.text == "built-in text"      ? said("built-in text")
         : check.text == "built-in picture" ? said("built-in picture")
                                            : check.text;
}
std::string witness_words(const Certificate::Check& check) {
  return check.witness == float64_definition ? said("its float64 definition") : check.witness;
}

using CheckState = CertificateController::State;
using Facts = Answer<std::uint64_t, ModelFacts>;

enum Part { part_check, part_model, part_files, part_keys };
constexpr const char* part_names[] = {to_say("Check"), to_say("What it is"), to_say("Parameters and files"),
                                      to_say("Configuration")};

/// Rows of words and, on the right of their columns, numbers.
class Rows {
 public:
  struct Column {
    const char* title;
    float weight;
    bool number = false;
  };
  Rows(const Ui& ui, const char* id, std::initializer_list<Column> columns) : ui_(ui), columns_(columns) {
    ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, {ui.px(10), ui.px(2)});  // numbers keep clear of what follows
    open_ = ImGui::BeginTable(
        id, static_cast<int>(columns_.size()),
        ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_NoSavedSettings | ImGuiTableFlags_PadOuterX);
    if (!open_) return;
    bool titled = false;
    for (const Column& each : columns_) {
      ImGui::TableSetupColumn(each.title, ImGuiTableColumnFlags_WidthStretch, each.weight);
      titled |= *each.title != '\0';
    }
    if (!titled) return;
    ImGui::TableNextRow();
    for (const Column& each : columns_) {
      ImGui::TableNextColumn();
      const UseFont use(ui_, ui_.small());
      put(said(each.title), ui_.small(), ui_.theme.faint, each.number);
    }
  }
  ~Rows() {
    if (open_) ImGui::EndTable();
    ImGui::PopStyleVar();
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  /// A cell for each column; words are broken into lines where they are long.
  void row(const std::vector<std::string>& cells, const Color* color = nullptr) {
    if (!open_) return;
    ImGui::TableNextRow();
    for (std::size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
      ImGui::TableNextColumn();
      const Column& column = columns_[i];
      const Color ink = color ? *color : i == 0 ? ui_.theme.muted : ui_.theme.text;
      if (column.number) {
        const UseFont use(ui_, ui_.number());
        put(cells[i], ui_.number(), ink, true);
      } else {
        paragraph(ui_, cells[i], ink);
      }
    }
  }

 private:
  void put(std::string_view text, const Font& font, Color color, bool right) {
    if (right) {
      const float width = static_cast<float>(ui_.fonts.width(text, font)) * ui_.scale;
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.f, ImGui::GetContentRegionAvail().x - width));
    }
    text_line(ui_, text, color);
  }

  const Ui& ui_;
  std::vector<Column> columns_;
  bool open_ = false;
};

/// "1,234,567"
std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string day(std::filesystem::file_time_type time) {
  const auto whole = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(time));
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::chrono::system_clock::to_time_t(whole)));
}

/// "2026-11-24 19:43 UTC" of "2026-11-24T19:43:28Z"
std::string shown_date(std::string date) {
  std::ranges::replace(date, 'T', ' ');
  return date.substr(0, std::min<std::size_t>(date.size(), 16)) + " UTC";
}

void verdict(const Ui& ui, const CertificateController& certificates, const std::string& session_note) {
  const auto known = certificates.certificate();
  switch (certificates.state()) {
    case CheckState::none:
      break;
    case CheckState::not_checked: {
      const std::string effort = certificates.effort();
      paragraph(ui,
                effort.empty()
                    ? said("Not checked yet. A check runs the model a second time, slowly and in float64 as the papers "
                           "write it, and compares every attention weight, logit and loss with what the window shows.")
                    : say("Not checked yet. A check runs the model a second time, slowly and in float64 as the papers "
                          "write it, and compares every attention weight, logit and loss with what the window shows: "
                          "{} on one core, while you go on working.",
                          effort),
                ui.theme.text);
      break;
    }
    case CheckState::checking:
      paragraph(ui, say("Checking: {:.0f} %", 100 * static_cast<double>(certificates.progress())), ui.theme.text);
      break;
    case CheckState::changed:
      paragraph(
          ui,
          said("The files have changed since this model was read from them. What was found does not hold for what "
               "lies there now; open the model again."),
          ui.theme.key);
      break;
    case CheckState::failed:
      paragraph(ui, say("The check came to no end: {}", certificates.error()), ui.theme.key);
      break;
    case CheckState::checked: {
      const std::string date = shown_date(known->date),
                        when = certificates.remembered() ? say("Remembered, of {}.", date) : say("Of {}.", date);
      if (const auto* wrong = known->wrong())
        paragraph(ui,
                  say("What the window shows of this model {} ({}, beside {}). {} Its numbers are not to be trusted.",
                      in_words(*known), text_words(*wrong), witness_words(*wrong), when),
                  ui.theme.key);
      else
        paragraph(ui,
                  say("Every attention weight agrees with the model's plain float64 definition to {}, every logit to "
                      "{}. {}",
                      difference_text(known->patterns()), difference_text(known->logits()), when),
                  ui.theme.text);
      break;
    }
  }
  if (!session_note.empty()) {
    const UseFont use(ui, ui.small());
    paragraph(ui, say("The session that was opened says: {}", session_note), ui.theme.faint);
  }
}

void checks(const Ui& ui, const Certificate* known) {
  if (!known) return note(ui, said("The differences of every layer will stand here."));
  int number = 0;
  for (const Certificate::Check& check : known->checks) {
    {
      const UseFont use(ui, ui.strong());
      text_line(ui, text_words(check), ui.theme.text);
    }
    note(ui, say("{} tokens beside {}", check.tokens, witness_words(check)));
    {
      Rows rows(ui, fmt::format("check {}", number++).c_str(),
                {{to_say("largest |Δ| of"), 1.6f},
                 {"|Δ|", 0.8f, true},
                 {to_say("bound"), 0.8f, true},
                 {to_say("where"), 2.4f},
                 {"", 0.8f}});
      const auto row = [&](const std::string& what, const Gap& gap) {
        rows.row({what, difference_text(gap.value), difference_text(gap.bound), place_of(gap),
                  gap.agrees() ? said("agrees") : said("DIFFERS")},
                 gap.agrees() ? nullptr : &ui.theme.key);
      };
      for (const Gap& gap : check.found.patterns) row(say("weights of layer {}", gap.layer), gap);
      if (check.found.logits) row(said("logits"), *check.found.logits);
      if (check.found.losses) row(said("losses, in nats"), *check.found.losses);
    }
    if (check.untried_window > 0)
      note(ui, say("The text is shorter than the window (or chunk) of {} tokens, which is not tried by it.",
                   check.untried_window));
  }
  ImGui::Dummy({0, ui.px(4)});
  note(ui, say("Computed by {}, Headscope {}. Bounds: weights 5e-5; logits 1e-4 of their spread; losses 1e-4, above "
               "1 nat of themselves.",
               known->engine, known->program));
}

void extents(const Ui& ui, const ModelFacts& facts) {
  const ModelConfig& c = facts.config;
  Rows rows(ui, "extents", {{"", 1}, {"", 3}});
  rows.row({said("family"), c.family + ": " + facts.summary});
  rows.row({said("layers"), std::to_string(c.dims.layers)});
  const std::string keys = across_layers(c.dims, &LayerWidths::kv_heads),
                    width = across_layers(c.dims, &LayerWidths::d_head),
                    neurons = across_layers(c.dims, &LayerWidths::d_mlp, grouped);
  rows.row(
      {said("heads"), keys == std::to_string(c.dims.heads)
                          ? say("{} of {} dimensions", c.dims.heads, width)
                          : say("{} of {} dimensions, on {} heads of keys and values", c.dims.heads, width, keys)});
  rows.row({said("width"), grouped(c.dims.d_model)});
  rows.row({"MLP", c.gated_mlp ? say("{} wide, gated, {}", neurons, name_of(c.activation))
                               : say("{} wide, {}", neurons, name_of(c.activation))});
  rows.row({said("norms"), fmt::format("{}, ε {}", name_of(c.norm), c.norm_epsilon)});
  rows.row({said("positions"), c.position == PositionKind::rotary
                                   ? say("{}, base {}", said_view(name_of(c.position)), c.rotary.base)
                                   : std::string(said_view(positions_of(c)))});
  rows.row({said("vocabulary"),
            c.tied_embeddings ? say("{}, embeddings tied", grouped(c.dims.vocab))
            : facts.untied
                ? say("{}, embeddings not tied: config.json ties them, the file has two matrices that differ",
                      grouped(c.dims.vocab))
                : say("{}, embeddings not tied", grouped(c.dims.vocab))});
  rows.row({said("context"), say("{} tokens", grouped(c.context))});
  rows.row({said("tokenizer"), !facts.tokenizer ? said("none: runs on token ids")
                               : facts.tokenizer->adds_bos
                                   ? say("{}; adds a token that begins texts", facts.tokenizer->kind)
                                   : say("{}; adds nothing", facts.tokenizer->kind)});
  const std::string other = switches(c);
  rows.row({said("and"), other.empty() ? said("nothing that GPT-2 or Llama do not do") : other});
}

void parameters(const Ui& ui, const ModelFacts& facts, const FilesStamp& stamp) {
  {
    section(ui, said("Parameters"), say("{} as stored", facts.dtype));
    Rows rows(ui, "parameters", {{"", 3}, {"", 1, true}, {"", 0.8f, true}, {"", 2}});
    for (const ModelFacts::Part& part : facts.parts)
      rows.row({said(part.shown()), grouped(part.parameters),
                fmt::format("{:.1f} %", 100.0 * static_cast<double>(part.parameters) /
                                            static_cast<double>(std::max<std::int64_t>(facts.parameters, 1)))});
    rows.row({said("together"), grouped(facts.parameters), ""}, &ui.theme.text);
  }
  section(ui, said("Weights"),
          say("{}, {} tensors, {}", facts.stored.format, facts.stored.count,
              memory_text(static_cast<double>(facts.stored.bytes))));
  {
    Rows rows(ui, "stored", {{"", 3}, {"", 1, true}, {"", 2.8f}});
    for (const auto& [type, count] : facts.stored.types) rows.row({type, say("{} tensors", count)});
  }
  if (!facts.unused.empty()) {
    std::string names;
    for (const std::string& name : facts.unused) names += (names.empty() ? "" : ", ") + name;
    note(ui, say("Not used by the model: {}", names));
  }
  section(ui, said("Files"), facts.path.string());
  Rows rows(ui, "files", {{"", 3}, {"", 1, true}, {"", 2.8f}});
  for (const FilesStamp::File& file : stamp.files())
    rows.row({file.name, memory_text(static_cast<double>(file.bytes)), day(file.written)});
}

void keys(const Ui& ui, const ModelFacts& facts) {
  std::string ignored;
  {
    section(ui, said("Keys that were used"), said("of config.json, or of what the file says in its place"));
    Rows rows(ui, "keys", {{"", 1.4f}, {"", 3}});
    for (const ConfigKey& each : facts.keys) {
      if (each.used) rows.row({each.key, each.value});
      if (!each.used) ignored += (ignored.empty() ? "" : ", ") + each.key + " = " + each.value;
    }
  }
  if (ignored.empty()) return;
  section(ui, said("Keys that change nothing"), said("of what is computed here"));
  note(ui, ignored);
}

void facts_part(const Ui& ui, CertificateController& certificates, const FilesStamp& stamp, int part) {
  const Facts& answer = certificates.want_facts();
  const auto facts = answer.current();
  if (!facts) {
    answer.error().empty() ? note(ui, said("Reading the files …")) : error_text(ui, answer.error());
    return;
  }
  if (part == part_model) extents(ui, *facts);
  if (part == part_files) parameters(ui, *facts, stamp);
  if (part == part_keys) keys(ui, *facts);
}

/// What can be done about it now.
void check_button(const Ui& ui, AppContext& app) {
  CertificateController& certificates = app.explorer.certificates;
  switch (certificates.state()) {
    case CheckState::none:
      break;
    case CheckState::checking:
      if (button(ui, to_say("Stop"))) certificates.stop();
      break;
    case CheckState::changed:
      if (button(ui, to_say("Open again"))) app.explorer.run.open_model(app.explorer.results().model_folder);
      break;
    case CheckState::not_checked:
      if (button(ui, to_say("Check now"))) certificates.check();
      break;
    case CheckState::failed:
    case CheckState::checked:
      if (button(ui, to_say("Check again"))) certificates.check();
      break;
  }
}
}  // namespace

void ModelPage::draw(Ui& ui, AppContext& app) {
  const Results& results = app.explorer.results();
  if (std::exchange(app.ui.about_model, false) && results.model.model) ImGui::OpenPopup("about model");
  if (!begin_floating(ui, "about model", 860 * ui.theme.text_scale, 56)) return;
  if (!results.model.model) {
    ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
    return;
  }
  CertificateController& certificates = app.explorer.certificates;
  {
    const UseFont use(ui, ui.heading());
    text_line(ui, results.model.model->config().name, ui.theme.text);
  }
  const bool same = app.explorer.state().document.model == results.model_folder;
  verdict(ui, certificates, same ? app.explorer.files.opened_model_note() : "");
  ImGui::Dummy({0, ui.px(2)});
  segmented(ui, "parts", part_names, shown_);
  ImGui::Dummy({0, ui.px(2)});
  // As high whatever it shows, so that nothing moves under the pointer.
  ImGui::BeginChild("part", {0, ImGui::GetIO().DisplaySize.y * 0.5f}, ImGuiChildFlags_NavFlattened);
  const auto known = certificates.certificate();
  shown_ == part_check ? checks(ui, known.get()) : facts_part(ui, certificates, results.model_files, shown_);
  ImGui::EndChild();
  ImGui::Dummy({0, ui.px(2)});
  check_button(ui, app);
  ImGui::SameLine();
  if (button(ui, to_say("Close")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace headscope
