#include "viz/scene/sound_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
constexpr double densest_weight = 0.75;  // opacity of the largest weight over the spectrogram
constexpr Index most_columns = 2048;     // of the spectrogram's pixels
constexpr double silence_shown = 0.3;    // seconds behind the sound

double step_of_time(double seconds, double width, double need) {
  for (const double step : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0})
    if (width * step / seconds >= need) return step;
  return 60;
}

/// Grey by how loud it is, the lowest pitch at the bottom.
Pixels spectrogram_pixels(const SoundFrames& sound, Index frames, const Rect& rect, const Theme& theme) {
  const Index bin = (frames + most_columns - 1) / most_columns, width = (frames + bin - 1) / bin, height = sound.mels();
  float low = sound.log_mel.at(0, 0), high = low;
  for (Index frame = 0; frame < frames; ++frame)
    for (Index mel = 0; mel < height; ++mel) {
      low = std::min(low, sound.log_mel.at(frame, mel));
      high = std::max(high, sound.log_mel.at(frame, mel));
    }
  auto out = std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(width * height * 4));
  for (Index x = 0; x < width; ++x)
    for (Index mel = 0; mel < height; ++mel) {
      const Index begin = x * bin, end = std::min(begin + bin, frames);
      double sum = 0;
      for (Index frame = begin; frame < end; ++frame) sum += static_cast<double>(sound.log_mel.at(frame, mel));
      const double loud = high > low ? (sum / static_cast<double>(end - begin) - static_cast<double>(low)) /
                                           static_cast<double>(high - low)
                                     : 0;
      const Color color = mix(mix(theme.background, theme.line, 0.35), theme.text, 0.9 * loud * loud);
      std::uint8_t* to = out->data() + ((height - 1 - mel) * width + x) * 4;
      to[0] = color.r, to[1] = color.g, to[2] = color.b, to[3] = 255;
    }
  return {rect, static_cast<int>(width), static_cast<int>(height), std::move(out), true};
}

/// Pitches along the left side, as far as they leave one another room.
void add_pitches(Scene& scene, const SoundFrames& sound, const Rect& plot, const Style& style) {
  const Font font = style.theme.number();
  double free_below = plot.bottom() + font.size;
  for (const double hertz : {250.0, 500.0, 1000.0, 2000.0, 4000.0}) {
    const double y = plot.bottom() - plot.h * sound.place_of_pitch(hertz);
    if (free_below - y < 1.2 * font.size) continue;
    free_below = y;
    scene.add({Line{{{plot.x - 4, y}, {plot.x, y}}, style.theme.line, 1}, "", ""});
    scene.add({Text{{plot.x - 7, y + half_capital(font)},
                    hertz < 1000 ? fmt::format("{:g} Hz", hertz) : fmt::format("{:g} kHz", hertz / 1000),
                    font,
                    style.theme.muted,
                    Anchor::end,
                    0},
               fmt::format("pitch.{:g}", hertz), ""});
  }
}

/// Seconds of the sound's file that the picture shows.
struct Shown {
  double from = 0, seconds = 0;
  double place_of(double second, const Rect& plot) const {
    return plot.x + plot.w * std::clamp((second - from) / seconds, 0.0, 1.0);
  }
};

void add_times(Scene& scene, const Shown& shown, const Rect& plot, const Style& style) {
  const Font font = style.theme.number();
  const double end = shown.from + shown.seconds,
               step = step_of_time(
                   shown.seconds, plot.w,
                   style.measure.width(shown.from > 0 ? fmt::format("{:.1f} s", end) : "10.5 s", font) + 14);
  const double first = std::ceil(shown.from / step - 1e-9);
  for (int i = 0; (first + i) * step <= end; ++i) {
    const double second = (first + i) * step, x = shown.place_of(second, plot);
    const std::string text = fmt::format("{:.7g} s", second);
    scene.add({Line{{{x, plot.bottom()}, {x, plot.bottom() + 4}}, style.theme.line, 1}, "", ""});
    if (x + style.measure.width(text, font) / 2 > scene.width) break;
    scene.add({Text{{x, plot.bottom() + 7 + 2 * half_capital(font)}, text, font, style.theme.muted, Anchor::middle, 0},
               fmt::format("time.{}", i), ""});
  }
}

