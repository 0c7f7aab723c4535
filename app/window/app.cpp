#include "app/window/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "app/actions/shortcut_words.h"
#include "app/assets.h"
#include "app/state/window_words.h"
#include "app/widgets/controls.h"
#include "app/window/floating.h"
#include "app/window/shortcuts.h"
#include "app/window/spotlight.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/nth.h"
#include "core/base/standard_streams.h"
#include "core/base/words.h"
#include "core/io/model_location.h"
#include "core/trace/model_heads.h"
#include "viz/export/png.h"

namespace headscope {

namespace {

/// Frames in a row without news after which layout, glyphs and hover have settled.
constexpr int quiet_frames = 4;
/// A screenshot waits no longer than this for the model.
constexpr std::chrono::seconds patience{120};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string parameters_text(std::int64_t count) {
  const auto value = static_cast<double>(count);
  return count >= 1'000'000 ? fmt::format("{:.0f}M", value / 1e6) : fmt::format("{:.0f}k", value / 1e3);
}

}  // namespace

App::App(const AppOptions& options) : options_(options) {
  std::string settings_message;
  if (!options_.settings.empty()) {
    LoadedSettings loaded = load_settings(options_.settings);
    settings_ = known_settings_ = std::move(loaded.settings);
    settings_message = std::move(loaded.message);
  }
  std::string words_problem;
  if (!options_.again)  // a picture is said as its recipe tells
    words_problem = speak(options_.language.empty() ? settings_.language : options_.language);
  settings_.first_steps = settings_.first_steps && options_.first_steps;
  settings_.word_answers = settings_.word_answers && options_.first_steps;
  if (!options_.rule.empty()) settings_.detector_rule = options_.rule;
  settings_.device = options_.device.value_or(settings_.device);
  settings_.threads = options_.threads.value_or(settings_.threads);
  WindowOptions wanted;
  wanted.width = options_.width > 0 ? options_.width : settings_.window_width;
  wanted.height = options_.height > 0 ? options_.height : settings_.window_height;
  wanted.theme = options_.theme.empty() ? settings_.theme : options_.theme;
  wanted.scale = options_.scale;
  wanted.maximized = settings_.maximized && options_.width <= 0;
  wanted.position = settings_.window_position;
  wanted.offscreen = options_.offscreen || options_.screenshot.has_value();
  wanted.unseen = options_.unseen;
  wanted.name_items = options_.name_items;
  window_ = std::make_unique<Window>(wanted);
  requests_.measured_seconds = options_.measured_seconds;

  Explorer::Options engine;
  engine.threads = settings_.threads;
  engine.device = settings_.device;
  engine.devices = options_.devices;
  engine.byte_budget = static_cast<std::size_t>(settings_.memory_mb) << 20;
  engine.wake = [window = window_.get()] { window->wake(); };
  explorer_ = std::make_unique<Explorer>(engine);
  explorer_->certificates.remember_in(options_.certificates);
  explorer_->certificates.check_small_models(options_.check_models);
  explorer_->editor.view().theme = wanted.theme;
  explorer_->editor.view().text_unit = settings_.words ? TextUnit::words : TextUnit::tokens;
  if (options_.screenshot) explorer_->captures.every = 1e9;  // one look: the picture is of what is there
  if (options_.watch) {
    explorer_->captures.open(*options_.watch);
  } else if (options_.session) {
    explorer_->files.open(*options_.session);
    explorer_->editor.history().clear();  // there is nothing to go back to
    if (!options_.theme.empty()) explorer_->editor.view().theme = options_.theme;
  } else if (options_.model) {
    AppContext app{*explorer_, settings_, requests_};
    open_path(*options_.model, app);
    if (options_.source) explorer_->editor.set_source(*options_.source);
    if (options_.image) explorer_->editor.set_image(*options_.image);
    if (options_.sound) explorer_->editor.set_sound(*options_.sound);
    if (options_.text)
      explorer_->editor.set_text(*options_.text);
    else if (!options_.ids.empty())
      explorer_->editor.set_ids(options_.ids);
    else if (!explorer_->jobs.message() && !explorer_->captures.watching())
      explorer_->files.suggest_text(place_of_model(*options_.model));
  } else {
    const std::string first = options_.example + ".first";  // a shorter text for who is here for the first time
    explorer_->files.open_example(
        options_.example, settings_.first_steps && find_asset("examples/" + first + ".txt") ? first : options_.example);
    if (options_.text) explorer_->editor.set_text(*options_.text);
    if (!options_.ids.empty()) explorer_->editor.set_ids(options_.ids);
  }
  explorer_->files.count_as_saved();  // what the program was started with
  explorer_->lessons.set_language(options_.language.empty() ? settings_.language : options_.language);
  explorer_->lessons.list();  // the palette's, too
  explorer_->scenes.use(settings_.scene_list);
  if (!options_.lesson.empty()) explorer_->lessons.open(options_.lesson);
  requests_.presenting = options_.present;
  explorer_->files.set_window_source([this] { return session_window(); });
  requests_.numbers = [this] { return control_numbers(); };
  unsaved_ = std::make_unique<UnsavedWork>(explorer_->jobs, explorer_->editor, explorer_->files, options_.recovery);
  if (options_.stop.stop_possible()) wake_on_stop_.emplace(options_.stop, [window = window_.get()] { window->wake(); });
  if (!settings_message.empty() && !words_problem.empty()) settings_message += "\n";
  if (const std::string message = settings_message + words_problem; !message.empty())
    explorer_->jobs.show({Message::Level::info, message, settings_message.empty() ? "words" : ""});
}

App::~App() {
  wake_on_stop_.reset();
  explorer_.reset();  // before the window that its worker wakes, and before the folder that it writes to
  workspaces_.clear();
}

void App::add(Workspace& workspace) {
  const std::string id = workspace.id(), title = workspace.title();
  const bool wanted = workspace_option(id) == options_.workspace;
  const int index = static_cast<int>(workspaces_.size());
  if (wanted) requests_.workspace = index;
  std::vector<std::string> ids;
  for (const CatalogueGroup& group : workspace.pages())
    for (const CatalogueEntry& page : group.entries) {
      ids.push_back(page.id);
      requests_.pages.push_back(
          {index, id, page.id, page.title, group.title, title + " · " + group.title + " · " + page.words});
    }
  if (wanted && !options_.page.empty()) {
    if (std::ranges::find(ids, options_.page) == ids.end())
      throw OptionError("--page", fmt::format("one of {}", fmt::join(ids, ", ")), "'" + options_.page + "'");
    settings_.pages[id] = options_.page;
  }
  if (KeptWork* kept = workspace.kept()) unsaved_->add(*kept, index);
  workspaces_.push_back(&workspace);
}

ShellContent App::content() {
  ShellContent content;
  const Results& results = explorer_->results();
  if (results.model.model || results.capture) {
    const Trace* trace = results.run ? results.run->trace.get() : nullptr;
    content.model.name = model_label(results.model_folder);
    if (trace) {
      const ModelInfo& model = trace->model;
      content.model.details =
          results.capture ? capture_words(*trace).text()
          : model.dims.layers > 1 && model.dims.most_heads() > 1
              ? say("{} layers × {} heads · {}", model.dims.layers, heads_text(model.dims),
                    parameters_text(model.parameters))
              : fmt::format("{} × {} · {}",
                            model.dims.layers == 1 ? said("1 layer") : say("{} layers", model.dims.layers),
                            model.dims.most_heads() == 1 ? said("1 head") : say("{} heads", heads_text(model.dims)),
                            parameters_text(model.parameters));
    }
  }
  content.badge = model_badge_of(explorer_->certificates);
  for (const Workspace* workspace : workspaces_) content.workspaces.push_back({workspace->title(), true, ""});
  content.workspace = requests_.workspace;
  content.stop = [this] { explorer_->jobs.stop(); };
  const JobRunner::Status status = explorer_->jobs.status();
  if (explorer_->jobs.busy()) {
    content.status = {{status.doing.empty() ? said("waiting") : said(status.doing), false}};
    if (status.seconds > 0.3 && status.progress > 0)
      content.status.push_back({fmt::format("  {:2.0f} %", 100 * static_cast<double>(status.progress)), true});
    content.stoppable = status.seconds > 0.3;
    content.progress = static_cast<double>(status.progress);
  } else if (const std::string stopped = explorer_->jobs.stopped(); !stopped.empty() || explorer_->run.behind()) {
    content.status = {{stopped.empty() ? said("not run to its end") : say("stopped: {}", stopped), false}};
    content.again = [this] { explorer_->run.run_again(); };
  } else if (results.run) {
    const Trace& trace = *results.run->trace;
    if (results.capture)
      content.status = {{said("captured elsewhere"), false}};
    else if (const auto fresh = static_cast<Index>(trace.queries().size()) - trace.known_rows; trace.known_rows > 0)
      content.status = {
          {(fresh == 1 ? said("trace of 1 new token") : say("trace of {} new tokens", fresh)) + " ", false},
          {fmt::format("{:.0f} ms", trace.milliseconds), true}};
    else
      content.status = {{fmt::format("{} ", said("trace")), false},
                        {fmt::format("{:.0f} ms", trace.milliseconds), true}};
    if (results.facts) {
      content.status.push_back({fmt::format(" · {} ", said("metrics")), false});
      content.status.push_back({fmt::format("{:.0f} ms", results.facts->milliseconds), true});
    }
    if (!results.capture) content.status.push_back({" · " + explorer_->jobs.backend()->described(), false});
  }
  if (const std::string getting = get_model_.status(); !getting.empty()) {
    if (!content.status.empty()) content.status.push_back({" · ", false});
    content.status.push_back({getting, false});
  }
  return content;
}

void App::draw(Ui& ui) {
  AppContext app{*explorer_, settings_, requests_};
  explorer_->editor.history().hold(ImGui::IsAnyMouseDown());
  if (requests_.presenting && ImGui::IsKeyPressed(ImGuiKey_Escape, false) && !ImGui::GetIO().WantTextInput &&
      !ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel))
    requests_.presenting = false;
  else
    run_shortcuts(app);
  ShellContent content = this->content();
  requests_.workspace = std::clamp(requests_.workspace, 0, std::max(static_cast<int>(workspaces_.size()) - 1, 0));
  if (!workspaces_.empty()) {
    Workspace* shown = nth(workspaces_, requests_.workspace);
    content.left = [&app, shown](Ui& inner) { shown->left({inner, app}); };
    content.middle = [&app, shown](Ui& inner) { shown->middle({inner, app}); };
    content.right = [&app, shown](Ui& inner) { shown->right({inner, app}); };
  }
  if (explorer_->lessons.lesson())
    content.lesson = [this, &app](Ui& inner) { lesson_.draw(inner, app); };
  else if (options_.beside_lesson)
    content.lesson = [](Ui&) {};
  content.presenting = requests_.presenting;
  const LessonController& lessons = explorer_->lessons;
  content.few_words = lessons.lesson() && lessons.step().prose.empty() && !lessons.step().question;
  // Something is to be done there.
  content.keeps_right =
      lessons.lesson() && lessons.step().question && lessons.step().question->kind == LessonQuestion::Kind::until;
  content.model_menu = [this, &app](Ui& inner) { picker_.draw(inner, app); };
  content.open_model_menu = std::exchange(requests_.models, false);
  content.export_menu = [&app](Ui& inner) {
    for (const Action& action : actions())
      if ((action.id == "file.export" || action.id == "file.film" || action.id.starts_with("file.copy") ||
           action.id == "file.save_session") &&
          menu_item(inner, action.title.c_str(), shown_shortcut(action.shortcut).c_str(), false,
                    action.is_enabled(app)))
        action.run(app);
  };
  View& view = explorer_->editor.view();
  ShellLayout layout{view.left_width, view.right_width, view.left_open, view.right_open,
                     lesson_.behind(explorer_->lessons)};
  const ShellEvents events = draw_shell(ui, content, layout);
  view.left_width = layout.left;
  view.right_width = layout.right;
  lesson_.put_behind(explorer_->lessons, layout.left_over_lesson);
  if (events.palette) requests_.palette = true;
  if (events.badge) requests_.about_model = true;
  if (events.workspace >= 0) requests_.workspace = events.workspace;
  palette_.draw(ui, app);
  draw_keys(ui, app);
  files_.draw(ui, app);
  get_model_.draw(ui, app);
  settings_page_.draw(ui, app);
  about_.draw(ui, app);
  about_model_.draw(ui, app);
  steps_.draw(ui, app);
  scenes_.draw(ui, app);
  lessons_.draw(ui, app);
  glossary_.draw(ui, app);
  copying_.draw(ui, app);
  if (!requests_.clipboard.empty()) ImGui::SetClipboardText(std::exchange(requests_.clipboard, "").c_str());
  unsaved_->draw(ui, app);
  draw_message(ui, app);
  if (!requests_.presenting) requests_.spotlight = false;
  if (requests_.spotlight && ui.framed.asked) draw_spotlight(ui);
  if (std::exchange(ui.framed.asked, requests_.spotlight) != requests_.spotlight) *ui.animate = true;
  if (explorer_->editor.show_hovered()) *ui.animate = true;
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Left))
    explorer_->editor.history().close_step();  // a drag is one step of undo
}

