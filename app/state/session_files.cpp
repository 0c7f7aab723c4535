#include "app/state/session_files.h"

#include <fmt/format.h>

#include <tuple>

#include <utility>

#include "app/assets.h"
#include "app/render/picture.h"
#include "app/state/picture_recipe.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/words.h"
#include "viz/export/recipe_note.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t text_limit = std::size_t{16} << 20;

/// What a bundled model is shown with: examples/NAME.txt, and of a translator examples/NAME.source.txt, which that
/// translates. Throws Error on files that cannot be read.
struct Example {
  std::string text, source;
  explicit Example(const std::string& name) : text(read(name + ".txt")), source(read(name + ".source.txt")) {}

 private:
  static std::string read(const std::string& name) {
    const auto file = find_asset("examples/" + name);
    return file ? read_file(*file, text_limit) : "";
  }
};
}  // namespace

void SessionFiles::suggest_text(const fs::path& folder) {
  const Document& document = editor_.document();
  if (!document.text.empty() || !document.ids.empty() || !document.image.empty() || !document.sound.empty()) return;
  std::error_code missing;
  // With or without a slash at its end.
  const fs::path path = fs::absolute(folder / "", missing).lexically_normal().parent_path();
  const std::string name = path.filename().string();
  const auto bundled = find_bundled_model(name);
  const bool own = bundled && fs::equivalent(*bundled, path, missing);
  if (const auto picture = own ? find_asset("examples/" + name + ".png") : std::nullopt) {
    editor_.set_image(*picture);
    return count_as_saved();
  }
  try {
    Example example(own ? name : "any-model");
    if (example.text.empty()) example = Example("any-model");
    if (!example.source.empty() && document.source.empty()) editor_.set_source(example.source);
    if (!example.text.empty()) editor_.set_text(example.text);
    count_as_saved();
  } catch (const Error& unreadable) {
    jobs_.show({Message::Level::error, unreadable.what(), "load"});
  }
}

void SessionFiles::open_example(const std::string& name, const std::string& text) {
  const auto folder = find_bundled_model(name);
  const auto picture = find_asset("examples/" + name + ".png");
  if (!folder) {
    jobs_.show({Message::Level::error,
                "model " + name + ": expected it among the program's bundled models, found nothing\n" +
                    "hint: reinstall, or set HEADSCOPE_ASSETS to the folder that holds examples/, beside models/",
                "load"});
    return;
  }
  std::string prompt, source;
  try {
    const Example example(text);
    prompt = example.text, source = example.source;
  } catch (const Error& unreadable) {
    return jobs_.show({Message::Level::error, unreadable.what(), "load"});
  }
  run_.open_model(
      *folder,
      [prompt, source, picture, asked = editor_.document()](Document& document) {
        if (picture && document.image == asked.image) document.image = *picture;
        if (prompt.empty() && source.empty()) return document.edits.clear();
        if (document.text == asked.text && document.ids == asked.ids && document.source == asked.source) {
          document.text = prompt;  // else: typed while the model was opened
          document.source = source;
          document.ids.clear();
        }
        document.edits.clear();
      },
      [this, prompt] {
        if (editor_.document().text == prompt) count_as_saved();
      });
}

void SessionFiles::save(const fs::path& file) const {
  write_file_atomically(file, to_json(session()));
}

Session SessionFiles::session() const {
  Session session{editor_.document(), editor_.state().view, transcript_source_ ? transcript_source_() : std::nullopt,
                  window_source_ ? window_source_() : SessionWindow{}, model_note_source_ ? model_note_source_() : ""};
  if (session.transcript && session.transcript->prompt.model != editor_.document().model)
    session.transcript.reset();  // of another model
  return session;
}

void SessionFiles::save_soon(const fs::path& file) {
  jobs_.on_files("session", [this, file, session = session()](Worker::Job&) -> Worker::Deliver {
    write_file_atomically(file, to_json(session));
    return [this, file, session] {
      count_as_saved(session);
      jobs_.tell(say_later("Saved {}", file.string()), "session");
    };
  });
}

void SessionFiles::count_as_saved(const Session& session) {
  saved_ = {session.document.text, session.document.ids, session.document.edits, session.transcript};
}

