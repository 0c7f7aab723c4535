#pragma once
// Which table of words the window is said by (core/base/words.h): assets/words/LANGUAGE.json, one for each language but
// English, which en.json lists and the code says itself. Thread rule: the UI thread, or a program that has no other.

#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace headscope {

/// Languages that there is a table for, by name; English is none.
std::set<std::string> word_languages();
/// The table of this language ("pt_BR", for which "pt" will do); nullopt for English, and where there is none.
std::optional<std::filesystem::path> words_file(const std::string& language);

/// From now on the window is said by the table of this language ("" = the system's), in English where there is none.
/// Returns what is wrong with it, in sentences, "" = nothing: it cannot be read, no font has its characters (then all
/// is in English), or some of its texts do not fit (then those are).
std::string speak(const std::string& language);
/// The same of a picture's recipe, "" = English. Throws Error at `where` when there is no such table.
void speak_as_in(const std::string& language, const std::string& where);

}  // namespace headscope