SessionWindow App::session_window() const {
  SessionWindow window;
  for (std::size_t i = 0; i < workspaces_.size(); ++i) {
    Workspace* workspace = workspaces_[i];
    const std::string id = workspace->id();
    if (static_cast<int>(i) == requests_.workspace) window.workspace = id;
    if (const auto page = settings_.pages.find(id); page != settings_.pages.end()) window.pages.insert(*page);
    ControlsRecord record;
    workspace->controls(record);
    if (!record.empty()) window.controls[id] = record.text();
  }
  return window;
}

std::vector<ControlsRecord::Number> App::control_numbers() const {
  Workspace* const workspace = nth(workspaces_, requests_.workspace);
  ControlsRecord record;
  workspace->controls(record);
  std::vector<ControlsRecord::Number> numbers = record.numbers();
  // What a workspace keeps under a page's name is of that page alone.
  const auto shown = settings_.pages.find(workspace->id());
  for (const CatalogueGroup& group : workspace->pages())
    for (const CatalogueEntry& entry : group.entries)
      if (shown == settings_.pages.end() || entry.id != shown->second)
        std::erase_if(numbers, [&](const auto& each) { return each.place.starts_with("/" + entry.id + "/"); });
  return numbers;
}

/// A workspace or a page that this version does not know stays as it is, and so do those that the command line names.
void App::show(const SessionWindow& window) {
  const bool named = options_.session && !std::exchange(options_.workspace, "").empty();
  for (std::size_t i = 0; i < workspaces_.size(); ++i) {
    Workspace& workspace = *workspaces_[i];
    const std::string id = workspace.id();
    if (id == window.workspace && !named) requests_.workspace = static_cast<int>(i);
    if (const auto page = window.pages.find(id); page != window.pages.end() && !named)
      for (const CatalogueGroup& group : workspace.pages())
        for (const CatalogueEntry& entry : group.entries)
          if (entry.id == page->second) settings_.pages[id] = entry.id;
    if (const auto controls = window.controls.find(id); controls != window.controls.end()) {
      ControlsRecord record(controls->second);
      workspace.controls(record);
    }
  }
}

