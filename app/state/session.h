#pragma once
// Session files: a document and its view as JSON. Numbers of a trace are never stored; opening a session runs it again.

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "app/state/app_state.h"
#include "app/state/transcript_record.h"

namespace headscope {

/// What the window showed around the document.
struct SessionWindow {
  std::string workspace;                        ///< title of the one that was shown; "" = the file does not say
  std::map<std::string, std::string> pages;     ///< by a workspace's title: the id of what it showed
  std::map<std::string, std::string> controls;  ///< likewise: a JSON object (app/state/controls_record.h)
  bool operator==(const SessionWindow&) const = default;
};

struct Session {
  Document document;
  View view;
  std::optional<TranscriptRecord> transcript = {};  ///< what the Generate workspace wrote with the document's model
  SessionWindow window = {};
  /// What was known of the document's model when it was saved: model_note() (core/analysis/certificate.h); "" =
  /// nothing.
  std::string model_note = {};
  bool operator==(const Session&) const = default;
};

/// 1: without window; 2: without model_note.
inline constexpr int session_version = 3;

/// {"type": "headscope session", "version": 3, …}. Throws Error when the text is not UTF-8.
std::string to_json(const Session& session);
/// Absent keys take their defaults, unknown keys are refused. Throws Error at `where` on a file of another type, a
/// newer version, or a value that makes no sense.
Session session_from_json(const std::string& json, const std::string& where);

/// Where its picture is now: the path itself, else beside the session file.
std::filesystem::path find_image(const std::filesystem::path& image, const std::filesystem::path& session_file);
/// The same of a sound, which may name the second that it begins at (sound_place()).
std::filesystem::path find_sound(const std::filesystem::path& sound, const std::filesystem::path& session_file);
/// Where a model named in a session is now: the path itself, else beside the session file, else the bundled one of
/// its name, else the path, so that opening it says what is missing.
std::filesystem::path find_model(const std::filesystem::path& model, const std::filesystem::path& session_file);

}  // namespace headscope
