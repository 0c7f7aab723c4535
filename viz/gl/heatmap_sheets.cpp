#include "viz/gl/heatmap_sheets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "viz/gl/gl.h"

namespace headscope {

namespace {

// When more than one map in so many is new, their sheet is uploaded whole: a call costs as much as many numbers.
constexpr std::size_t worth_a_call = 8;

bool as_large(const Heatmap& map, const Tensor& values) {
  return map.values.shape() == values.shape();
}

/// Writes the rectangle of a map into `data` and `state`, rows `stride` apart.
void write_cells(const Tensor& values, const std::vector<std::uint8_t>& masked, const std::vector<float>& row_high,
                 Index stride, float* data, std::uint8_t* state) {
  const Tensor packed = values.packed();
  const float* number = packed.data();
  std::size_t cell = 0;
  for (Index r = 0; r < values.dim(0); ++r, data += stride, state += stride) {
    for (Index c = 0; c < values.dim(1); ++c, ++cell, ++number) {
      state[c] = !masked.empty() && masked[cell] != 0 ? 1 : std::isnan(*number) ? 2 : 0;
      // Not every device keeps what is no number apart.
      data[c] = std::isfinite(*number) ? *number
                : std::isnan(*number)  ? 0.f
                                       : std::copysign(std::numeric_limits<float>::max() / 4, *number);
    }
    data[values.dim(1)] = row_high.empty() ? 1.f : nth(row_high, r);
    state[values.dim(1)] = 1;
  }
}

}  // namespace

bool HeatmapSheets::Map::holds(const Heatmap& map) const {
  if (map.values.data() != values.data() || !as_large(map, values)) return false;
  for (int axis = 0; axis < values.rank(); ++axis)
    if (map.values.stride(axis) != values.stride(axis)) return false;
  return map.masked == masked && map.row_high == row_high;
}

void HeatmapSheets::show(std::span<const Heatmap* const> maps) {
  new_ = 0;
  const bool same_places =
      std::ranges::equal(maps, maps_, [](const Heatmap* map, const Map& held) { return as_large(*map, held.values); });
  if (!same_places) lay_out(maps);
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (same_places && maps_[i].holds(*maps[i])) continue;
    maps_[i].values = maps[i]->values, maps_[i].masked = maps[i]->masked, maps_[i].row_high = maps[i]->row_high;
    changed.push_back(i);
  }
  new_ = changed.size();
  if (changed.size() * worth_a_call > maps.size()) {
    for (std::size_t sheet = 0; sheet < sheets_.size(); ++sheet) upload_sheet(sheet);
    return;
  }
  std::vector<float> data;
  std::vector<std::uint8_t> state;
  for (const std::size_t i : changed) {
    const Map& map = maps_[i];
    const Index wide = map.values.dim(1) + 1, high = map.values.dim(0);
    if (map.values.size() == 0) continue;
    data.resize(static_cast<std::size_t>(wide * high)), state.resize(data.size());
    write_cells(map.values, map.masked, map.row_high, wide, data.data(), state.data());
    const auto part = [&](const GlHandle& texture, GLenum format, GLenum type, const void* cells) {
      glBindTexture(GL_TEXTURE_2D, texture.get());
      glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
      glTexSubImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(map.x), static_cast<GLint>(map.y),
                      static_cast<GLsizei>(wide), static_cast<GLsizei>(high), format, type, cells);
    };
    part(sheets_[map.sheet].data, GL_RED, GL_FLOAT, data.data());
    part(sheets_[map.sheet].mask, GL_RED_INTEGER, GL_UNSIGNED_BYTE, state.data());
  }
}

/// Shelves: maps stand beside each other until a row of them is full, as high as the highest of them.
void HeatmapSheets::lay_out(std::span<const Heatmap* const> maps) {
  maps_.clear(), sheets_.clear();
  const Index longest = longest_ > 0 ? longest_ : longest_texture();
  double cells = 0;
  Index widest = 1;
  for (const Heatmap* map : maps) {
    if (map->rows() >= longest || map->columns() >= longest)  // what rows are divided by, and edges, need one more
      throw Error("heatmap", "fewer than " + std::to_string(longest) + " cells on a side",
                  std::to_string(map->rows()) + " × " + std::to_string(map->columns()), "a pooled map");
    cells += static_cast<double>((map->columns() + 1) * map->rows());
    widest = std::max(widest, map->columns() + 1);
  }
  const Index width = std::clamp(static_cast<Index>(std::ceil(std::sqrt(cells))), widest, longest);
  Index x = 0, y = 0, shelf = 0;
  std::vector<Map> placed;
  for (const Heatmap* map : maps) {
    const Index wide = map->columns() + 1, high = map->rows();
    if (x + wide > width) x = 0, y += std::exchange(shelf, 0);
    if (sheets_.empty() || y + high > longest) {
      sheets_.push_back({{}, {}, width, 0});
      x = y = shelf = 0;
    }
    placed.push_back(
        {.values = map->values, .masked = {}, .row_high = {}, .sheet = sheets_.size() - 1, .x = x, .y = y});
    x += wide, shelf = std::max(shelf, high);
    sheets_.back().height = std::max(sheets_.back().height, y + high);
  }
  maps_ = std::move(placed);
}

void HeatmapSheets::upload_sheet(std::size_t which) {
  Sheet& sheet = sheets_[which];
  std::vector<float> data(static_cast<std::size_t>(sheet.width * sheet.height));
  std::vector<std::uint8_t> state(data.size(), 1);
  for (const Map& map : maps_)
    if (map.sheet == which && map.values.size() > 0)
      write_cells(map.values, map.masked, map.row_high, sheet.width,
                  &data[static_cast<std::size_t>(map.y * sheet.width + map.x)],
                  &state[static_cast<std::size_t>(map.y * sheet.width + map.x)]);
  if (data.empty()) return;
  sheet.data = new_texture();
  upload(GL_R32F, sheet.width, sheet.height, GL_RED, GL_FLOAT, data.data());
  sheet.mask = new_texture();
  upload(GL_R8UI, sheet.width, sheet.height, GL_RED_INTEGER, GL_UNSIGNED_BYTE, state.data());
}

std::size_t HeatmapSheets::bytes() const {
  std::size_t sum = 0;
  for (const Sheet& sheet : sheets_) sum += static_cast<std::size_t>(sheet.width * sheet.height) * (sizeof(float) + 1);
  return sum;
}

}  // namespace headscope