void App::frame() {
  const double time = options_.clock ? options_.clock() : now();
  if (const auto language = std::exchange(requests_.language, std::nullopt)) {
    explorer_->lessons.set_language(*language);
    explorer_->jobs.dismiss("words");
    if (const std::string problem = speak(*language); !problem.empty())
      explorer_->jobs.show({Message::Level::info, problem, "words"});
  }
  changed_ = explorer_->frame(time);
  if (const auto opened = explorer_->files.take_opened_window()) show(*opened);
  if (const auto controls = std::exchange(requests_.controls, std::nullopt)) show({{}, {}, *controls});
  for (Workspace* workspace : workspaces_) workspace->each_frame();
  AppContext app{*explorer_, settings_, requests_};
  if (const auto dropped = window_->take_dropped(); !dropped.empty()) open_path(dropped.front(), app);
  window_->set_fullscreen(requests_.presenting);
  const std::string theme = requests_.presenting ? "projector" : explorer_->state().view.theme;
  if (window_->theme().id != theme) window_->set_theme(theme);
  // Presented, a screen of any size shows what one of 1280 × 720 does: that is read from the last row.
  const double enlarged =
      requests_.presenting ? std::clamp(std::min(window_->width() / 1280.0, window_->height() / 720.0), 1.0, 3.0) : 1;
  if (const double zoom = settings_.ui_scale * enlarged; options_.scale <= 0 && window_->zoom() != zoom)
    window_->set_zoom(zoom);
  explorer_->jobs.set_device(settings_.device, settings_.threads);
  explorer_->run.set_byte_budget(static_cast<std::size_t>(settings_.memory_mb) << 20);
  window_->frame([this](Ui& ui) { draw(ui); });
  presenter_.frame(app, *window_, time);
  if (std::exchange(requests_.settings_changed, false)) write_settings();
  unsaved_->frame(time);
  if (std::exchange(requests_.quit, false) || unsaved_->answered()) window_->close();
  if (window_->closing() && !unsaved_->may_close()) window_->stay_open();
}

