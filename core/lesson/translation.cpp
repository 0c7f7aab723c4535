#include "core/lesson/translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "core/base/excerpt.h"
#include "core/base/language.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
/// "01-heads" and "de" of "01-heads.de.md"; the language is "" where the name says none.
std::pair<std::string, std::string> named_parts(const fs::path& file) {
  const fs::path stem = file.stem();
  const std::string ending = stem.extension().string();
  if (ending.size() < 2 || file.extension() != ".md") return {stem.string(), ""};
  const auto language = parse_language(std::string_view(ending).substr(1));
  if (!language || "." + *language != ending) return {stem.string(), ""};
  return {stem.stem().string(), *language};
}

bool is_there(const fs::path& file) {
  std::error_code failed;
  return fs::is_regular_file(file, failed);
}

std::string quoted(const LessonLine& line) {
  return fmt::format("{} “{}”", line.key, excerpt(line.text, 60));
}

/// What stays the same of the front matter, or of a step.
void compare(const std::vector<LessonLine>& original, const std::vector<LessonLine>& translation, int line,
             const std::string& where, std::vector<TranslationFault>& faults) {
  for (std::size_t i = 0; i < std::max(original.size(), translation.size()); ++i) {
    const LessonLine* const own = i < original.size() ? &original[i] : nullptr;
    const LessonLine* const here = i < translation.size() ? &translation[i] : nullptr;
    if (own && here && own->key == here->key && own->text == here->text) continue;
    faults.push_back(
        {here ? here->line : line,
         fmt::format("{}: expected {}, found {}", where,
                     own ? fmt::format("{} as in line {} of the lesson", quoted(*own), own->line) : "nothing more",
                     here ? quoted(*here) : "nothing more")});
    return;  // what follows one that is missing is another everywhere
  }
}
}  // namespace

std::string language_of(const fs::path& file) {
  const auto [name, language] = named_parts(file);
  return !language.empty() && is_there(file.parent_path() / (name + ".md")) ? language : "";
}

fs::path original_of(const fs::path& file) {
  return language_of(file).empty() ? file : file.parent_path() / (named_parts(file).first + ".md");
}

std::vector<fs::path> translations_of(const fs::path& file) {
  std::vector<fs::path> found;
  std::error_code failed;
  const fs::path folder = file.parent_path();
  for (const fs::directory_entry& each : fs::directory_iterator(folder.empty() ? "." : folder, failed))
    if (const auto [name, language] = named_parts(each.path());
        !language.empty() && name == file.stem().string() && is_there(file))
      found.push_back(folder / each.path().filename());
  std::ranges::sort(found);
  return found;
}

fs::path in_language(const fs::path& file, const std::string& language) {
  for (const std::string& name : {language, language.substr(0, language.find('_'))})
    if (fs::path beside = file.parent_path() / (file.stem().string() + "." + name + file.extension().string());
        !name.empty() && is_there(beside) && is_there(file))
      return beside;
  return file;
}

std::vector<TranslationFault> translation_faults(const Lesson& original, const Lesson& translation) {
  std::vector<TranslationFault> faults;
  compare(original.fixed, translation.fixed, 1, "front matter", faults);
  for (std::size_t i = 0; i < std::min(original.steps.size(), translation.steps.size()); ++i)
    compare(original.steps[i].fixed, translation.steps[i].fixed, translation.steps[i].line,
            fmt::format("step {}", i + 1), faults);
  if (original.steps.size() != translation.steps.size())
    faults.push_back({translation.steps.back().line, fmt::format("expected {} steps, as the lesson has, found {}",
                                                                 original.steps.size(), translation.steps.size())});
  return faults;
}

}  // namespace headscope
