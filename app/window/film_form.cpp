#include "app/window/film_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "app/window/pages.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {
constexpr const char* film_steps[] = {to_say("Equal steps"), to_say("Equal factors")};
constexpr const char* film_plays[] = {to_say("From the start again"), to_say("There and back")};
/// Frames in a row without work after which a page shows what its controls say.
constexpr int film_settled_frames = 6;

std::optional<double> film_number(const std::string& text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string film_words(double value) {
  return fmt::format("{:.6g}", value);
}

void film_field(const Ui& ui, const char* label, const char* id, std::string& text) {
  ImGui::AlignTextToFramePadding();
  ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.muted));
  text_line(ui, said(label));
  ImGui::PopStyleColor();
  ImGui::SameLine(0, ui.px(6));
  ImGui::SetNextItemWidth(ui.px(64));
  input_line(ui, id, "", text);
}
}  // namespace

void FilmForm::offer(std::vector<FilmChoice> choices) {
  choices_ = std::move(choices);
  values_.clear();
  if (!choices_.empty()) choose(0);
}

void FilmForm::choose(std::size_t which) {
  chosen_ = which;
  const FilmRange& range = choices_[which].range;
  from_ = film_words(range.from);
  to_ = film_words(range.to);
  pictures_ = std::to_string(range.pictures);
  factors_ = range.logarithmic ? 1 : 0;
  seconds_ = film_words(choices_[which].seconds);
}

void FilmForm::read(bool series) {
  const auto from = film_number(from_), to = film_number(to_), pictures = film_number(pictures_),
             seconds = film_number(seconds_);
  values_.clear();
  if (!from || !to)
    problem_ = said("From and to are numbers, such as 0.5.");
  else if (const FilmChoice& of = nth(choices_, chosen_);
           std::min(*from, *to) < of.low || std::max(*from, *to) > of.high)
    problem_ = say("It goes from {:g} to {:g}.", of.low, of.high);
  else if (factors_ == 1 && (*from <= 0 || *to <= 0))
    problem_ = said("Equal factors lead from one number above 0 to another.");
  else if (!pictures || *pictures < 2 || *pictures > most_film_pictures || *pictures != std::floor(*pictures))
    problem_ = say("A film has 2 to {} pictures.", most_film_pictures);
  else if (!series && (!seconds || *seconds < shortest_film_picture || *seconds > longest_film_picture))
    problem_ = say("A picture stands {} to {} seconds.", shortest_film_picture, longest_film_picture);
  else
    problem_.clear();
  if (!problem_.empty()) return;
  wait_ = seconds.value_or(wait_);
  values_ = film_values({*from, *to, static_cast<int>(*pictures), factors_ == 1, nth(choices_, chosen_).range.whole});
}

void FilmForm::draw(Ui& ui, bool series) {
  if (choices_.empty()) {
    text_line(
        ui,
        said("No number of this picture can change: open a page whose controls have some, or Explore with a model."),
        ui.theme.muted);
    return;
  }
  if (menu_button(ui, "what changes", nth(choices_, chosen_).name, said("changes"))) ImGui::OpenPopup("film choices");
  if (ImGui::BeginPopup("film choices")) {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      if (ImGui::MenuItem((std::string(ui.fonts.laid_out(choices_[i].name)) + "##" + choices_[i].place).c_str(),
                          nullptr, i == chosen_))
        choose(i);
      ui.name("film " + choices_[i].name, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    }
    ImGui::EndPopup();
  }
  film_field(ui, to_say("from"), "##film from", from_);
  ImGui::SameLine(0, ui.px(12));
  film_field(ui, to_say("to"), "##film to", to_);
  ImGui::SameLine(0, ui.px(12));
  film_field(ui, to_say("in"), "##film pictures", pictures_);
  ImGui::SameLine(0, ui.px(6));
  text_line(ui, said("pictures"), ui.theme.muted);
  ImGui::SameLine(0, ui.px(12));
  segmented(ui, "film steps", film_steps, factors_);
  ImGui::BeginDisabled(series);  // pictures by themselves play no way
  film_field(ui, to_say("seconds each"), "##film seconds", seconds_);
  ImGui::SameLine(0, ui.px(12));
  segmented(ui, "film plays", film_plays, back_);
  ImGui::EndDisabled();
  read(series);
  const int shown = pictures() + (back_ == 1 && !series ? std::max(0, pictures() - 2) : 0);
  text_line(ui,
            !problem_.empty() ? problem_
            : series          ? say("{} files", shown)
                              : say("{} pictures, {:.3g} s", shown, shown * wait_),
            problem_.empty() ? ui.theme.muted : ui.theme.key);
}

PictureRecipe FilmForm::film(double dpi, bool for_print) const {
  FilmChoice choice = nth(choices_, chosen_);
  choice.picture.dpi = dpi;
  choice.picture.for_print = for_print;
  return film_of(choice, values_, wait_, back_ == 1);
}

void PageFilm::start(AppContext& app, Asked asked) {
  own_ = app.explorer.files.session().window.controls;
  stops_ = app.explorer.jobs.stops();
  taken_.clear();
  asked_ = std::move(asked);
  put(app);
}

void PageFilm::put(AppContext& app) {
  quiet_ = 0;
  app.ui.controls = picture_of_film(asked_->film, taken_.size()).session->window.controls;
}

void PageFilm::stop(AppContext& app, const Worded& why) {
  app.ui.controls = own_;
  if (!why.empty()) app.explorer.jobs.tell(why, "film", Message::Level::error);
  taken_.clear();
  asked_.reset();
}

void PageFilm::draw(Ui& ui, AppContext& app) {
  if (!running()) return;
  *ui.animate = true;
  if (!ImGui::IsPopupOpen("filming")) ImGui::OpenPopup("filming");
  const std::size_t all = asked_->film.film->values.size();
  bool ended = app.explorer.jobs.stops() != stops_;
  if (begin_floating(ui, "filming", 320, 70)) {
    text_line(ui, say("Picture {} of {}", taken_.size() + 1, all), ui.theme.text);
    ended = button(ui, to_say("Stop filming")) || ImGui::IsKeyPressed(ImGuiKey_Escape) || ended;
    if (ended) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  }
  if (ended) return stop(app, {});
  quiet_ = app.explorer.jobs.settling() ? 0 : quiet_ + 1;  // a training may go on beside it
  if (quiet_ < film_settled_frames) return;
  if (!shows_picture_of(asked_->film, taken_.size(), app.explorer.files.session()))
    return stop(app, say_later("The page does not take {} as a number of this control.",
                               asked_->film.film->values[taken_.size()]));
  const auto found = std::ranges::find(ui.pictures.all, asked_->picture, &ShownPicture::id);
  if (found == ui.pictures.all.end())
    return stop(app,
                say_later("With {} the page does not draw this picture.", asked_->film.film->values[taken_.size()]));
  ShownPicture picture = *found;
  if (const auto& of = asked_->film.picture; of && picture.in_room)  // all of one size, which the recipe says
    picture.build = [in_room = picture.in_room, of = *of](const Style& style) {
      return in_room(of.width, of.height, style);
    };
  taken_.push_back(file_picture(app, picture));
  if (taken_.size() < all) return put(app);
  const PictureRecipe& film = asked_->film;
  ExportOptions options{asked_->file, film.dpi, film.for_print};
  options.note.model = model_note_on_screen(app);
  export_film(app.explorer.jobs, app.explorer.state().view.theme, {asked_->file, film.film->seconds, film.film->back},
              asked_->with_recipe ? to_json(film) : "", std::move(taken_), options);
  stop(app, {});
}

}  // namespace headscope
