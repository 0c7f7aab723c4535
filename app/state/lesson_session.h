#pragma once
// What a step of a lesson shows, as a session and as a request to run.

#include "app/state/session.h"
#include "core/lesson/glossary.h"
#include "core/lesson/tell.h"

namespace headscope {

/// The bundled model of that name, else the path as it is.
std::filesystem::path lesson_model(const std::string& name);
/// Whose heads the scene speaks of. Throws Error.
Stack lesson_stack(const LessonScene& scene);
/// What the model reads in this scene, with its edits. Throws Error as lesson_session() does, and where no model is
/// named.
RunRequest lesson_request(const LessonScene& scene);
/// The same with what is looked at. `told` says which head, row and cell. Throws Error on a workspace, a view, an edit,
/// a picture, a mechanism or a piece of a session that is none.
Session lesson_session(const LessonScene& scene, const LessonTold& told, const std::string& where);

/// Where one's own lessons lie: user data / lessons; empty where there is no such folder.
std::filesystem::path own_lessons_folder();
/// The bundled lessons' files, and those of the user's own folder (user data / lessons), by name; without those that
/// are a lesson in another language (core/lesson/translation.h).
std::vector<std::filesystem::path> lesson_files();
/// The lesson in this language, where it is translated and this machine's fonts have the characters; else in its own.
/// `why_not`: of fonts that lack one, a sentence; else as it was. Throws Error as read_lesson().
Lesson read_lesson_in(const std::filesystem::path& file, const std::string& language, std::string& why_not);
/// The bundled one, in this language where it is translated and fonts have the characters (`why_not` as above); empty
/// where there is none. Throws Error as parse_glossary() does.
std::vector<GlossaryEntry> read_glossary(const std::string& language, std::string& why_not);

}  // namespace headscope
