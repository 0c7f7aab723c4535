#include "app/state/window_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "app/assets.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/language.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "viz/export/glyphs.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t refused_shown = 3;

bool is_english(const std::string& language) {
  return language.substr(0, language.find('_')) == "en";
}

/// The first character that no font has; "" = all are there.
std::string lacking_in(const WordTable& table) {
  std::string all;
  for (const auto& [english, text] : table.entries()) all += text + '\n';
  return std::string(Glyphs().lacking(all, {}));
}

std::string refused_text(const fs::path& file, const std::vector<WordTable::Refused>& refused) {
  std::string text = fmt::format("{}: English stands in the place of {} that cannot be used:", file.string(),
                                 refused.size() == 1 ? "1 text" : fmt::format("{} texts", refused.size()));
  for (std::size_t i = 0; i < refused.size() && i < refused_shown; ++i)
    text += fmt::format("\n“{}”: {}", excerpt(refused[i].english), refused[i].why);
  if (refused.size() > refused_shown) text += "\n…";
  return text + "\nAll of them: headscope-cli words check " + file.string();
}
}  // namespace

std::set<std::string> word_languages() {
  std::set<std::string> found;
  for (const fs::path& folder : asset_folders()) {
    std::error_code failed;
    for (const fs::directory_entry& each : fs::directory_iterator(folder / "words", failed)) {
      const std::string name = each.path().stem().string();
      if (each.path().extension() == ".json" && parse_language(name) == name && !is_english(name)) found.insert(name);
    }
  }
  return found;
}

std::optional<fs::path> words_file(const std::string& language) {
  if (is_english(language)) return std::nullopt;
  for (const std::string& name : {language, language.substr(0, language.find('_'))})
    if (const auto file = find_asset("words/" + name + ".json")) return file;
  return std::nullopt;
}

std::string speak(const std::string& language) {
  const auto file = words_file(language.empty() ? system_language() : language);
  use_words({});
  if (!file) return "";
  try {
    WordTable table = WordTable::read(*file);
    if (const std::string lacking = lacking_in(table); !lacking.empty())
      return fmt::format(
          "The window is in English: no font on this machine has “{}” (U+{:04X}), which {} is written with. Fonts of "
          "many scripts: the package fonts-noto-cjk, or another of fonts-noto.",
          lacking, valid_code_point_at(lacking, 0).value_or(CodePoint{}).value, file->filename().string());
    const std::string problem = table.refused().empty() ? "" : refused_text(*file, table.refused());
    use_words(std::move(table), file->stem().string());
    return problem;
  } catch (const Error& error) {
    return std::string(error.what()) + "\nThe window is in English.";
  }
}

void speak_as_in(const std::string& language, const std::string& where) {
  use_words({});
  if (language.empty()) return;
  const auto file = parse_language(language) == language ? find_asset("words/" + language + ".json") : std::nullopt;
  if (!file) {
    const auto there = word_languages();
    throw Error(where, fmt::format("the table of words that it was drawn with, words/{}.json", excerpt(language, 40)),
                there.empty() ? "none of any language" : fmt::format("{}", fmt::join(there, ", ")),
                "tables lie among the program's assets (docs/CONTRIBUTING.md)");
  }
  use_words(WordTable::read(*file), language);
}

}  // namespace headscope
