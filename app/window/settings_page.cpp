#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "core/base/language.h"
#include "core/base/nth.h"
#include "core/base/words.h"

#include "app/state/window_words.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "app/window/pages.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr const char* theme_names[] = {to_say("Dark"), to_say("Light"), to_say("Projector")};
constexpr const char* theme_ids[] = {"dark", "light", "projector"};
constexpr const char* size_names[] = {"80 %", "90 %", "100 %", "110 %", "125 %", "150 %", "175 %", "200 %"};
constexpr double sizes[] = {0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2};
constexpr const char* memory_names[] = {"256 MB", "512 MB", "1 GB", "2 GB", "4 GB", "8 GB", "16 GB"};
constexpr int memory_sizes[] = {256, 512, 1024, 2048, 4096, 8192, 16384};

constexpr const char* precision_titles[] = {"f32", "TF32", "BF16"};
constexpr Precision precisions[] = {Precision::f32, Precision::tf32, Precision::bf16};

/// Names stand below one another, what is chosen beside them.
void label(const Ui& ui, const char* text) {
  ImGui::AlignTextToFramePadding();
  text_line(ui, said(text));
  const float end = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x + ui.px(8);
  ImGui::SameLine(std::max(ui.px(150 * ui.theme.text_scale), end));
}

void remark(const Ui& ui, const std::string& text) {
  const UseFont font(ui, ui.small());
  paragraph(ui, text, ui.theme.faint);
}

/// One of a list of values; another one, written into the file by hand, is none of them.
template <class Value, std::size_t n>
bool choose(const Ui& ui, const char* id, const char* const (&names)[n], const Value (&values)[n], Value& value) {
  int chosen = -1;
  for (std::size_t i = 0; i < n; ++i)
    if (values[i] == value) chosen = static_cast<int>(i);
  if (!segmented(ui, id, names, chosen)) return false;
  value = nth(values, chosen);
  return true;
}

}  // namespace

void SettingsPage::folder(Ui& ui, const char* label_text, const char* hint, Folder& line,
                          std::filesystem::path& setting) {
  label(ui, label_text);
  ImGui::SetNextItemWidth(-1);
  if (input_line(ui, fmt::format("##{}", label_text).c_str(), said(hint), line.text)) {
    const std::filesystem::path path(line.text);
    std::error_code missing;
    const bool good = line.text.empty() || (path.is_absolute() && std::filesystem::is_directory(path, missing));
    line.problem = good                 ? ""
                   : path.is_absolute() ? said("There is no such folder.")
                                        : said("Write the whole path, from / on.");
    if (good) setting = path;
  }
  if (!line.problem.empty()) paragraph(ui, line.problem, ui.theme.key);
}

/// The folders in which models are looked for besides the bundled ones and the cache, and a line for one more.
void SettingsPage::model_folders(Ui& ui, AppContext& app) {
  auto& folders = app.settings.model_folders;
  if (!folders.empty()) {
    // Three are in sight, so that the page fits a small window; the list scrolls.
    const float rows = static_cast<float>(std::min<std::size_t>(folders.size(), 3));
    ImGui::BeginChild("model folders", {0, rows * ImGui::GetFrameHeightWithSpacing()}, ImGuiChildFlags_NavFlattened);
    for (std::size_t i = 0; i < folders.size(); ++i) {
      label(ui, i == 0 ? to_say("Look for models in") : "");
      const float remove = button_width(ui, to_say("Remove")), width = ImGui::GetContentRegionAvail().x;
      const float right = ImGui::GetCursorPosX() + width - remove;
      const double room = static_cast<double>((width - remove) / ui.scale) - 8;
      ImGui::AlignTextToFramePadding();
      text_line(ui, elided(folders[i].string(), ui.body(), room, ui.fonts), ui.theme.text);
      ImGui::SameLine(right);
      ImGui::PushID(static_cast<int>(i));
      const bool gone = button(ui, to_say("Remove"), ImGui::GetFrameHeight());
      ImGui::PopID();
      if (gone) folders.erase(folders.begin() + static_cast<std::ptrdiff_t>(i--));
    }
    ImGui::EndChild();
  }
  label(ui, folders.empty() ? to_say("Look for models in") : "");
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - button_width(ui, to_say("Add")) - ui.px(8));
  if (input_line(ui, "##Look for models in", said("a folder beside the bundled models and the cache"), added_.text))
    added_.problem.clear();
  const bool entered =
      ImGui::IsItemDeactivated() && (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter));
  ImGui::SameLine(0, ui.px(8));
  ImGui::BeginDisabled(added_.text.empty() || folders.size() >= Settings::most_model_folders);
  const bool add = button(ui, to_say("Add"), ImGui::GetFrameHeight());
  ImGui::EndDisabled();
  if ((add || entered) && !added_.text.empty()) {
    const std::filesystem::path path(added_.text);
    std::error_code missing;
    added_.problem = !path.is_absolute()                                 ? said("Write the whole path, from / on.")
                     : !std::filesystem::is_directory(path, missing)     ? said("There is no such folder.")
                     : std::ranges::find(folders, path) != folders.end() ? said("It is in the list already.")
                                                                         : "";
    if (added_.problem.empty() && folders.size() < Settings::most_model_folders) {
      folders.push_back(path);
      added_.text.clear();
    }
  }
  if (!added_.problem.empty()) paragraph(ui, added_.problem, ui.theme.key);
}

