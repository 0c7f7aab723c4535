#include "app/actions/lesson_actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/state/lesson_record.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {

bool model_is_open(const AppContext& app) {
  return app.explorer.results().model.model != nullptr;
}
bool taken(const AppContext& app) {
  return app.explorer.lessons.lesson() != nullptr;
}

/// What is on the screen; what cannot be written down is the message. A row or a cell that the text has no more, since
/// it became shorter, is none.
template <class Write>
void with_session(AppContext& app, Write&& write) {
  try {
    Session session = app.explorer.files.session();
    Document& document = session.document;
    if (const auto& run = app.explorer.results().run) {
      const auto beyond = [](std::optional<Index> at, const std::vector<Token>& tokens) {
        return at && *at >= static_cast<Index>(tokens.size());
      };
      if (beyond(document.key, run->trace->tokens)) document.key.reset();
      if (beyond(document.query, run->trace->queries())) document.query.reset(), document.key.reset();
    }
    write(session);
  } catch (const Error& wrong) {
    app.explorer.jobs.show({Message::Level::error, wrong.what(), ""});
  }
}

/// "␣sold" → "sold"; what is nothing but a space stays.
std::string without_space(const std::string& label) {
  constexpr std::string_view space = "␣";
  return label.starts_with(space) && label.size() > space.size() ? label.substr(space.size()) : label;
}

/// Of Explore: the head, or the token in all of them.
std::string head_title(const AppContext& app, const Session& session) {
  const Document& document = session.document;
  std::string out =
      session.view.head_view == HeadView::heads ? said("All heads") : say("Head {}", to_string(document.selected));
  const auto& run = app.explorer.results().run;
  if (run && document.query && *document.query < static_cast<Index>(run->trace->queries().size()))
    out += " · " + without_space(nth(run->trace->queries(), *document.query).label);
  return out;
}

std::string page_title(const AppContext& app, const SessionWindow& window) {
  const auto page = window.pages.find(window.workspace);
  for (const UiRequests::Page& each : app.ui.pages)
    if (each.of == window.workspace && page != window.pages.end() && each.id == page->second) return said(each.title);
  return workspace_tab(window.workspace) < workspace_list.size()
             ? std::string(said_view(workspace_name(window.workspace).title))
             : window.workspace;
}

}  // namespace

std::string scene_title(const AppContext& app, const Session& session) {
  const std::string& workspace = session.window.workspace;
  std::string out =
      workspace.empty() || workspace == "Explore" ? head_title(app, session) : page_title(app, session.window);
  const auto& edits = session.document.edits;
  const auto on = std::ranges::count_if(edits, &Intervention::enabled);
  if (on == 1)
    out += " · " + describe(*std::ranges::find_if(edits, &Intervention::enabled));
  else if (on > 1)
    out += " · " + say("{} edits", on);
  return out;
}

void add_presenting(std::vector<Action>& all) {
  const auto slides = [](const AppContext& app) { return app.slides(); };
  all.push_back({"view.present", to_say("Present: one large picture on the whole screen"), "F11", "View",
                 [](AppContext& app) { app.ui.presenting = !app.ui.presenting; }, nullptr,
                 [](const AppContext& app) { return app.ui.presenting; }});
  all.push_back({"present.spotlight", to_say("Presenting: spotlight on what the step is about"), "L", "View",
                 [](AppContext& app) { app.ui.spotlight = !app.ui.spotlight; },
                 [](const AppContext& app) { return app.ui.presenting; },
                 [](const AppContext& app) { return app.ui.spotlight; }});
  all.push_back({"present.notes", to_say("Presenting: notes and time in a second window"), "F12", "View",
                 [](AppContext& app) { app.ui.presenter = !app.ui.presenter; }, slides,
                 [](const AppContext& app) { return app.ui.presenter; }});
  all.push_back({"scenes.add", to_say("Scenes: put what is on the screen on the list"), "F7", "View",
                 [](AppContext& app) {
                   with_session(app, [&](const Session& session) {
                     app.explorer.scenes.add(scene_title(app, session), lesson_show_block(session));
                   });
                 },
                 model_is_open, nullptr});
  all.push_back({"scenes.list", to_say("Scenes: the list…"), "F8", "View",
                 [](AppContext& app) { app.ui.scenes = true; }, nullptr, nullptr});
  all.push_back({"scenes.present", to_say("Scenes: present the list"), "Shift+F11", "View",
                 [](AppContext& app) {
                   app.explorer.scenes.present(0, [&presenting = app.ui.presenting] { presenting = true; });
                 },
                 nullptr, nullptr});
}

void add_lessons(std::vector<Action>& all) {
  const auto lesson = [](int by) {
    return [by](AppContext& app) { app.explorer.lessons.go(app.explorer.lessons.at() + by); };
  };
  all.push_back({"lesson.next", to_say("Lesson: next step"), "F4", "Help", lesson(1), taken, nullptr});
  all.push_back({"lesson.back", to_say("Lesson: step before"), "F3", "Help", lesson(-1), taken, nullptr});
  all.push_back({"lesson.show", to_say("Lesson: show the step again"), "F6", "Help",
                 [](AppContext& app) { app.explorer.lessons.show_again(); }, taken, nullptr});
  all.push_back({"lesson.record", to_say("Copy what is on the screen as a step of a lesson"), "", "Help",
                 [](AppContext& app) {
                   with_session(app, [&](const Session& session) {
                     app.ui.clipboard = lesson_step_text(session);
                     app.explorer.jobs.tell(to_say("Copied: a step for a lesson's file"));
                   });
                 },
                 model_is_open, nullptr});
  all.push_back({"lesson.leave", to_say("Lesson: leave it"), "", "Help",
                 [](AppContext& app) { app.explorer.lessons.close(); }, taken, nullptr});
}

}  // namespace headscope
