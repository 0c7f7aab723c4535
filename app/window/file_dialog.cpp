#include "app/window/file_dialog.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "app/assets.h"
#include "app/render/picture.h"
#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "app/window/pages.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/version.h"
#include "core/base/words.h"
#include "core/io/model_location.h"
#include "core/io/sound.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr const char* formats[] = {"PNG", "SVG", "PDF", "CSV"};
constexpr const char* endings[] = {".png", ".svg", ".pdf", ".csv"};
constexpr const char* resolutions[] = {"96 dpi", "192 dpi", "300 dpi", "600 dpi"};
constexpr double dots_per_inch[] = {96, 192, 300, 600};
constexpr const char* grounds[] = {to_say("Light for print"), to_say("As on screen")};
constexpr const char* recipes[] = {to_say("With its recipe"), to_say("Without")};
constexpr const char* this_head = to_say("This head");
constexpr const char* all_heads = to_say("All heads");
constexpr int csv = 3;
constexpr const char* film_formats[] = {"GIF", "APNG", to_say("PNG series")};
constexpr const char* film_endings[] = {".gif", ".apng", ".png"};

const char* title_of(UiRequests::Dialog kind) {
  switch (kind) {
    case UiRequests::Dialog::open_model:
      return said("Open a model");
    case UiRequests::Dialog::open_session:
      return said("Open a session");
    case UiRequests::Dialog::save_session:
      return said("Save the session");
    case UiRequests::Dialog::export_view:
      return said("Export the view");
    case UiRequests::Dialog::export_film:
      return said("Export a film");
    case UiRequests::Dialog::none:
      break;
  }
  return "";
}

}  // namespace

std::filesystem::path place_of_model(const std::filesystem::path& path) {
  std::error_code unreadable;
  if (const AdaptedPath parts = adapted_path(path); !parts.adapter.empty())
    return with_adapter(place_of_model(parts.model), parts.adapter);
  if (is_adapter(path)) return path;  // which leads to the model that it names
  if (std::filesystem::exists(path, unreadable)) {
    const ModelLocation model = locate_model(path);
    const bool folder = model.weights != path || locate_model(model.folder).weights == path;
    return folder ? model.folder : path;
  }
  if (path.filename() == path)
    if (const auto bundled = find_bundled_model(path.string())) return *bundled;
  if (const auto cached = find_in_cache(path.string())) return locate_model(*cached).folder;
  throw Error(path.string(), "a model's folder or file, or the name of a bundled model", "nothing of that name");
}

/// Sessions are the .json files that are no part of a model.
bool is_session(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".json") && name != "config.json" && !name.ends_with(".index.json");
}

void open_path(const std::filesystem::path& path, AppContext& app) {
  try {
    if (is_session(path)) {
      app.explorer.files.open_soon(path);
      return;
    }
    if (leads_to_captures(path)) return app.explorer.captures.open(path);
    if (may_be_sound(path)) {
      if (!app.explorer.results().hears())
        throw Error(path.filename().string(), "a model of speech (Whisper), which would hear it", "another model",
                    "open such a model first");
      app.explorer.run.hear(path);
      return;
    }
    if (may_be_picture(path) || kind_of_file(path) || is_film(path))
      return app.explorer.files.open_picture_soon(path, [&explorer = app.explorer, path] {
        if (reads_pictures(explorer.results()) && may_be_picture(path)) return explorer.editor.set_image(path);
        const Error useless(
            path.filename().string(),
            "a picture that Headscope drew, or a model of pictures (ViT, DeiT, CLIP) that would read it",
            "a file that does not say how it was made, and a model of texts", "open such a model first");
        explorer.jobs.show({Message::Level::error, useless.what(), ""});
      });
    if (const auto ending = path.extension(); ending == ".txt" || ending == ".md")
      throw Error(path.filename().string(), "a model, captured attention, a session, a picture or a sound", "a text",
                  "paste it into the prompt; the Corpus workspace reads files of texts");
    // An adapter goes onto the model that is open.
    const std::filesystem::path open = app.explorer.results().model_folder;
    const std::filesystem::path place =
        is_adapter(path) && !open.empty() ? with_adapter(open, path) : place_of_model(path);
    app.explorer.run.open_model(place);
    app.settings.remember_model(place);
  } catch (const std::exception& error) {
    app.explorer.jobs.show({Message::Level::error, error.what(), ""});
  }
}