/// What computes: the processor or a card, each by its name where there is room, else by its number.
void SettingsPage::device(Ui& ui, AppContext& app) {
  DeviceChoice& choice = app.settings.device;
  JobRunner& jobs = app.explorer.jobs;
  label(ui, to_say("Device"));
  const Cards cards = cards_ && *cards_ ? **cards_ : Cards{};
  std::vector<const CudaDevice*> usable;
  std::vector<std::string> full{to_say("Processor")}, numbered = full, numbers = full;
  for (const CudaDevice& card : cards.found) {
    if (!card.unusable.empty()) continue;
    usable.push_back(&card);
    const bool alone = std::ranges::count(cards.found, card.name, &CudaDevice::name) == 1;
    full.push_back(alone ? card.name : fmt::format("{} ({})", card.name, card.index));
    numbered.push_back(say("Card {}", card.index));
    numbers.push_back(usable.size() == 1 ? numbered.back() : std::to_string(card.index));
  }
  const auto pointers = [](const std::vector<std::string>& words) {
    std::vector<const char*> out;
    for (const std::string& each : words) out.push_back(each.c_str());
    return out;
  };
  const float room = ImGui::GetContentRegionAvail().x;
  std::vector<const char*> labels;
  for (const auto* names : {&full, &numbered, &numbers}) {
    labels = pointers(*names);
    if (segmented_width(ui, labels) <= room) break;
  }
  const float width = std::min(segmented_width(ui, labels), room);
  const auto at = std::ranges::find(usable, choice.index, &CudaDevice::index);
  int chosen = !choice.cuda ? 0 : at == usable.end() ? -1 : static_cast<int>(at - usable.begin()) + 1;
  if (segmented(ui, "device", labels, chosen, width)) {
    choice.cuda = chosen > 0;
    if (chosen > 0) choice.index = nth(usable, chosen - 1)->index;
  }
  if (!jobs.why_cpu().empty()) {
    const float gap = ui.px(8);
    if (width + gap + button_width(ui, to_say("Try again")) <= room)
      ImGui::SameLine(0, gap);
    else
      label(ui, "");
    if (button(ui, to_say("Try again"), ImGui::GetFrameHeight())) jobs.try_device_again();
    paragraph(ui, jobs.why_cpu(), ui.theme.key);
  }
  if (chosen > 0 && labels[0] != full[0].c_str()) remark(ui, nth(usable, chosen - 1)->name + ".");
  if (!cards_ || !*cards_) return remark(ui, said("Looking for cards …"));
  if (!cards.why_none.empty() && jobs.why_cpu().empty()) remark(ui, say("No card to choose: {}.", cards.why_none));
  for (const CudaDevice& card : cards.found)
    if (!card.unusable.empty())
      remark(ui, say("Card {}, {}, cannot be used: {}.", card.index, card.name, card.unusable));
  if (choice.cuda && !usable.empty()) {
    label(ui, to_say("Precision"));
    choose(ui, "precision", precision_titles, precisions, choice.precision);
    remark(ui,
           said("Of products. TF32 (10 bits behind the point) and BF16 (7) are quicker with long texts; numbers move a "
                "little."));
  }
}

