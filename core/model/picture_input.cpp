#include "core/model/picture_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/config_reader.h"

namespace headscope {

namespace {
constexpr int most_pixels = 1 << 14;  // of a side

/// `size`: {"height", "width"}, {"shortest_edge"}, or one number, which the family understands as either.
void read_size(const ConfigReader& json, PicturePreparation& p) {
  const bool was_shortest = p.shortest_edge > 0;
  if (!json.flag("do_resize", true)) {
    p.shortest_edge = p.resize_height = p.resize_width = 0;
    return;
  }
  if (!json.has("size")) return;
  p.shortest_edge = p.resize_height = p.resize_width = 0;
  if (json.is_object("size")) {
    const ConfigReader size = *json.object("size");
    if (size.has("shortest_edge")) {
      p.shortest_edge = size.integer("shortest_edge", 1, most_pixels);
    } else {
      p.resize_height = size.integer("height", 1, most_pixels);
      p.resize_width = size.integer("width", 1, most_pixels);
    }
  } else if (const auto both = json.one_or_two("size", 1, most_pixels); was_shortest) {
    p.shortest_edge = both->first;
  } else {
    p.resize_height = both->first, p.resize_width = both->second;
  }
}

void read_crop(const ConfigReader& json, PicturePreparation& p) {
  if (!json.flag("do_center_crop", p.crop_height > 0)) {
    p.crop_height = p.crop_width = 0;
    return;
  }
  if (json.is_object("crop_size")) {
    const ConfigReader size = *json.object("crop_size");
    p.crop_height = size.integer("height", 1, most_pixels);
    p.crop_width = size.integer("width", 1, most_pixels);
  } else if (const auto both = json.one_or_two("crop_size", 1, most_pixels)) {
    p.crop_height = both->first, p.crop_width = both->second;
  }
}

/// Pillow's numbers of its filters.
constexpr std::pair<int, Resample> filters[] = {
    {0, Resample::nearest}, {2, Resample::bilinear}, {3, Resample::bicubic}};

Resample filter_of(const ConfigReader& json, Resample usual) {
  if (!json.has("resample")) return usual;
  const int number = json.integer("resample", 0, 5);
  const auto* const found = std::ranges::find(filters, number, &std::pair<int, Resample>::first);
  if (found == std::end(filters))
    throw json.error("resample", "0 (nearest), 2 (bilinear) or 3 (bicubic)", std::to_string(number));
  return found->second;
}

std::vector<double> by_channel(const ConfigReader& json, const std::string& key, std::vector<double> usual, double low,
                               std::size_t channels) {
  if (json.has(key)) usual = json.numbers(key, low, 1e6);
  if (usual.size() != channels && !usual.empty())
    throw json.error(key, fmt::format("a number for each of {} channels", channels), std::to_string(usual.size()));
  return usual;
}
}  // namespace

void read_preparation(const std::filesystem::path& folder, VisionConfig& v) {
  const std::filesystem::path file = folder / "preprocessor_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  const ConfigReader json = ConfigReader::open(file);
  PicturePreparation& p = v.preparation;
  read_size(json, p);
  p.resample = filter_of(json, p.resample);
  read_crop(json, p);
  p.rescale = json.flag("do_rescale", true) ? json.number("rescale_factor", 0, 1, p.rescale) : 1;
  const auto channels = static_cast<std::size_t>(v.channels);
  if (json.flag("do_normalize", true)) {
    p.mean = by_channel(json, "image_mean", p.mean, -1e6, channels);
    p.std = by_channel(json, "image_std", p.std, 1e-9, channels);
  } else {
    p.mean.clear(), p.std.clear();
  }
  const int height = p.crop_height > 0 ? p.crop_height : p.resize_height,
            width = p.crop_width > 0 ? p.crop_width : p.resize_width;
  if (v.stored_side > 0 && height > 0 && width > 0) {
    if (height < v.patch || width < v.patch)
      throw json.error(p.crop_height > 0 ? "crop_size" : "size", fmt::format("patch_size = {} or more", v.patch),
                       fmt::format("{} × {}", height, width));
    v.height = height, v.width = width;
  }
  if ((height > 0 && height != v.height) || (width > 0 && width != v.width))
    throw json.error(p.crop_height > 0 ? "crop_size" : "size",
                     fmt::format("{} × {}, image_size of the model", v.height, v.width),
                     fmt::format("{} × {}", height, width));
}

std::string write_preparation(const VisionConfig& v) {
  const PicturePreparation& p = v.preparation;
  const auto both = [](int height, int width) {
    ConfigWriter json;
    json.put("height", height);
    json.put("width", width);
    return json;
  };
  ConfigWriter json;
  json.put("do_resize", p.shortest_edge > 0 || p.resize_height > 0);
  if (p.shortest_edge > 0) {
    ConfigWriter size;
    size.put("shortest_edge", p.shortest_edge);
    json.put("size", size);
  } else if (p.resize_height > 0) {
    json.put("size", both(p.resize_height, p.resize_width));
  }
  json.put("resample", std::ranges::find(filters, p.resample, &std::pair<int, Resample>::second)->first);
  json.put("do_center_crop", p.crop_height > 0);
  if (p.crop_height > 0) json.put("crop_size", both(p.crop_height, p.crop_width));
  json.put("do_rescale", p.rescale != 1);
  json.put("rescale_factor", p.rescale);
  json.put("do_normalize", !p.std.empty());
  if (!p.std.empty()) json.put("image_mean", p.mean), json.put("image_std", p.std);
  return json.text();
}

Picture prepared(const Picture& picture, const VisionConfig& v) {
  const PicturePreparation& p = v.preparation;
  Picture out = picture;
  if (p.shortest_edge > 0) {
    const Index shorter = std::min(picture.height, picture.width);
    const auto side = [&](Index given) {
      return given == shorter ? p.shortest_edge : p.shortest_edge * given / shorter;
    };
    out = resized(out, side(picture.height), side(picture.width), p.resample);
  } else if (p.resize_height > 0) {
    out = resized(out, p.resize_height, p.resize_width, p.resample);
  }
  if (p.crop_height > 0 && out.height >= p.crop_height && out.width >= p.crop_width)
    out = cropped(out, (out.height - p.crop_height) / 2, (out.width - p.crop_width) / 2, p.crop_height, p.crop_width);
  if (out.height != v.height || out.width != v.width)
    throw Error("picture", fmt::format("{} × {} pixels, the size that this model reads", v.height, v.width),
                fmt::format("{} × {} once it was prepared as preprocessor_config.json says", out.height, out.width));
  return out;
}

Tensor patches_of(const Picture& picture, const VisionConfig& v) {
  const PicturePreparation& p = v.preparation;
  Tensor out = Tensor::uninitialized({v.patches(), v.patch_numbers()});
  for (Index patch = 0; patch < v.patches(); ++patch)
    for (Index channel = 0, i = 0; channel < v.channels; ++channel)
      for (Index y = 0; y < v.patch; ++y)
        for (Index x = 0; x < v.patch; ++x, ++i) {
          const Index row = patch / v.columns() * v.patch + y, column = patch % v.columns() * v.patch + x;
          double value = p.rescale * nth(picture.rgb, (row * picture.width + column) * v.channels + channel);
          if (!p.std.empty()) value = (value - nth(p.mean, channel)) / nth(p.std, channel);
          out.ref(patch, i) = static_cast<float>(value);
        }
  return out;
}

namespace {
/// Places of a stored line, and their weights.
using Taps = std::vector<std::pair<Index, double>>;

/// Keys' cubic of slope a at distance 1.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Of place `to` of `count` on a line of `side`: four neighbours.
Taps near_taps(Index to, Index count, Index side) {
  const double place = (static_cast<double>(to) + 0.5) * static_cast<double>(side) / static_cast<double>(count) - 0.5,
               whole = std::floor(place);
  Taps out;
  for (Index i = -1; i < 3; ++i)
    out.emplace_back(std::clamp<Index>(static_cast<Index>(whole) + i, 0, side - 1),
                     cubic(place - whole - static_cast<double>(i), -0.75));
  return out;
}

/// Of all that the place covers.
Taps smooth_taps(Index to, Index count, Index side) {
  const double scale = static_cast<double>(side) / static_cast<double>(count), wide = std::max(scale, 1.0),
               center = (static_cast<double>(to) + 0.5) * scale;
  const Index first = std::max<Index>(static_cast<Index>(center - 2 * wide + 0.5), 0),
              end = std::min<Index>(static_cast<Index>(center + 2 * wide + 0.5), side);
  Taps out;
  double sum = 0;
  for (Index at = first; at < end; ++at)
    sum += out.emplace_back(at, cubic((static_cast<double>(at) - center + 0.5) / wide, -0.5)).second;
  for (auto& [at, weight] : out) weight /= sum;
  return out;
}
}  // namespace

Tensor interpolated_positions(const Tensor& stored, const VisionConfig& v) {
  const Index side = v.stored_side, leading = v.leading - v.registers, d = stored.dim(1);
  const auto taps = v.smooth_positions ? smooth_taps : near_taps;
  Tensor out = Tensor::uninitialized({leading + v.patches(), d});
  for (Index row = 0; row < out.dim(0); ++row) {
    if (row < leading) {
      for (Index i = 0; i < d; ++i) out.ref(row, i) = stored.at(row, i);
      continue;
    }
    const Index patch = row - leading;
    const Taps y = taps(patch / v.columns(), v.rows(), side), x = taps(patch % v.columns(), v.columns(), side);
    for (Index i = 0; i < d; ++i) {
      double sum = 0;
      for (const auto& [r, by_row] : y)
        for (const auto& [c, by_column] : x)
          sum += by_row * by_column * static_cast<double>(stored.at(leading + r * side + c, i));
      out.ref(row, i) = static_cast<float>(sum);
    }
  }
  return out;
}

RotaryTable picture_rotation(const VisionConfig& v, double base, int d_head) {
  const Index half = d_head / 2, each = half / 2;
  RotaryTable out{Tensor::full({v.tokens(), half}, 1.0f), Tensor::zeros({v.tokens(), half})};
  for (Index patch = 0; patch < v.patches(); ++patch) {
    const auto centre = [](Index at, int count) { return 2 * (static_cast<double>(at) + 0.5) / count - 1; };
    const double y = centre(patch / v.columns(), v.rows()), x = centre(patch % v.columns(), v.columns());
    for (Index i = 0; i < half; ++i) {
      const double theta = 2 * std::numbers::pi * std::pow(base, -4.0 * static_cast<double>(i % each) / d_head),
                   angle = (i < each ? y : x) * theta;
      out.cosine.ref(v.leading + patch, i) = static_cast<float>(std::cos(angle));
      out.sine.ref(v.leading + patch, i) = static_cast<float>(std::sin(angle));
    }
  }
  return out;
}

PatchPicture patch_picture(const Picture& given, const VisionConfig& v) {
  const Index height = Index{v.rows()} * v.patch, width = Index{v.columns()} * v.patch;
  const bool whole = given.height == height && given.width == width;
  const Picture picture = whole ? given : cropped(given, 0, 0, height, width);
  return {v.rows(), v.columns(), v.leading, picture.height, picture.width, picture.rgb};
}

Tensor embedded_patches(const VisionConfig& vision, const Tensor& patches, Index n, const Linear& patch,
                        const Linear& bias, std::span<const Linear> leading, Backend& backend) {
  Tensor numbers = backend.empty({n, vision.patch_numbers()});  // 0 where no patch is
  std::ranges::fill(numbers.mutable_values(), 0.0f);
  std::vector<Tensor> is;  // (position, 1): 1 where the first, the second … leading token stands, and last a patch
  for (int i = 0; i <= vision.leading; ++i) is.push_back(Tensor::zeros({n, 1}));
  for (Index row = 0, next = 0; row < n; ++row) {
    const Index at = row % vision.tokens();
    nth(is, std::min<Index>(at, vision.leading)).ref(row, 0) = 1;
    if (at < vision.leading) continue;
    for (Index j = 0; j < vision.patch_numbers(); ++j) numbers.ref(row, j) = patches.at(next, j);
    ++next;
  }
  Tensor sum = backend.linear(numbers, patch);
  for (std::size_t i = 0; i < leading.size(); ++i) sum = backend.add(sum, backend.linear(is[i], leading[i]));
  return bias.defined() ? backend.add(sum, backend.linear(is.back(), bias)) : sum;
}

void check_patches(const ModelConfig& c, std::size_t given, const Tensor& patches) {
  const VisionConfig& v = *c.vision;
  const auto tokens = static_cast<std::size_t>(v.tokens());
  if (given % tokens != 0)
    throw Error(c.name, fmt::format("the {} tokens of a picture of {} × {} patches", tokens, v.rows(), v.columns()),
                std::to_string(given));
  const Shape shape{static_cast<Index>(given / tokens) * v.patches(), v.patch_numbers()};
  if (!patches.defined() || patches.shape() != shape)
    throw Error(c.name, fmt::format("a picture: {} patches of {} numbers", shape[0], shape[1]),
                patches.defined() ? "numbers of shape " + patches.shape().str() : "none", "this model reads no text");
}

}  // namespace headscope
