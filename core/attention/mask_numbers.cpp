// The numbers that stand in a mask's words (masks.h).

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "core/attention/mask_entries.h"
#include "core/base/words.h"

namespace headscope {

using namespace mask_entries;

namespace {

/// A number of a mask's words: where it stands, and in which form.
struct Place {
  const Entry* entry = nullptr;
  std::size_t begin = 0, size = 0;  // in the text
  std::size_t which = 0;            // of the form's numbers
  std::size_t part = 0, parts = 0;  // of a list; 0 parts = a number by itself
  double value = 0;
};

/// Of words that a mask was parsed from, so that they are numbers; whatever the locale's comma is.
double number_of(std::string_view word) {
  double value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

/// `text`: as describe() writes it, whose words are those of the forms.
std::vector<Place> places_of(std::string_view text) {
  std::vector<Place> places;
  const Entry* entry = nullptr;
  std::vector<std::string_view> form;
  std::size_t word = 0, which = 0;
  constexpr std::string_view breaks = " \t&|!()";
  for (std::size_t at = 0; at < text.size();) {
    if (breaks.find(text[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(breaks, at), text.size());
    const std::string_view here = text.substr(at, end - at);
    ++word;
    if (!entry || word >= form.size()) {  // the form before is complete
      const auto found = std::ranges::find_if(entries(), [&](const Entry& each) { return each.form.id == here; });
      entry = found == entries().end() || !found->make ? nullptr : &*found;
      form = entry ? words_of(entry->form.form) : std::vector<std::string_view>{};
      word = which = 0;
    } else if (is_number(form[word])) {
      places.push_back({entry, at, here.size(), which++, 0, 0, number_of(here)});
    } else if (is_list(form[word])) {
      const auto parts = static_cast<std::size_t>(1 + std::ranges::count(here, ','));
      std::size_t begin = at;
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t stop = std::min(text.find(',', begin), end);
        places.push_back({entry, begin, stop - begin, 0, part, parts, number_of(text.substr(begin, stop - begin))});
        begin = stop + 1;
      }
    }
    at = end;
  }
  return places;
}

/// What the forms call their numbers (MaskForm::numbers), lengths first.
constexpr std::string_view number_names[] = {
    to_say("width"),       to_say("keys"),    to_say("stride"), to_say("window"),        to_say("prefix"),
    to_say("padding"),     to_say("block"),   to_say("step"),   to_say("global tokens"), to_say("share"),
    to_say("seed"),        to_say("sink"),    to_say("token"),  to_say("global blocks"), to_say("random blocks"),
    to_say("document at"), to_say("buckets"), to_say("rounds")};
constexpr auto lengths = std::span(number_names).first<7>();

std::string name_of(const Place& place) {
  std::vector<std::string> names;
  std::string_view rest = place.entry->form.numbers;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(", "), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return place.parts > 0 ? fmt::format("{} {}", names.back(), place.part + 1) : names[place.which];
}

}  // namespace

std::vector<MaskNumber> mask_numbers(std::string_view spec, Index tokens) {
  const std::string text = parse_mask(spec)->describe();
  const std::vector<Place> places = places_of(text);
  std::vector<MaskNumber> numbers;
  const auto most = static_cast<double>(std::max<Index>(tokens, 2));
  for (std::size_t p = 0; p < places.size(); ++p) {
    const Place& place = places[p];
    MaskNumber number{std::string(place.entry->form.id), name_of(place), place.value};
    if (place.parts > 0) {  // each between its neighbours, so that none is lost
      number.low = place.part > 0 ? places[p - 1].value + 1 : 0;
      number.high = place.part + 1 < place.parts ? places[p + 1].value - 1 : most - 1;
    } else {
      number.low = place.entry->lowest[place.which];
      number.high = most;
      if (number.name == "share") number.high = 1, number.decimals = 2, number.step = 0.01;
      if (number.name == "seed") number.high = 100;
      if (number.name == "rounds") number.high = 16;
      if (number.name == "buckets") number.high = std::max(4.0, 2 * std::floor(most / 4)), number.step = 2;
      // Blocks are counted, not tokens.
      if (number.name.ends_with("blocks") || (number.mask == "bigbird" && number.name == "window"))
        number.high = std::max(1.0, std::ceil(most / places[p - place.which].value));
      number.logarithmic = number.low > 0 && number.name != "seed";
    }
    number.low = std::min(number.low, number.value), number.high = std::max(number.high, number.value);
    numbers.push_back(std::move(number));
  }
  return numbers;
}

std::string with_mask_number(std::string_view spec, std::size_t which, double value) {
  const std::string text = parse_mask(spec)->describe();
  const Place place = places_of(text)[which];
  const MaskNumber as = mask_numbers(spec, 2)[which];
  const double rounded =
      std::max(std::round(value / as.step) * as.step, place.parts > 0 ? 0 : place.entry->lowest[place.which]);
  const std::string written =
      as.decimals > 0 ? fmt::format("{}", std::round(rounded * 100) / 100) : fmt::format("{:.0f}", rounded);
  return parse_mask(text.substr(0, place.begin) + written + text.substr(place.begin + place.size))->describe();
}

std::vector<std::string> masks_for(Index tokens) {
  constexpr double thumbnail = 8;  // tokens that the examples are made for
  const double factor = std::max(1.0, static_cast<double>(tokens) / (2 * thumbnail));
  std::vector<std::string> specs;
  for (const Entry& entry : entries()) {
    if (!entry.make) continue;
    std::string spec(entry.form.example);
    const auto numbers = mask_numbers(spec, tokens);
    for (std::size_t p = numbers.size(); p-- > 0;) {  // from the right, where lists rise
      const MaskNumber& number = numbers[p];
      const bool length = std::ranges::find(lengths, number.name) != lengths.end() &&
                          !(number.mask == "bigbird" && number.name == "window");
      if (length || places_of(spec)[p].parts > 0) spec = with_mask_number(spec, p, std::round(number.value * factor));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace headscope