void FileDialog::open(Kind kind, AppContext& app) {
  kind_ = kind;
  std::vector<std::string> shown;  // what files the list holds
  if (kind == Kind::export_view)
    shown.assign(std::begin(endings), std::end(endings));
  else if (kind == Kind::export_film)
    shown.assign(std::begin(film_endings), std::end(film_endings));
  else if (kind == Kind::open_model) {
    shown = {".gguf", ".bin", ".pt", ".pth", ".npz", ".npy", ".png", ".jpg", ".jpeg"};
    shown.insert(shown.end(), std::begin(sound_endings), std::end(sound_endings));
  } else if (kind == Kind::open_session)
    shown = {".json", ".png", ".svg", ".pdf", ".csv", ".gif", ".apng"};
  else
    shown = {".json"};
  browser_ = FileBrowser(shown);
  named_to_replace_.clear();
  const bool own = saving();  // one's own files are elsewhere than models and examples
  const auto& usual = own ? app.settings.documents_folder : app.settings.models_folder;
  const auto& last = own ? app.settings.save_folder : app.settings.last_folder;
  browse(app, [usual, last, own](FileBrowser& browser) {
    if (!usual.empty() && browser.go(usual)) return;
    if (!last.empty() && browser.go(last)) return;
    if (const std::filesystem::path documents = documents_folder(); !own || documents.empty() || !browser.go(documents))
      for (const FileBrowser::Place& place : FileBrowser::places())
        if (browser.go(place.path)) break;
  });
  chosen_.clear();
  error_.clear();
  name_ = named_ = "session.json";
  film_of_.clear();
  if (exporting()) choose(app.ui.workspace == workspace_index("Explore") ? this_head : "", app);
  ImGui::OpenPopup("files");
}

void FileDialog::browse(AppContext& app, std::function<void(FileBrowser&)> step) {
  reading_ = true;
  app.explorer.jobs.on_files("folder",
                             [this, browser = browser_, step = std::move(step)](Worker::Job&) -> Worker::Deliver {
                               FileBrowser moved = browser;
                               step(moved);
                               return [this, moved, places = FileBrowser::places()] {
                                 browser_ = moved;
                                 places_ = places;
                                 reading_ = false;
                               };
                             });
}

void FileDialog::choose(const std::string& picture, const AppContext& app) {
  picture_ = picture;
  const HeadId head = app.explorer.state().document.selected;
  std::string name =
      picture == this_head ? "layer-" + std::to_string(head.layer) + "-head-" + std::to_string(head.head) : picture;
  for (char& c : name)
    if (std::string_view(" /\\:*?\"<>|").find(c) != std::string_view::npos) c = '-';
  if (name.empty()) name = "picture";
  if (name_ == named_ || picture == this_head || name_ == "session.json") name_ = name + ending();
  named_ = name_;
}

const char* FileDialog::ending() const {
  return kind_ == Kind::export_film ? film_endings[film_format_] : endings[format_];
}

const ShownPicture* FileDialog::picture(const Ui& ui, const AppContext& app) const {
  const auto& all = ui.pictures.all;
  if (app.ui.workspace == workspace_index("Explore") && (picture_ == this_head || picture_ == all_heads))
    return nullptr;
  const auto found = std::ranges::find(all, picture_, &ShownPicture::id);
  return found == all.end() ? nullptr : &*found;
}

/// What would be written now.
std::filesystem::path FileDialog::target() const {
  std::filesystem::path file =
      browser_.folder() / std::filesystem::path(reinterpret_cast<const char8_t*>(name_.c_str()));
  if (kind_ == Kind::export_view && !kind_of_file(file)) file += ending();
  if (kind_ == Kind::export_film && !is_film(file) && !is_film_series(file)) file += ending();
  if (kind_ == Kind::save_session && file.extension() != ".json") file += ".json";
  return file;
}

std::string title_on_screen(const AppContext& app, const ShownPicture& picture) {
  std::string page;  // the first of the workspace, until another was chosen
  for (const UiRequests::Page& each : app.ui.pages) {
    if (each.workspace != app.ui.workspace) continue;
    const auto shown = app.settings.pages.find(each.of);
    if (page.empty() || (shown != app.settings.pages.end() && shown->second == each.id)) page = each.title;
  }
  if (page.empty()) page = nth(workspace_list, app.ui.workspace).title;
  return picture_title(said(page), picture.title, picture.id);
}