std::string SessionFiles::unsaved() const {
  if (aside_) return aside_->unsaved;
  const Document& document = editor_.document();
  std::vector<std::string> parts;
  if (!document.edits.empty() && document.edits != saved_.edits)
    parts.push_back(document.edits.size() == 1 ? said("an edit") : say("{} edits", document.edits.size()));
  const bool empty = document.text.empty() && document.ids.empty();
  if (!empty && (document.text != saved_.text || document.ids != saved_.ids)) parts.emplace_back(said("a text"));
  if (const auto transcript = session().transcript;
      transcript && (!saved_.transcript || transcript->branches != saved_.transcript->branches))
    parts.emplace_back(said("what the model wrote"));
  std::string words;
  for (std::size_t i = 0; i < parts.size(); ++i)
    words = i == 0 ? parts[i] : i + 1 == parts.size() ? say("{} and {}", words, parts[i]) : words + ", " + parts[i];
  return words;
}

namespace {
Session session_of_picture(const fs::path& file, const PictureRecipe& recipe) {
  if (recipe.session) return *recipe.session;
  throw Error(file.string(), "a picture of a model's run",
              "one that \"headscope-cli " + recipe.command.front() + "\" drew without",
              "headscope-cli render --again draws it again");
}

Session read_session(const fs::path& file) {
  if (kind_of_file(file) || is_film(file)) return session_of_picture(file, read_picture_recipe(file));
  Session session = session_from_json(read_file(file, text_limit), file.string());
  session.document.model = find_model(session.document.model, file);
  session.document.image = find_image(session.document.image, file);
  session.document.sound = find_sound(session.document.sound, file);
  if (session.transcript) session.transcript->prompt.model = session.document.model;
  return session;
}
}  // namespace

void SessionFiles::open_soon(const fs::path& file) {
  jobs_.on_files("session", [this, file](Worker::Job&) -> Worker::Deliver {
    return [this, read = read_session(file)] { show_of_file(read); };
  });
}

void SessionFiles::open_picture_soon(const fs::path& file, std::function<void()> plain) {
  jobs_.on_files("session", [this, file, plain = std::move(plain)](Worker::Job&) -> Worker::Deliver {
    try {
      if (read_recipe(file).empty()) return plain;
    } catch (const Error&) {
      return plain;  // broken, or of another kind than it is named
    }
    return [this, read = read_session(file)] { show_of_file(read); };
  });
}

void SessionFiles::take_up_soon(const fs::path& file) {
  jobs_.on_files("session", [this, file](Worker::Job&) -> Worker::Deliver {
    return [this, read = read_session(file)] {
      const Work before = aside_ ? aside_->saved : saved_;
      show_of_file(read);
      saved_ = before;
    };
  });
}

void SessionFiles::open(const fs::path& file) {
  show_of_file(read_session(file));
}

void SessionFiles::show_of_file(Session session) {
  aside_.reset();
  session.document.by_hand = editor_.document().by_hand;  // a file says nothing about it
  show(session);
}

void SessionFiles::show(const Session& session) {
  editor_.replace(session.document);
  editor_.view() = session.view;
  opened_transcript_ = session.transcript;
  opened_window_ = session.window;
  opened_model_note_ = session.model_note;
  count_as_saved(session);
}

namespace {
/// How the window is set up is the person's, whatever is shown in it.
void keep_window(View& view, const View& now) {
  view.theme = now.theme;
  view.text_unit = now.text_unit;
  std::tie(view.left_width, view.right_width, view.row_height) =
      std::tie(now.left_width, now.right_width, now.row_height);
  std::tie(view.left_open, view.right_open, view.row_open) = std::tie(now.left_open, now.right_open, now.row_open);
}
}  // namespace

void SessionFiles::show_aside(Session session) {
  if (!aside_) aside_ = Aside{this->session(), saved_, unsaved()};
  keep_window(session.view, editor_.state().view);
  show(session);
}

void SessionFiles::take_back() {
  if (!aside_) return;
  Aside own = *std::exchange(aside_, std::nullopt);
  keep_window(own.session.view, editor_.state().view);
  show(own.session);
  saved_ = own.saved;
}

}  // namespace headscope