bool App::settled() {
  return !explorer_->jobs.busy() && !explorer_->certificates.busy() && !changed_;
}

void App::remember() {
  if (options_.settings.empty()) return;
  window_->set_fullscreen(false);  // its size is no wish of anybody's
  settings_.theme = explorer_->state().view.theme;
  settings_.words = explorer_->state().view.text_unit == TextUnit::words;
  settings_.maximized = window_->maximized();
  if (!settings_.maximized) {  // else: what it goes back to is what was remembered
    settings_.window_width = window_->width();
    settings_.window_height = window_->height();
    settings_.window_position = window_->position();
  }
  save_settings(settings_, known_settings_, options_.settings);
}

void App::write_settings() {
  if (options_.settings.empty()) return;
  try {
    save_settings(settings_, known_settings_, options_.settings);
    known_settings_ = settings_;
  } catch (const Error& error) {
    explorer_->jobs.show({Message::Level::error, error.what(), ""});
  }
}

void App::screenshot() {
  expect_writable(*options_.screenshot);
  const auto begin = std::chrono::steady_clock::now();
  for (int quiet = 0; quiet < quiet_frames;) {
    if (options_.stop.stop_requested()) throw Cancelled();
    frame();
    quiet = settled() ? quiet + 1 : 0;
    // Nobody looks while work goes on, and software takes seconds to draw a large picture: no frames meanwhile.
    do turn();
    while ((explorer_->jobs.busy() || explorer_->certificates.busy()) && !options_.stop.stop_requested() &&
           std::chrono::steady_clock::now() - begin < patience);
    if (std::chrono::steady_clock::now() - begin > patience)
      throw Error("--screenshot", "the model to be done within " + std::to_string(patience.count()) + " s",
                  explorer_->jobs.status().doing, "a shorter text or a smaller model");
  }
  frame();  // turn() may have taken something in since the last one
  if (const auto& message = explorer_->jobs.message();
      !explorer_->results().model.model && !explorer_->results().capture)
    throw std::runtime_error(message ? message->text : "no model is open");
  const double scale = options_.scale > 0 ? options_.scale : 1;
  write_file_atomically(
      *options_.screenshot,
      encode_png(window_->capture(), 96 * scale,
                 {.title = "Headscope", .description = model_note_on_screen({*explorer_, settings_, requests_})}));
}