std::function<Scene(const Style&)> file_picture(const AppContext& app, const ShownPicture& picture) {
  return for_file(picture.build, title_on_screen(app, picture));
}

PictureRecipe recipe_of(const Ui& ui, const AppContext& app, const ShownPicture* picture, PictureRecipe recipe) {
  if (!picture) return recipe;
  recipe.page = title_on_screen(app, *picture);
  if (picture->in_room) {
    recipe.picture = RecipePicture{picture->id, picture->room_width, picture->room_height};
    return recipe;
  }
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  constexpr double exact = 1e6;  // the scale of a frame is a float
  recipe.shown = RecipeShown{.id = picture->id,
                             .width = static_cast<int>(size.x),
                             .height = static_cast<int>(size.y),
                             .scale = std::round(static_cast<double>(ui.scale) * exact) / exact,
                             .lesson = app.explorer.lessons.lesson() != nullptr,
                             .present = app.ui.presenting,
                             .started = ui.pictures.started,
                             .passing = picture->passing.empty() ? ui.pictures.passing : picture->passing};
  if (recipe.shown->passing.empty() && !app.explorer.jobs.stopped().empty())
    recipe.shown->passing = "what was there when work was stopped";
  return recipe;
}

PictureRecipe recipe_on_screen(const AppContext& app, PictureRecipe recipe) {
  const Results& results = app.explorer.results();
  recipe.program = program_version;
  recipe.device = app.explorer.jobs.backend()->name();
  if (results.run) recipe.weights = results.run->trace->model.dtype;
  recipe.language = language_of_words();
  recipe.session = app.explorer.files.session();
  Session& session = *recipe.session;
  if (results.run) {  // the picture is of the run, which may be a text behind the document
    Document ran = document_of(results.run->request);
    ran.selected = session.document.selected, ran.stack = session.document.stack;
    ran.query = session.document.query, ran.key = session.document.key;
    session.document = ran;
  }
  // Only what is on screen: nobody means to send the texts of other workspaces along.
  const std::string shown = session.window.workspace;
  const auto elsewhere = [&](const auto& each) { return each.first != shown; };
  std::erase_if(session.window.pages, elsewhere);
  std::erase_if(session.window.controls, elsewhere);
  if (shown != "Generate") session.transcript.reset();
  // While nobody has chosen a head, Mechanisms shows a softer one: opened from a file, that one is chosen.
  if (const auto softer = app.explorer.run.softer_head(); softer && shown == "Mechanisms")
    session.document.selected = *softer;
  return recipe;
}

PictureNote note_on_screen(const AppContext& app, PictureRecipe recipe) {
  PictureNote note{model_note_on_screen(app), ""};
  if (app.settings.picture_recipes && !app.explorer.results().capture)
    note.recipe = to_json(recipe_on_screen(app, std::move(recipe)));
  return note;
}

std::string model_note_on_screen(const AppContext& app) {
  return shows_open_model(nth(workspace_list, app.ui.workspace).id) ? app.explorer.certificates.note() : "";
}

void FileDialog::confirm(Ui& ui, AppContext& app) {
  error_.clear();
  try {
    const std::filesystem::path file = target();
    const bool series = kind_ == Kind::export_film && is_film_series(file);
    const std::filesystem::path first = series ? numbered(file, 0, static_cast<std::size_t>(film_.pictures())) : file;
    std::error_code failed;
    if (saving() && std::filesystem::exists(first, failed) && named_to_replace_ != file) {
      named_to_replace_ = file;  // asked below
      return;
    }
    if (kind_ == Kind::export_view) {
      const ShownPicture* shown = picture(ui, app);
      const bool one = kind_of_file(file) == FileKind::csv;
      ExportOptions options{file, dots_per_inch[dpi_], ground_ == 0, !shown && picture_ == all_heads && !one};
      options.note = note_on_screen(
          app, recipe_of(ui, app, shown,
                         {.dpi = options.dpi, .all_heads = options.all_heads, .for_print = options.for_print}));
      if (shown)
        export_scene(app.explorer.jobs, app.explorer.state().view.theme, one ? shown->build : file_picture(app, *shown),
                     options);
      else
        export_view(app.explorer.jobs, app.explorer.state(), app.explorer.results(), options);
    } else if (kind_ == Kind::export_film) {
      const PictureRecipe film = film_.film(dots_per_inch[film_dpi_], ground_ == 0);
      const bool with_recipe = app.settings.picture_recipes;
      if (film.page.empty())
        export_film(app.explorer.jobs, app.explorer.results().model, film, file, with_recipe);
      else
        page_film_.start(app, {film, picture_, file, with_recipe});
    } else if (kind_ == Kind::save_session) {
      app.explorer.files.save_soon(file);
    } else {
      const std::filesystem::path path = chosen_.empty() ? browser_.folder() : chosen_;
      if (kind_ == Kind::open_session)
        app.explorer.files.open_soon(path);
      else
        open_path(path, app);
    }
    (saving() ? app.settings.save_folder : app.settings.last_folder) = browser_.folder();
    ImGui::CloseCurrentPopup();
  } catch (const std::exception& error) {
    error_ = error.what();
  }
}

