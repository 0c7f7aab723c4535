#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "app/actions/action.h"
#include "app/actions/lesson_actions.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/ablate_edit.h"
#include "core/metrics/metric.h"

namespace headscope {

namespace {
using Dialog = UiRequests::Dialog;

bool has_model(const AppContext& app) {
  return app.explorer.results().model.model != nullptr;
}
bool has_run(const AppContext& app) {
  return app.explorer.results().run != nullptr;
}
/// What a capture shows was computed elsewhere: it can be looked at, not changed.
bool can_edit(const AppContext& app) {
  return has_model(app) && has_run(app);
}
bool has_facts(const AppContext& app) {
  return app.explorer.results().facts != nullptr;
}
Index token_count(const AppContext& app) {
  return has_run(app) ? static_cast<Index>(app.explorer.results().run->trace->queries().size()) : 0;
}

Intervention without_selected(const AppContext& app) {
  const Document& document = app.explorer.state().document;
  return {target_of(EditScope::head, document.selected, document.stack), Ablate{}};
}

/// The next head in reading order of the atlas, round the end.
void move_head(AppContext& app, int layers, int heads) {
  const ModelDims& dims = app.explorer.results().run->trace->model.dims;
  HeadId head = app.explorer.state().document.selected;
  head.layer = (head.layer + layers + dims.layers) % dims.layers;
  const int own = dims.heads_of(head.layer);
  head.head = (std::min(head.head, own - 1) + heads + own) % own;
  app.explorer.editor.select(head);
}

/// The pinned query one token on; from none, the first or the last.
void move_query(AppContext& app, Index step) {
  const Index tokens = token_count(app);
  const auto query = app.explorer.state().document.query;
  const Index from = query ? *query + step : step > 0 ? 0 : tokens - 1;
  app.explorer.editor.pin(std::clamp<Index>(from, 0, tokens - 1));
}

/// The pinned key one token on, inside the pinned row; from none, the key of the row's largest weight.
void move_key(AppContext& app, Index step) {
  const Document& document = app.explorer.state().document;
  if (!document.query) return;
  const AttentionMap* map = app.explorer.results().map(document.selected);
  if (!map || *document.query >= map->n_query()) return;
  const Index strongest = std::max(nth(map->stats().max_key, *document.query), 0);
  const Index key = document.key ? *document.key + step : strongest;
  app.explorer.editor.pin(document.query, std::clamp<Index>(key, 0, map->n_key() - 1));
}

template <class Value>
Action choice(std::string id, std::string title, std::string shortcut, Value View::*field, Value value) {
  return {std::move(id),
          std::move(title),
          std::move(shortcut),
          "View",
          [field, value](AppContext& app) { app.explorer.editor.view().*field = value; },
          nullptr,
          [field, value](const AppContext& app) { return app.explorer.state().view.*field == value; }};
}

Action toggle(std::string id, std::string title, std::string shortcut, bool View::*field) {
  return {std::move(id),
          std::move(title),
          std::move(shortcut),
          "View",
          [field](AppContext& app) { app.explorer.editor.view().*field = !(app.explorer.state().view.*field); },
          nullptr,
          [field](const AppContext& app) { return app.explorer.state().view.*field; }};
}

Action theme_action(const std::string& id, std::string title) {
  return {"view.theme." + id,
          std::move(title),
          "",
          "View",
          [id](AppContext& app) { app.explorer.editor.view().theme = app.settings.theme = id; },
          nullptr,
          [id](const AppContext& app) { return app.explorer.state().view.theme == id; }};
}

Action coloring(std::string id, std::string title, std::function<bool(const AppContext&)> enabled) {
  const std::string value = id;
  return {"atlas.color." + std::move(id),
          "Atlas: " + title,
          "",
          "View",
          [value](AppContext& app) { app.explorer.editor.view().atlas.coloring = value; },
          std::move(enabled),
          [value](const AppContext& app) { return app.explorer.state().view.atlas.coloring == value; },
          [title] { return say("Atlas: {}", said(title)); }};
}

void add_file(std::vector<Action>& all) {
  const auto dialog = [](Dialog which) { return [which](AppContext& app) { app.ui.dialog = which; }; };
  all.push_back({"file.models", to_say("Models on this machine…"), "Ctrl+M", "File",
                 [](AppContext& app) { app.ui.models = true; }, nullptr, nullptr});
  all.push_back({"file.get_model", to_say("Get a model…"), "Ctrl+G", "File",
                 [](AppContext& app) { app.ui.get_model = true; }, nullptr, nullptr});
  all.push_back(
      {"file.open_model", to_say("Open model…"), "Ctrl+O", "File", dialog(Dialog::open_model), nullptr, nullptr});
  constexpr std::pair<const char*, const char*> bundled[] = {
      {"everyday-gpt2", to_say("Open everyday-gpt2: plain English sentences and questions")},
      {"tiny-gpt2", to_say("Open tiny-gpt2: stories, learned positions")},
      {"tiny-llama", to_say("Open tiny-llama: stories, rotary positions")},
      {"tiny-bert", to_say("Open tiny-bert: stories, an encoder that tells masked words")},
      {"tiny-translate", to_say("Open tiny-translate: two small languages whose alignment is known")},
      {"tiny-vit", to_say("Open tiny-vit: pictures of shapes, a vision transformer")},
      {"tiny-mixtral", to_say("Open tiny-mixtral: plain English, each token through two of eight experts")},
      {"tiny-mamba", to_say("Open tiny-mamba: stories, told by states in place of attention")},
      {"induction-2l", to_say("Open induction-2l: two layers that learnt to repeat")},
      {"sink-2l", to_say("Open sink-2l: two layers whose heads rest on the first token")},
      {"induction", to_say("Open induction: two layers made by hand")}};
  for (const auto& [name, title] : bundled)
    all.push_back({std::string("file.open.") + name, title, "", "File",
                   [name = name](AppContext& app) { app.explorer.files.open_example(name); }, nullptr, nullptr});
  all.push_back({"file.open_session", to_say("Open session…"), "Ctrl+Shift+O", "File", dialog(Dialog::open_session),
                 nullptr, nullptr});
  all.push_back({"file.save_session", to_say("Save session…"), "Ctrl+S", "File", dialog(Dialog::save_session),
                 has_model, nullptr});
  all.push_back({"file.export", to_say("Export a picture or its numbers…"), "Ctrl+E", "File",
                 dialog(Dialog::export_view), nullptr, nullptr});
  all.push_back({"file.film", to_say("Export a film: one number changes…"), "", "File", dialog(Dialog::export_film),
                 nullptr, nullptr});
  all.push_back({"file.about_model", to_say("About this model…"), "Ctrl+I", "File",
                 [](AppContext& app) { app.ui.about_model = true; }, has_model, nullptr});
  all.push_back({"file.check_model", to_say("Check this model beside its definition"), "", "File",
                 [](AppContext& app) { app.explorer.certificates.check(); },
                 [](const AppContext& app) {
                   using State = CertificateController::State;
                   const State state = app.explorer.certificates.state();
                   return has_model(app) && state != State::checking && state != State::changed;
                 },
                 nullptr});
  const auto copy = [](Copy what) { return [what](AppContext& app) { app.ui.copy = what; }; };
  all.push_back({"file.copy_picture", to_say("Copy the picture on screen"), "Ctrl+Alt+C", "File", copy(Copy::picture),
                 has_run, nullptr});
  all.push_back(
      {"file.copy_numbers", to_say("Copy its numbers"), "Ctrl+Shift+C", "File", copy(Copy::numbers), has_run, nullptr});
  all.push_back(
      {"file.copy_caption", to_say("Copy a caption for it"), "", "File", copy(Copy::caption), has_run, nullptr});
  all.push_back({"file.settings", to_say("Settings…"), "Ctrl+,", "File",
                 [](AppContext& app) { app.ui.settings = true; }, nullptr, nullptr});
  all.push_back(
      {"file.quit", to_say("Quit"), "Ctrl+Q", "File", [](AppContext& app) { app.ui.quit = true; }, nullptr, nullptr});
}

void add_edit(std::vector<Action>& all) {
  all.push_back({"edit.undo", to_say("Undo"), "Ctrl+Z", "Edit", [](AppContext& app) { app.explorer.editor.undo(); },
                 [](const AppContext& app) { return app.explorer.editor.history().can_undo(); }, nullptr});
  all.push_back({"edit.redo", to_say("Redo"), "Ctrl+Shift+Z or Ctrl+Y", "Edit",
                 [](AppContext& app) { app.explorer.editor.redo(); },
                 [](const AppContext& app) { return app.explorer.editor.history().can_redo(); }, nullptr});
  all.push_back({"edit.steps", to_say("Undo list…"), "Ctrl+H", "Edit", [](AppContext& app) { app.ui.steps = true; },
                 [](const AppContext& app) {
                   return app.explorer.editor.history().can_undo() || app.explorer.editor.history().can_redo();
                 },
                 nullptr});
  all.push_back({"edit.add", to_say("Add an edit…"), "A", "Edit",
                 [](AppContext& app) {
                   app.ui.workspace = workspace_index("Explore");
                   app.ui.add_edit = true;
                 },
                 can_edit, nullptr});
  all.push_back({"edit.prompt", to_say("Edit the prompt"), "Ctrl+L", "Edit",
                 [](AppContext& app) { app.ui.focus_prompt = true; }, nullptr, nullptr});
  const auto can_mask = [](const AppContext& app) {
    const Document& document = app.explorer.state().document;
    return document.query && headscope::can_mask(document, app.explorer.results(), *document.query);
  };
  all.push_back({"edit.mask_token", to_say("Mask the pinned token, or show it again"), "K", "Edit",
                 [](AppContext& app) {
                   app.explorer.editor.toggle_masked(static_cast<int>(*app.explorer.state().document.query));
                 },
                 can_mask,
                 [can_mask](const AppContext& app) {
                   return can_mask(app) && std::ranges::count(app.explorer.state().document.masked,
                                                              static_cast<int>(*app.explorer.state().document.query),
                                                              &MaskedPosition::position) > 0;
                 }});
  const auto has_edits = [](const AppContext& app) { return !app.explorer.state().document.edits.empty(); };
  all.push_back({"edit.ablate", to_say("Ablate the selected head, or bring it back"), "X", "Edit",
                 [](AppContext& app) {
                   const Intervention ablated = without_selected(app);
                   auto edits = app.explorer.state().document.edits;
                   if (std::erase(edits, ablated) == 0) edits.push_back(ablated);
                   app.explorer.editor.history().close_step();
                   app.explorer.editor.set_edits(std::move(edits));
                 },
                 can_edit,
                 [](const AppContext& app) {
                   return std::ranges::count(app.explorer.state().document.edits, without_selected(app)) > 0;
                 }});
  all.push_back({"edit.answers", to_say("Logit difference: back to the two most probable tokens"), "", "Edit",
                 [](AppContext& app) { app.explorer.editor.view().contrast.reset(); },
                 [](const AppContext& app) { return app.explorer.state().view.contrast.has_value(); }, nullptr});
  all.push_back({"edit.clear", to_say("Remove all edits of the model"), "", "Edit",
                 [](AppContext& app) { app.explorer.editor.set_edits({}); }, has_edits, nullptr});
  const auto any_on = [](const AppContext& app) {
    return std::ranges::any_of(app.explorer.state().document.edits, &Intervention::enabled);
  };
  all.push_back({"edit.toggle", to_say("Switch the edits off or on"), "Ctrl+D", "Edit",
                 [any_on](AppContext& app) {
                   auto edits = app.explorer.state().document.edits;
                   const bool on = !any_on(app);
                   for (Intervention& edit : edits) edit.enabled = on;
                   app.explorer.editor.set_edits(std::move(edits));
                 },
                 has_edits, any_on});
  all.push_back(
      {"edit.run_again", to_say("Run again what was stopped"), "F5", "Edit",
       [](AppContext& app) { app.explorer.run.run_again(); },
       [](const AppContext& app) { return app.explorer.run.behind() || !app.explorer.jobs.stopped().empty(); },
       nullptr});
  all.push_back({"edit.cancel", to_say("Stop what runs"), "", "Edit", [](AppContext& app) { app.explorer.jobs.stop(); },
                 [](const AppContext& app) { return app.explorer.jobs.busy(); }, nullptr});
}

void add_go(std::vector<Action>& all) {
  for (int i = 0; i < static_cast<int>(workspace_list.size()); ++i)
    all.push_back({"go.workspace." + std::to_string(i + 1), "Workspace: " + std::string(nth(workspace_list, i).title),
                   "Alt+" + std::to_string(i + 1), "Go", [i](AppContext& app) { app.ui.workspace = i; }, nullptr,
                   [i](const AppContext& app) { return app.ui.workspace == i; },
                   [i] { return say("Workspace: {}", said_view(nth(workspace_list, i).title)); }});
  using Generation = UiRequests::Generation;
  for (const auto& [id, title, key, what] :
       {std::tuple{"generate.step", to_say("Generate one token"), "Alt+Right", Generation::step},
        std::tuple{"generate.run", to_say("Generate: run or pause"), "Alt+Space", Generation::run}})
    all.push_back({id, title, key, "Go",
                   [what = what](AppContext& app) {
                     app.ui.workspace = workspace_index("Generate");
                     app.ui.generation = what;
                   },
                   can_edit, nullptr});
  const auto head = [&](const char* id, const char* title, const char* keys, int layers, int heads) {
    all.push_back(
        {id, title, keys, "Go", [layers, heads](AppContext& app) { move_head(app, layers, heads); }, has_run, nullptr});
  };
  all.push_back({"go.stack.next", to_say("Next stack of an encoder-decoder: encoder, decoder, cross-attention"),
                 "Alt+N", "Go",
                 [](AppContext& app) {
                   const Stack now = app.explorer.state().document.stack;
                   app.explorer.editor.look_at(now == Stack::encoder   ? Stack::decoder
                                               : now == Stack::decoder ? Stack::cross
                                                                       : Stack::encoder);
                 },
                 [](const AppContext& app) { return app.explorer.results().translates(); }, nullptr});
  all.push_back({"edit.write_target", to_say("Write the target of an encoder-decoder"), "Ctrl+Enter", "Edit",
                 [](AppContext& app) { app.explorer.run.write_target(); },
                 [](const AppContext& app) { return app.explorer.results().translates(); }, nullptr});
  head("go.head.next", to_say("Next head"), "Right", 0, 1);
  head("go.head.previous", to_say("Previous head"), "Left", 0, -1);
  head("go.layer.next", to_say("Next layer"), "Down", 1, 0);
  head("go.layer.previous", to_say("Previous layer"), "Up", -1, 0);
  all.push_back({"go.query.next", to_say("Pin the next token"), "]", "Go", [](AppContext& app) { move_query(app, 1); },
                 has_run, nullptr});
  all.push_back({"go.query.previous", to_say("Pin the previous token"), "[", "Go",
                 [](AppContext& app) { move_query(app, -1); }, has_run, nullptr});
  const auto has_query = [](const AppContext& app) {
    return has_run(app) && app.explorer.state().document.query.has_value();
  };
  all.push_back({"go.key.next", to_say("Pin the next key of the row"), "Shift+Right", "Go",
                 [](AppContext& app) { move_key(app, 1); }, has_query, nullptr});
  all.push_back({"go.key.previous", to_say("Pin the previous key of the row"), "Shift+Left", "Go",
                 [](AppContext& app) { move_key(app, -1); }, has_query, nullptr});
  const auto on_map = [](AppContext& app) {
    app.ui.workspace = workspace_index("Explore");
    app.explorer.editor.view().head_view = HeadView::map;
  };
  const auto strong = [&](const char* id, const char* title, const char* key, int step) {
    all.push_back({id, title, key, "Go",
                   [on_map, step](AppContext& app) {
                     on_map(app);
                     app.ui.strong_cell += step;
                   },
                   has_run, nullptr});
  };
  strong("go.cell.next", to_say("Next strongest cell of the map"), "N", 1);
  strong("go.cell.previous", to_say("Next stronger cell of the map"), "Shift+N", -1);
  all.push_back({"go.find", to_say("Find in the text, on the map"), "Ctrl+F", "Go",
                 [on_map](AppContext& app) {
                   on_map(app);
                   app.ui.find_on_map = true;
                 },
                 has_run, nullptr});
  all.push_back({"go.unpin", to_say("Unpin"), "Escape", "Go",
                 [](AppContext& app) { app.explorer.editor.pin(std::nullopt); }, has_query, nullptr});
}

void add_view(std::vector<Action>& all) {
  all.push_back(choice("view.map", to_say("Map"), "1", &View::head_view, HeadView::map));
  all.push_back(choice("view.arcs", to_say("Arcs"), "2", &View::head_view, HeadView::arcs));
  all.push_back(choice("view.row", to_say("Row"), "3", &View::head_view, HeadView::row));
  all.push_back(choice("view.steps", to_say("Steps: scores, mask, softmax"), "4", &View::head_view, HeadView::steps));
  all.push_back(choice("view.qk", to_say("q·k by dimension"), "5", &View::head_view, HeadView::qk));
  all.push_back(choice("view.heads", to_say("One token in all heads"), "6", &View::head_view, HeadView::heads));
  all.push_back(choice("view.picture", to_say("Over the picture"), "7", &View::head_view, HeadView::picture));
  all.push_back(choice("view.tool.look", to_say("Map tool: look, pin, pan"), "V", &View::map_tool, MapTool::style));
  all.push_back(
      choice("view.tool.weight", to_say("Map tool: set weights by dragging"), "E", &View::map_tool, MapTool::weight));
  all.push_back(choice("view.tool.mask", to_say("Map tool: paint the mask"), "M", &View::map_tool, MapTool::mask));
  all.push_back(choice("view.shown.after", to_say("Show the edited run"), "", &View::shown, Shown::after));
  all.push_back(choice("view.shown.before", to_say("Show the run before the edits"), "", &View::shown, Shown::before));
  all.push_back(
      choice("view.shown.difference", to_say("Show what the edits changed"), "", &View::shown, Shown::difference));
  all.push_back({"view.shown.next", to_say("After the edits, before, difference"), "D", "View",
                 [](AppContext& app) {
                   Shown& shown = app.explorer.editor.view().shown;
                   shown = static_cast<Shown>((static_cast<int>(shown) + 1) % 3);
                 },
                 [](const AppContext& app) { return app.explorer.results().effect != nullptr; }, nullptr});
  all.push_back(choice("view.scale.linear", to_say("Linear scale"), "", &View::scale, Scale::linear));
  all.push_back(choice("view.scale.log", to_say("Logarithmic scale"), "", &View::scale, Scale::log));
  all.push_back(choice("view.scale.row", to_say("Scale each row by its largest"), "", &View::scale, Scale::per_row));
  all.push_back({"view.scale.next", to_say("Next scale"), "S", "View",
                 [](AppContext& app) {
                   Scale& scale = app.explorer.editor.view().scale;
                   scale = scale == Scale::linear ? Scale::log : scale == Scale::log ? Scale::per_row : Scale::linear;
                 },
                 nullptr, nullptr});
  all.push_back(choice("view.first.show", to_say("Show the first token"), "", &View::first_token, FirstToken::show));
  all.push_back(choice("view.first.hide", to_say("Hide the first token"), "", &View::first_token, FirstToken::hide));
  all.push_back(choice("view.first.renormalize", to_say("Leave the first token out and renormalise"), "",
                       &View::first_token, FirstToken::renormalize));
  all.push_back({"view.first_steps", to_say("First steps"), "", "View",
                 [](AppContext& app) {
                   app.settings.first_steps = !app.settings.first_steps;
                   if (app.settings.first_steps) app.ui.workspace = workspace_index("Explore");
                 },
                 nullptr, [](const AppContext& app) { return app.settings.first_steps; }});
  all.push_back({"view.word_answers", to_say("Answers about a word"), "", "View",
                 [](AppContext& app) {
                   app.settings.word_answers = !app.settings.word_answers;
                   if (app.settings.word_answers) app.ui.workspace = workspace_index("Explore");
                 },
                 nullptr, [](const AppContext& app) { return app.settings.word_answers; }});
  all.push_back({"view.words", to_say("Words instead of tokens"), "W", "View",
                 [](AppContext& app) {
                   TextUnit& unit = app.explorer.editor.view().text_unit;
                   unit = unit == TextUnit::words ? TextUnit::tokens : TextUnit::words;
                 },
                 nullptr,
                 [](const AppContext& app) { return app.explorer.state().view.text_unit == TextUnit::words; }});
  all.push_back(toggle("view.follow_row", to_say("Follow the pinned row: it stays in sight"), "F", &View::follow_row));
  all.push_back({"view.zoom.reset", to_say("Whole map"), "0", "View", [](AppContext& app) { app.ui.reset_zoom = true; },
                 has_run, nullptr});
  all.push_back(coloring("map", to_say("maps"), nullptr));
  all.push_back(coloring("class", to_say("head classes"), has_facts));
  all.push_back(coloring("effect", to_say("effect of the edits"),
                         [](const AppContext& app) { return app.explorer.results().effect != nullptr; }));
  for (const Metric& metric : metrics())
    all.push_back(coloring(std::string(metric.id), std::string(metric.title), has_facts));
  all.push_back(theme_action("dark", to_say("Dark theme")));
  all.push_back(theme_action("light", to_say("Light theme")));
  all.push_back(theme_action("projector", to_say("Projector theme")));
  const auto zoom = [](double factor) {
    return [factor](AppContext& app) {
      double& scale = app.settings.ui_scale;
      scale = factor == 0
                  ? 1
                  : std::clamp(std::round(scale * factor * 20) / 20, Settings::least_scale, Settings::most_scale);
    };
  };
  all.push_back({"view.larger", to_say("Larger interface"), "Ctrl++", "View", zoom(1.1), nullptr, nullptr});
  all.push_back({"view.smaller", to_say("Smaller interface"), "Ctrl+-", "View", zoom(1 / 1.1), nullptr, nullptr});
  all.push_back({"view.usual", to_say("Interface in its usual size"), "Ctrl+0", "View", zoom(0), nullptr, nullptr});
  add_presenting(all);
  all.push_back(toggle("view.panel.left", to_say("Prompt and atlas"), "Ctrl+1", &View::left_open));
  all.push_back(toggle("view.panel.row", to_say("Row below the map"), "Ctrl+2", &View::row_open));
  all.push_back(toggle("view.panel.right", to_say("Head and predictions"), "Ctrl+3", &View::right_open));
}

void add_help(std::vector<Action>& all) {
  all.push_back({"help.palette", to_say("Search everything"), "Ctrl+K or Ctrl+Shift+P", "Help",
                 [](AppContext& app) { app.ui.palette = true; }, nullptr, nullptr});
  all.push_back({"help.keys", to_say("List of keys"), "? or F1", "Help", [](AppContext& app) { app.ui.keys = true; },
                 nullptr, nullptr});
  all.push_back({"help.lessons", to_say("Lessons…"), "F2", "Help", [](AppContext& app) { app.ui.lessons = true; },
                 nullptr, nullptr});
  all.push_back({"help.glossary", to_say("Glossary…"), "Shift+F1", "Help",
                 [](AppContext& app) { app.ui.glossary = ""; }, nullptr, nullptr});
  add_lessons(all);
  all.push_back({"help.about", to_say("About Headscope…"), "", "Help", [](AppContext& app) { app.ui.about = true; },
                 nullptr, nullptr});
}

bool is_key(std::string_view key) {
  if (key.size() == 1) {
    const char c = key[0];
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("?[]+-,").find(c) != std::string_view::npos;
  }
  for (const std::string_view name : {"Left", "Right", "Up", "Down", "Home", "End", "Escape", "Enter", "Space"})
    if (key == name) return true;
  int number = 0;
  const auto read = std::from_chars(key.data() + 1, key.data() + key.size(), number);
  return key.starts_with("F") && read.ptr == key.data() + key.size() && number >= 1 && number <= 12;
}
}  // namespace

const std::vector<Action>& actions() {
  static const std::vector<Action> list = [] {
    std::vector<Action> all;
    add_file(all);
    add_edit(all);
    add_go(all);
    add_view(all);
    add_help(all);
    return all;
  }();
  return list;
}

std::string Action::shown() const {
  return spoken ? spoken() : said(title);
}

const Action* find_action(std::string_view id) {
  const auto found = std::ranges::find(actions(), id, &Action::id);
  return found == actions().end() ? nullptr : &*found;
}

bool Shortcut::while_typing() const {
  return ctrl || alt || key == "Escape" || (key.size() > 1 && key[0] == 'F');
}

std::vector<Shortcut> parse_shortcuts(std::string_view text) {
  std::vector<Shortcut> all;
  while (!text.empty()) {
    const auto end = std::min(text.find(" or "), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 4));
    Shortcut shortcut;
    const auto take = [&](std::string_view prefix, bool& held) {
      if (one.size() > prefix.size() && one.starts_with(prefix)) {
        held = true;
        one.remove_prefix(prefix.size());
      }
    };
    take("Ctrl+", shortcut.ctrl);
    take("Alt+", shortcut.alt);
    take("Shift+", shortcut.shift);
    shortcut.key = std::string(one);
    if (is_key(one)) all.push_back(std::move(shortcut));
  }
  return all;
}

const Action* action_for(const Shortcut& pressed) {
  for (const Action& action : actions())
    for (const Shortcut& shortcut : parse_shortcuts(action.shortcut))
      if (shortcut == pressed) return &action;
  return nullptr;
}

}  // namespace headscope