void App::run() {
  if (options_.screenshot) {
    screenshot();
    return;
  }
  do show_until_closed();
  while (!ended());
  remember();
}

void App::show_until_closed() {
  try {
    while (!window_->closing() && !options_.stop.stop_requested()) {
      window_->wait();
      const double begin = now();
      frame();
      // While a job runs its progress is shown; ten times a second is enough, and where software draws a large window
      // the job gets most of the time.
      if (explorer_->jobs.busy())
        window_->tick(std::max(0.1, 3 * (now() - begin)));
      else if (get_model_.under_way())
        window_->tick(0.2);
      else if (explorer_->certificates.state() == CertificateController::State::checking)
        window_->tick(0.5);
      else if (explorer_->captures.watching())
        window_->tick(explorer_->captures.every);
      else if (unsaved_->pending())
        window_->tick(1);
      if (presenter_.window() && !explorer_->jobs.busy()) window_->tick(PresenterView::tick);
    }
  } catch (...) {
    leave();
    throw;
  }
}

bool App::ended() {
  if (options_.stop.stop_requested()) {
    leave();
    return true;
  }
  try {
    unsaved_->finish([this] { turn(); });
    return true;
  } catch (const std::exception& failed) {  // a full disk: whoever sits in front of it can save elsewhere
    window_->stay_open();
    window_->wake();
    explorer_->jobs.tell(
        say_later("Not kept for the next start, so the window stays open: {}", std::string(failed.what())), "",
        Message::Level::error);
    return false;
  }
}

/// A turn of the loop without a picture: results in, the next job out.
void App::turn() {
  explorer_->frame(options_.clock ? options_.clock() : now());
  for (Workspace* workspace : workspaces_) workspace->each_frame();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Everything is left for the next start; what fails here is not what ended the program.
void App::leave() {
  try {
    unsaved_->leave_all([this] { turn(); });
  } catch (const std::exception& failed) {
    write_error(fmt::format("headscope: unsaved work could not be kept: {}\n", failed.what()));
  }
}

}  // namespace headscope
