#pragma once
// Lessons in other languages: files beside a lesson's own, 01-heads.de.md beside 01-heads.md. Each is a whole lesson;
// what it says may differ, what it shows, asks and claims may not.

#include <filesystem>
#include <string>
#include <vector>

#include "core/lesson/lesson.h"

namespace headscope {

/// The language of a lesson's file; "" where it is no translation: its name says none, or no other file is beside it
/// that it could be a translation of.
std::string language_of(const std::filesystem::path& file);
/// The lesson that it is a translation of, or the file itself.
std::filesystem::path original_of(const std::filesystem::path& file);
/// All that lie beside a lesson, by their names.
std::vector<std::filesystem::path> translations_of(const std::filesystem::path& file);
/// The lesson, or another file, in this language ("de", "zh_CN", for which "zh" will do), where it is beside the file;
/// else the file.
std::filesystem::path in_language(const std::filesystem::path& file, const std::string& language);

struct TranslationFault {
  int line = 0;  ///< of the translation
  std::string what;
};
/// Where a translation does not have the steps of its lesson, or in one of them another scene, question or claim.
std::vector<TranslationFault> translation_faults(const Lesson& original, const Lesson& translation);

}  // namespace headscope