void FileDialog::picture_menu(Ui& ui, AppContext& app) {
  const bool explore = app.ui.workspace == workspace_index("Explore") && app.explorer.results().run;
  const auto& all = ui.pictures.all;
  if (!explore && !picture(ui, app) && !all.empty())  // the largest, until another is chosen
    choose(std::ranges::max_element(all, {}, &ShownPicture::area)->id, app);
  const ShownPicture* chosen = picture(ui, app);
  has_picture_ = explore || chosen;
  if (menu_button(ui, "picture to export",
                  chosen         ? chosen->title
                  : has_picture_ ? said(picture_)  // one of the two of Explore
                                 : said("Nothing is drawn here yet"),
                  ""))
    ImGui::OpenPopup("pictures");
  if (!ImGui::BeginPopup("pictures")) return;
  if (explore)
    for (const char* each : {this_head, all_heads})
      if (menu_item(ui, each, nullptr, picture_ == each)) choose(each, app);
  for (const ShownPicture& each : all) {
    if (ImGui::MenuItem((std::string(ui.fonts.laid_out(each.title)) + "##" + each.id).c_str(),
                        each.title == each.id ? nullptr : each.id.c_str(), picture_ == each.id))
      choose(each.id, app);
    ui.name("export " + each.id, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  }
  ImGui::EndPopup();
}

/// The name takes the ending of another format.
void FileDialog::rename() {
  std::filesystem::path name(reinterpret_cast<const char8_t*>(name_.c_str()));
  if (kind_of_file(name) || is_film(name)) name.replace_extension();
  name += ending();
  if (name_ == named_) named_ = name.string();
  name_ = name.string();
}

void FileDialog::looks(Ui& ui, AppContext& app, bool has_looks, bool has_pixels) {
  ImGui::SameLine(0, ui.px(12));
  ImGui::BeginDisabled(!has_looks);
  segmented(ui, "ground", grounds, ground_);
  ImGui::EndDisabled();
  ImGui::BeginDisabled(!has_pixels);
  segmented(ui, "resolution", resolutions, kind_ == Kind::export_film ? film_dpi_ : dpi_);
  ImGui::EndDisabled();
  ImGui::SameLine(0, ui.px(12));
  int plain = app.settings.picture_recipes ? 0 : 1;
  if (segmented(ui, "recipe", recipes, plain)) {
    app.settings.picture_recipes = plain == 0;
    app.ui.settings_changed = true;
  }
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("With the model's folder, the text, the edits and the controls of the page in its file"),
                 said("a picture can be drawn again, or dropped on the window to go on from it")});
}

void FileDialog::export_options(Ui& ui, AppContext& app) {
  picture_menu(ui, app);
  if (segmented(ui, "format", formats, format_)) rename();
  looks(ui, app, format_ != csv, format_ == 0);  // numbers have no looks
}

void FileDialog::film_options(Ui& ui, AppContext& app) {
  picture_menu(ui, app);
  const ShownPicture* shown = picture(ui, app);
  const Results& results = app.explorer.results();
  if (has_picture_ && film_of_ != picture_) {
    film_of_ = picture_;
    const bool runs = results.run && !results.capture;
    PictureRecipe recipe =
        recipe_on_screen(app, recipe_of(ui, app, shown, {.all_heads = !shown && picture_ == all_heads}));
    if (!runs && !shown) recipe.session.reset();  // attention from elsewhere is as it is
    film_.offer(film_choices(recipe, runs ? results.run->trace.get() : nullptr,
                             shown ? app.ui.numbers() : std::vector<ControlsRecord::Number>()));
  }
  film_.draw(ui, film_format_ == 2);
  if (segmented(ui, "film format", film_formats, film_format_)) rename();
  looks(ui, app, true, true);
}