/// Where words stand above the spectrogram: each at its beginning, in the first row where it has room, if any.
constexpr int most_word_rows = 2;
struct WordPlace {
  double x = 0, end = 0;
  int row = -1;  ///< −1: no room for its letters
};
std::vector<WordPlace> places_of(const SpokenWords& spoken, const Shown& shown, const Rect& plot, int rows,
                                 const Style& style) {
  const Font font = style.theme.caption();
  std::vector<WordPlace> out;
  std::vector<double> taken(static_cast<std::size_t>(rows), -1e9);
  for (const WordTime& word : spoken.words) {
    WordPlace& place =
        out.emplace_back(WordPlace{shown.place_of(word.begin, plot), shown.place_of(word.end, plot), -1});
    const double width = style.measure.width(printable(word.text, 40), font);
    for (int row = 0; row < rows && place.row < 0; ++row)
      if (place.x >= nth(taken, row) && place.x + width <= plot.right() + 2) {
        place.row = row;
        nth(taken, row) = place.x + width + 6;
      }
  }
  return out;
}

/// Rows that letters take: two where one has no room for all.
int rows_of_words(const SpokenWords* spoken, const Shown& shown, const Rect& plot, int most, const Style& style) {
  if (!spoken || spoken->words.empty()) return 0;
  const auto places = places_of(*spoken, shown, plot, 1, style);
  return most > 1 && std::ranges::any_of(places, [](const WordPlace& place) { return place.row < 0; }) ? most : 1;
}

/// `plot`: the spectrogram and what stands below it; the lane of words lies above.
void add_words(Scene& scene, const SpokenWords& spoken, std::optional<Index> token, const Shown& seconds,
               const Rect& plot, int rows, double row_height, const Style& style) {
  const Font font = style.theme.caption();
  const double top = plot.y - rows * row_height;
  const auto places = places_of(spoken, seconds, plot, rows, style);
  SceneSeries times{said("words, from second to second"), {}, {}, {}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const WordTime& word = spoken.words[i];
    const WordPlace& place = places[i];
    times.x.push_back(word.begin), times.y.push_back(word.end), times.labels.push_back(word.text);
    const bool marked = token && *token >= word.first && *token <= word.last;
    const std::string shown = printable(word.text, 40), id = fmt::format("word.{}", i);
    const Rect lane{place.x, top, std::max(place.end - place.x, 3.0), plot.y - top};
    if (marked) scene.add({Box{lane, with_opacity(style.theme.query, 0.3), {0, 0, 0, 0}, 0, 2}, id + ".marked", ""});
    const double from = place.row < 0 ? plot.y - 4 : top + place.row * row_height + 3;
    scene.add({Line{{{place.x, from}, {place.x, plot.bottom()}},
                    marked ? style.theme.query : with_opacity(style.theme.text, 0.45),
                    marked ? 1.5 : 1.0},
               id + ".begin", ""});
    if (place.row >= 0)
      scene.add({Text{{place.x + 3, top + place.row * row_height + row_height / 2 + half_capital(font)},
                      shown,
                      font,
                      marked ? style.theme.query : style.theme.text,
                      Anchor::start,
                      0},
                 id + ".text", ""});
    scene.add({Box{lane, {0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0}, id,
               say("“{}” {:.2f} – {:.2f} s", shown, word.begin, word.end) + "\n" + spoken.by});
  }
  scene.series.push_back(std::move(times));
}

std::string words_of(const SoundFrames& sound, const SoundValues& values, Index shown) {
  const double read = std::min(sound.seconds, sound.read_seconds());
  std::string out = sound.from > 0 ? say("{:g} s to {:g} s of {:.1f} s", sound.from, sound.from + read, sound.whole())
                    : sound.seconds > sound.read_seconds()
                        ? say("the first {} of {:.1f} s", fmt::format("{:g} s", sound.read_seconds()), sound.seconds)
                        : say("{:.2f} s of sound", read);
  if (values.by_key.empty() || shown == sound.keys) return out;
  const double behind = std::accumulate(values.by_key.begin() + shown, values.by_key.end(), 0.0);
  return say("{}, {} on the silence behind it", out, short_number(behind, 3));
}
}  // namespace

