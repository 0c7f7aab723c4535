#include "core/io/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/base/nth.h"
#include "core/base/numbered_random.h"

namespace headscope {

namespace {

struct Shape2d {
  int kind = 0;
  double x = 0, y = 0, radius = 0;
  double colour[3] = {};
  bool touches(const Shape2d& other) const { return std::hypot(x - other.x, y - other.y) < radius + other.radius + 1; }

  bool covers(double px, double py) const {
    const double dx = std::abs(px - x), dy = std::abs(py - y), down = py - y, r = radius;
    switch (kind) {
      case 0:
        return std::hypot(dx, dy) <= r;
      case 1:
        return std::max(dx, dy) <= 0.82 * r;
      case 2:  // its tip at the top
        return down >= -r && down <= 0.8 * r && dx <= (down + r) / (1.8 * r) * r;
      case 3:
        return (dx <= 0.33 * r && dy <= r) || (dy <= 0.33 * r && dx <= r);
      case 4:
        return std::hypot(dx, dy) <= r && std::hypot(dx, dy) >= 0.55 * r;
      default:
        return dx + dy <= r;
    }
  }
};

double between(Random& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

Shape2d drawn(Random& random, int side, bool warm) {
  Shape2d out;
  out.kind = static_cast<int>(random.below(shape_names().size()));
  const double unit = side / 48.0;
  out.radius = unit * (warm ? between(random, 7, 10) : between(random, 5, 10));
  out.x = between(random, out.radius, side - out.radius);
  out.y = between(random, out.radius, side - out.radius);
  const double bright = between(random, 190, 255), dim = between(random, 20, 90), rest = between(random, 20, 160);
  const bool green = random.below(2) == 0;
  const double cold[] = {dim, green ? bright : rest, green ? rest : bright},
               hot[] = {bright, dim, between(random, 20, 70)};
  std::copy_n(warm ? hot : cold, 3, out.colour);
  return out;
}

}  // namespace

const std::vector<std::string>& shape_names() {
  static const std::vector<std::string> names{"circle", "square", "triangle", "cross", "ring", "diamond"};
  return names;
}

DrawnPicture draw_shapes(Random& random, int side, int patch, int distractors) {
  constexpr int tries = 60;
  std::vector<Shape2d> shapes{drawn(random, side, true)};
  for (int i = 0; i < tries && static_cast<int>(shapes.size()) <= distractors; ++i) {
    const Shape2d next = drawn(random, side, false);
    if (std::ranges::none_of(shapes, [&](const Shape2d& other) { return other.touches(next); })) shapes.push_back(next);
  }
  DrawnPicture out{{side, side, {}}, shapes.front().kind, {}};
  const double ground = between(random, 40, 120);
  std::set<Index> covered;
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < side; ++column) {
      const auto over =
          std::ranges::find_if(shapes, [&](const Shape2d& shape) { return shape.covers(column + 0.5, row + 0.5); });
      for (int channel = 0; channel < 3; ++channel) {
        const double level = (over == shapes.end() ? ground : over->colour[channel]) + 10 * random.normal();
        out.picture.rgb.push_back(static_cast<std::uint8_t>(std::clamp(std::lround(level), 0L, 255L)));
      }
      if (over == shapes.begin()) covered.insert(Index{row / patch} * (side / patch) + column / patch);
    }
  out.patches.assign(covered.begin(), covered.end());
  return out;
}

DrawnPicture drawn_shapes(std::uint64_t seed, std::int64_t number) {
  Random random = numbered_random(seed, number);
  return draw_shapes(random, 48, 6, 3);
}

namespace {
constexpr std::string_view shapes_name = "builtin:shapes-";

/// The digits that `text` begins with, taken off it.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || text.starts_with('-')) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}
}  // namespace

std::string name_of_shapes(std::uint64_t seed, std::int64_t number) {
  return fmt::format("{}{}-{}", shapes_name, seed, number);
}

std::optional<DrawnPicture> shapes_named(const std::string& path) {
  std::string_view rest = path;
  if (!rest.starts_with(shapes_name)) return std::nullopt;
  rest.remove_prefix(shapes_name.size());
  const auto seed = take_number<std::uint64_t>(rest);
  if (!seed || !rest.starts_with('-')) return std::nullopt;
  rest.remove_prefix(1);
  const auto number = take_number<std::int64_t>(rest);
  if (!number || !rest.empty()) return std::nullopt;
  return drawn_shapes(*seed, *number);
}

}  // namespace headscope