/// Of the window and of lessons: the system's, English, and what one of them is translated to. Beside the theme, as low
/// windows have no row to spare.
void SettingsPage::language(Ui& ui, AppContext& app) {
  std::vector<std::string> names{"", "en"};
  std::set<std::string> translated = app.explorer.lessons.languages();
  translated.merge(std::set(tables_));
  names.insert(names.end(), translated.begin(), translated.end());
  const auto words = [](const std::string& name) {
    return name.empty() ? say("System ({})", system_language()) : name;
  };
  ImGui::SameLine(0, ui.px(24));
  ImGui::AlignTextToFramePadding();
  text_line(ui, said("Language"));
  ImGui::SameLine(0, ui.px(10));
  std::string& chosen = app.settings.language;
  if (menu_button(ui, "language of lessons", words(chosen), "", ImGui::GetFrameHeight())) ImGui::OpenPopup("languages");
  if (!ImGui::BeginPopup("languages")) return;
  for (const std::string& each : names) {
    if (ImGui::MenuItem(words(each).c_str(), nullptr, each == chosen)) {
      chosen = each;
      app.ui.language = each;  // at once, also where the command line said another for this run
    }
    ui.name("lessons in " + each, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  }
  ImGui::EndPopup();
}

void SettingsPage::draw(Ui& ui, AppContext& app) {
  Settings& settings = app.settings;
  if (std::exchange(app.ui.settings, false)) {
    models_ = {settings.models_folder.string(), ""};
    documents_ = {settings.documents_folder.string(), ""};
    added_ = {};
    tables_ = word_languages();
    cards_ = std::make_shared<std::optional<Cards>>();
    app.explorer.jobs.on_files("cards", [slot = cards_, look = app.explorer.jobs.devices().cards](Worker::Job&) {
      Cards found;
      try {
        found = look(false);
      } catch (const std::exception& failed) {
        found.why_none = failed.what();
      }
      return [slot, found] { *slot = found; };
    });
    ImGui::OpenPopup("settings");
    open_ = true;
  }
  if (!begin_floating(ui, "settings", 640 * ui.theme.text_scale, 60)) {
    if (std::exchange(open_, false)) app.ui.settings_changed = true;
    return;
  }
  {
    const UseFont use(ui, ui.heading());
    text_line(ui, said("Settings"));
  }
  section(ui, said("LOOK"));
  label(ui, to_say("Theme"));
  const auto known = std::ranges::find(theme_ids, app.explorer.state().view.theme);
  int theme = static_cast<int>(known - std::begin(theme_ids));
  if (segmented(ui, "theme", theme_names, theme))
    app.explorer.editor.view().theme = settings.theme = nth(theme_ids, theme);
  language(ui, app);
  label(ui, to_say("Text size"));
  choose(ui, "text size", size_names, sizes, settings.ui_scale);

  section(ui, said("COMPUTING"));
  device(ui, app);
  label(ui, to_say("Threads"));
  const int most = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::string all = say("All {}", most);
  // Powers of two below all of them.
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  std::vector<std::string> words;
  for (const int count : counts) words.push_back(std::to_string(count));
  words.push_back(all);
  counts.push_back(0);
  std::vector<const char*> names;
  for (const std::string& each : words) names.push_back(each.c_str());
  const auto at = std::ranges::find(counts, settings.threads);
  int threads = at == counts.end() ? -1 : static_cast<int>(at - counts.begin());
  if (segmented(ui, "threads", names, threads)) settings.threads = nth(counts, threads);
  label(ui, to_say("Memory for maps"));
  choose(ui, "memory", memory_names, memory_sizes, settings.memory_mb);
  remark(ui,
         said("Of one run. Maps that would take more are kept as queries and keys: every weight is computed when it is "
              "looked at."));

  section(ui, said("FOLDERS"), said("empty: where the last dialog was"));
  folder(ui, to_say("Models"), to_say("where “Open model” begins"), models_, settings.models_folder);
  folder(ui, to_say("Documents"), to_say("where sessions and pictures are kept"), documents_,
         settings.documents_folder);
  model_folders(ui, app);
  ImGui::Dummy({0, ui.px(4)});
  const auto file = settings_file();
  remark(ui, file.empty() ? std::string(said("Not kept: neither HOME nor XDG_CONFIG_HOME names a folder"))
                          : say("Kept in {}", file.string()));
  if (button(ui, to_say("Close")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

}  // namespace headscope