Index shown_keys(const SoundFrames& sound) {
  const double end = std::min(sound.seconds + silence_shown, sound.read_seconds());
  return std::clamp<Index>(static_cast<Index>(std::ceil(end / sound.key_seconds())), 1, sound.keys);
}

Scene sound_values_scene(const Trace& trace, const SoundValues& values, const SoundMapOptions& options,
                         const Style& style) {
  const Theme& theme = style.theme;
  if (!trace.sound)
    throw Error("attention over a sound", "a trace whose keys are stretches of a sound", "other keys",
                "models of speech (Whisper) have them: their encoder's and cross-attention's");
  const SoundFrames& sound = *trace.sound;
  if (!values.by_key.empty() && static_cast<Index>(values.by_key.size()) != sound.keys)
    throw Error("attention over a sound", fmt::format("{} numbers, one of each key", sound.keys),
                std::to_string(values.by_key.size()));
  const Index keys = shown_keys(sound), frames = keys * sound.frames() / sound.keys;
  const bool bare = options.room.has_value(), curve = !values.by_key.empty();
  const Font font = theme.number();
  double highest = 0;
  for (Index key = 0; curve && key < keys; ++key) highest = std::max(highest, nth(values.by_key, key));
  const std::string most = short_number(highest, 2);
  const double edge = bare ? slim_margin : margin,
               left = std::max(style.measure.width("500 Hz", font), style.measure.width(most, font)) + 10,
               times = 2 * half_capital(font) + 14, words = 1.6 * theme.caption().size;

  Scene scene;
  scene.background = theme.background;
  scene.title = trace.model.name + " · " + values.title;
  const double width = std::floor(bare ? std::max(options.room->width - 2 * edge - left, 60.0)
                                       : std::max(options.plot, narrowest * theme.text_scale));
  scene.width = std::ceil(width + left + 2 * edge);
  double y = edge;
  if (!bare)
    y = std::round(
        add_header(scene, {values.title, options.badge, describe_run(trace), {}}, margin, margin, width + left, style) +
        14);
  const Shown seconds{sound.from, static_cast<double>(keys) * sound.key_seconds()};
  const double word_row = 1.45 * theme.caption().size;
  const int word_rows = rows_of_words(options.spoken.get(), seconds, {std::round(edge + left), 0, width, 0},
                                      bare && options.room->height < 160 ? 1 : most_word_rows, style);
  const double word_lane = std::round(word_rows * word_row);
  y += word_lane;
  const double rest = bare ? std::max(options.room->height - 2 * edge - times - words - word_lane, 40.0) : 0.42 * width;
  const double tall = std::floor(bare ? std::min(rest, 0.75 * (width + left)) : rest);
  const double lane = curve ? std::round(tall * 0.3) : 0;
  const Rect plot{std::round(edge + left), y, width, tall - lane};
  scene.add({spectrogram_pixels(sound, frames, plot, theme), "spectrogram", ""});
  add_pitches(scene, sound, plot, style);

  const Rect under{plot.x, plot.bottom() + (curve ? 4 : 0), plot.w, std::max(0.0, lane - 4)};
  const double range = highest > 0 ? highest : 1, cell = plot.w / static_cast<double>(keys);
  const Index bin = std::max<Index>(1, static_cast<Index>(std::ceil(1 / cell)));
  std::vector<Point> line;
  for (Index first = 0; first < keys; first += bin) {
    const Index end = std::min(first + bin, keys);
    Index key = first;
    for (Index i = first; curve && i < end; ++i)
      if (nth(values.by_key, i) > nth(values.by_key, key)) key = i;
    const double weight = curve ? nth(values.by_key, key) : 0, x = plot.x + cell * static_cast<double>(first),
                 w = cell * static_cast<double>(end - first);
    const Color color = with_opacity(theme.sequential->at(weight / range), densest_weight * weight / range);
    std::string tooltip = values.says && curve ? values.says(key, weight) : token_label(trace, key);
    if (curve) {
      std::string name = values.name;
      if (const std::size_t all = name.rfind(':'); all != std::string::npos) name.replace(all, 1, std::to_string(key));
      tooltip += fmt::format("\n{} = {}", name, short_number(weight, 4));
    }
    scene.add({Box{{x, plot.y, w, plot.h + lane}, {0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0}, fmt::format("stretch.{}", key),
               std::move(tooltip), TokenAt{key}});
    if (!curve) continue;
    scene.add({Box{{x, plot.y, w, plot.h}, color, {0, 0, 0, 0}, 0, 0}, "", ""});
    const double level = under.bottom() - under.h * weight / range;
    line.push_back({x, level});
    line.push_back({x + w, level});
  }
  if (curve) {
    scene.add({Line{{{under.x, under.bottom()}, {under.right(), under.bottom()}}, theme.line, 1}, "", ""});
    scene.add({Line{line, theme.key, 1.5}, "weights", ""});
    scene.add({Text{{plot.x - 7, under.y + 2 * half_capital(font)}, most, font, theme.muted, Anchor::end, 0},
               "weights.most", values.unit});
    scene.series.push_back({values.name, {}, {}, {}});
    for (Index key = 0; key < sound.keys; ++key) {
      scene.series.back().x.push_back(sound.from + static_cast<double>(key) * sound.key_seconds());
      scene.series.back().y.push_back(nth(values.by_key, key));
      scene.series.back().labels.push_back(token_label(trace, key));
    }
  }
  const Rect both{plot.x, plot.y, plot.w, plot.h + lane};
  if (values.query && *values.query < keys)
    scene.add({Box{{plot.x + cell * static_cast<double>(*values.query), both.y, std::max(cell, 2.0), both.h},
                   {0, 0, 0, 0},
                   theme.query,
                   2,
                   0},
               "query", ""});
  if (word_rows > 0)
    add_words(scene, *options.spoken, options.token, seconds, both, word_rows, word_lane / word_rows, style);
  add_times(scene, seconds, both, style);
  const std::string caption = words_of(sound, values, keys);
  scene.description =
      say("{}; log-mel spectrogram of {} frames, {} mels, a key for {} s{}{}", caption, sound.frames(), sound.mels(),
          short_number(sound.key_seconds(), 3), values.name.empty() ? "" : " · " + values.name,
          trace.source.empty() ? "" : " · " + trace.source);
  if (word_rows > 0) scene.description += "; " + options.spoken->by;
  y = add_caption(scene, bare ? elided(caption, theme.caption(), width + left, style.measure) : scene.description,
                  bare ? edge : plot.x, both.bottom() + times + 2, bare ? width + left : width, style);
  scene.height = std::ceil(y + edge);
  return scene;
}

Scene sound_map_scene(const Trace& trace, const SoundMapOptions& options, const Style& style) {
  const AttentionMap& map = map_of(trace, options.head);
  const Index offset = map.place().offset, row_index = options.query - offset;
  if (row_index < 0 || row_index >= map.n_query())
    throw Error("query of the sound", fmt::format("a position from {} to {}", offset, offset + map.n_query() - 1),
                std::to_string(options.query));
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  map.row(row_index, row);
  SoundValues values;
  for (const float weight : row) values.by_key.push_back(std::abs(static_cast<double>(weight)));
  values.title = say("{} · query {} “{}”", head_title(options.head), options.query, query_label(trace, options.query));
  values.name = fmt::format("{}[{}, :]", map_name(trace, map.id()), row_index);
  values.unit = describe_weights(map.place().kind, Scale::linear);
  if (!trace.between_texts()) values.query = options.query;
  values.says = [&](Index key, double weight) {
    return weight_says(trace, map.place().kind, options.query, key, weight);
  };
  return sound_values_scene(trace, values, options, style);
}

}  // namespace headscope