void FileDialog::draw(Ui& ui, AppContext& app) {
  const Kind asked = app.ui.dialog;
  if (asked != Kind::none) {
    app.ui.dialog = Kind::none;
    open(asked, app);
  }
  const bool open = begin_floating(ui, "files", 760, 70);
  const bool ask = (open && exporting()) || page_film_.running() || app.ui.collect_pictures;
  if (ask && !ui.pictures.asked) *ui.animate = true;  // the next frame tells what is on screen
  ui.pictures.asked = ask;
  if (!open) return page_film_.draw(ui, app);
  const bool saving = this->saving();
  {
    const UseFont use(ui, ui.heading());
    text_line(ui, title_of(kind_));
  }
  if (button(ui, to_say("Up"))) browse(app, [](FileBrowser& browser) { browser.up(); });
  for (const FileBrowser::Place& place : places_) {
    ImGui::SameLine();
    if (button(ui, place.name.c_str())) browse(app, [to = place.path](FileBrowser& browser) { browser.go(to); });
  }
  const std::string where = browser_.folder().string();
  text_line(ui, where, ui.theme.muted);

  bool done = false, entered = false;
  const auto entered_key = [] {
    return ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter);
  };
  ImGui::BeginChild(
      "entries", {0, std::min(ui.px(420), ImGui::GetIO().DisplaySize.y * (kind_ == Kind::export_film ? 0.3f : 0.5f))},
      ImGuiChildFlags_Borders | ImGuiChildFlags_NavFlattened);
  const FileBrowser::Entry* enter = nullptr;
  for (const FileBrowser::Entry* entry : browser_.entries()) {
    const char* kind = entry->kind == FileBrowser::Kind::model    ? said("model")
                       : entry->kind == FileBrowser::Kind::folder ? said("folder")
                                                                  : "";
    if (!result_row(ui, entry->name, kind, entry->path == chosen_)) continue;
    // A model is chosen where models are opened; anywhere else it is a folder like others.
    if (entry->kind == FileBrowser::Kind::folder ||
        (entry->kind == FileBrowser::Kind::model && kind_ != Kind::open_model)) {
      enter = entry;
    } else {
      done = done || (!saving && (entry->path == chosen_ || ImGui::IsMouseDoubleClicked(0)));
      chosen_ = entry->path;
      if (saving) name_ = entry->name;
    }
  }
  if (!reading_ && browser_.entries().empty())
    text_line(ui, kind_ == Kind::open_model ? said("No folders here.") : said("No folders and no such files here."),
              ui.theme.muted);
  if (browser_.truncated()) text_line(ui, said("… and more than can be listed"), ui.theme.muted);
  ImGui::EndChild();
  if (enter) {
    browse(app, [to = enter->path](FileBrowser& browser) { browser.go(to); });
    chosen_.clear();
  }
  if (kind_ == Kind::export_view) export_options(ui, app);
  if (kind_ == Kind::export_film) film_options(ui, app);
  if (saving) {
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(ui.px(360));
    input_line(ui, "##file name", exporting() ? said("name") : "name.json", name_);
    entered = ImGui::IsItemDeactivated() && entered_key();
    ImGui::SameLine();
  } else {
    entered = entered_key() && !walking_controls();
  }
  for (const std::string& text : {browser_.error(), error_})
    if (!text.empty()) text_line(ui, text, ui.theme.key);
  const bool asks = saving && !named_to_replace_.empty() && named_to_replace_ == target();
  if (asks) {
    ImGui::NewLine();
    paragraph(ui, say("{} is there already. Replace it?", named_to_replace_.filename().string()), ui.theme.text);
  }
  const bool ready =
      reading_ ? false
      : saving ? !name_.empty() && (!exporting() || has_picture_) && (kind_ != Kind::export_film || film_.ready())
               : !chosen_.empty() || (kind_ == Kind::open_model && browser_.is_model());
  ImGui::BeginDisabled(!ready);
  const char* verb = exporting() ? to_say("Export") : saving ? to_say("Save") : to_say("Open");
  done = button(ui, asks ? to_say("Replace") : verb) || done || (entered && !asks);  // to replace takes more than Enter
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (button(ui, to_say("Cancel")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  if (done && ready) confirm(ui, app);
  ImGui::EndPopup();
}

}  // namespace headscope
