#include "viz/gl/heatmap_painter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "viz/gl/gl.h"

namespace headscope {

namespace {

constexpr const char* vertex_source = R"(#version 330 core
layout(location = 0) in vec4 in_box;      // of the map, clip space: left, top, right, bottom
layout(location = 1) in ivec4 in_place;   // in the sheet: of column 0 and row 0; columns, rows
layout(location = 2) in ivec4 in_look;    // gap; scale: 0 linear, 1 log, 2 per row; pooled; row of its colormap
layout(location = 3) in vec4 in_range;    // low, high, neutral
layout(location = 4) in vec3 in_masked;
layout(location = 5) in vec3 in_missing;
flat out ivec4 place, look;
flat out vec4 range;
flat out vec3 masked_color, missing_color;
flat out int edge_row;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(mix(in_box.xy, in_box.zw, corner), 0.0, 1.0);
  place = in_place, look = in_look, range = in_range;
  masked_color = in_masked, missing_color = in_missing;
  edge_row = 2 * gl_InstanceID;
}
)";

// Follows paint_cells() and paint_pooled() of viz/export/raster.cpp.
constexpr const char* fragment_source = R"(#version 330 core
uniform sampler2D data;       // of the sheet; right of a map's last column what its rows are divided by
uniform usampler2D mask;      // 0 shown, 1 masked, 2 missing
uniform isampler2D edges;     // two rows a map: left edges of columns, top edges of rows; pixels of the layer
uniform sampler2D colors;     // a row for each colormap
flat in ivec4 place, look;
flat in vec4 range;
flat in vec3 masked_color, missing_color;
flat in int edge_row;
out vec4 color;

uint state(ivec2 c) { return texelFetch(mask, place.xy + c, 0).r; }
bool masked(ivec2 c) { return c.x < place.z && c.y < place.w && state(c) == 1u; }

float unit(ivec2 c) {
  float v = texelFetch(data, place.xy + c, 0).r, t = 0.0;
  if (look.y == 0) {
    if (range.y > range.x) t = (v - range.x) / (range.y - range.x);
  } else if (look.y == 1) {
    if (v > range.x && range.y > range.x) t = log(v / range.x) / log(range.y / range.x);
  } else {
    float top = texelFetch(data, place.xy + ivec2(place.z, c.y), 0).r;
    if (top > 0.0) t = v / top;
  }
  return clamp(t, 0.0, 1.0);
}

vec3 shade(ivec2 c) {
  uint s = state(c);
  if (s == 1u) return masked_color;
  if (s == 2u) return missing_color;
  return texelFetch(colors, ivec2(int(unit(c) * 255.0 + 0.5), look.w), 0).rgb;
}

int edge(int axis, int i) { return texelFetch(edges, ivec2(i, edge_row + axis), 0).r; }

// The cell whose pixels hold p: a guess from even spacing, set right by the edges themselves.
int cell_of(int axis, int p, int count) {
  int first = edge(axis, 0), last = edge(axis, count);
  int i = clamp(int(float(p - first) / float(max(last - first, 1)) * float(count)), 0, count - 1);
  while (i > 0 && p < edge(axis, i)) --i;
  while (i < count - 1 && p >= edge(axis, i + 1)) ++i;
  return i;
}

vec3 strongest(ivec2 p) {
  ivec2 first = ivec2(edge(0, 0), edge(1, 0));
  ivec2 cells = place.zw;
  ivec2 size = max(ivec2(edge(0, cells.x), edge(1, cells.y)) - first, ivec2(1));
  ivec2 begin = (p - first) * cells / size;
  ivec2 end = min(max(begin + 1, (p + 1 - first) * cells / size), cells);
  vec3 found = masked_color;
  float best = -1.0;
  for (int y = begin.y; y < end.y; ++y)
    for (int x = begin.x; x < end.x; ++x) {
      uint s = state(ivec2(x, y));
      if (s == 1u) continue;
      float strength = s == 2u ? 2.0 : abs(unit(ivec2(x, y)) - range.z);
      if (strength > best) best = strength, found = shade(ivec2(x, y));
    }
  return found;
}

void main() {
  // Row 0 of the layer is the top of the picture, so window coordinates are the picture's own.
  ivec2 p = ivec2(gl_FragCoord.xy);
  if (look.z != 0) {
    color = vec4(strongest(p), 1.0);
    return;
  }
  ivec2 c = ivec2(cell_of(0, p.x, place.z), cell_of(1, p.y, place.w));
  bool right = p.x >= max(edge(0, c.x + 1) - look.x, edge(0, c.x));
  bool below = p.y >= max(edge(1, c.y + 1) - look.x, edge(1, c.y));
  if (!right && !below) {
    color = vec4(shade(c), 1.0);
    return;
  }
  bool joined = masked(c);  // masked neighbours grow together into one flat field
  if (right) joined = joined && masked(c + ivec2(1, 0));
  if (below) joined = joined && masked(c + ivec2(0, 1));
  if (right && below) joined = joined && masked(c + ivec2(1, 1));
  color = joined ? vec4(masked_color, 1.0) : vec4(0.0);
}
)";

/// What the shader is told of one map.
struct Instance {
  GLfloat box[4];
  GLint place[4], look[4];
  GLfloat range[4], masked[3], missing[3];
};
constexpr struct {
  GLint size;
  bool whole;  ///< numbers
  std::size_t at;
} attributes[] = {{4, false, offsetof(Instance, box)},    {4, true, offsetof(Instance, place)},
                  {4, true, offsetof(Instance, look)},    {4, false, offsetof(Instance, range)},
                  {3, false, offsetof(Instance, masked)}, {3, false, offsetof(Instance, missing)}};

GlHandle shader(GLenum kind, const char* source) {
  const unsigned name = glCreateShader(kind);
  GlHandle handle(name, [](unsigned s) { glDeleteShader(s); });
  glShaderSource(name, 1, &source, nullptr);
  glCompileShader(name);
  GLint good = 0;
  glGetShaderiv(name, GL_COMPILE_STATUS, &good);
  if (!good) {
    std::string log(2000, '\0');
    GLsizei length = 0;
    glGetShaderInfoLog(name, static_cast<GLsizei>(log.size()), &length, log.data());
    log.resize(static_cast<std::size_t>(std::max(length, 0)));
    throw Error("heatmap shader", "OpenGL 3.3 to compile it", log, "a newer graphics driver, or Mesa's llvmpipe");
  }
  return handle;
}

GLfloat part(std::uint8_t channel) {
  return static_cast<GLfloat>(channel) / 255.0f;
}

/// Pixel borders of `count` equal cells, as the raster printer rounds them.
void put_edges(std::span<GLint> out, double begin, double length, Index count, double scale, double shift) {
  for (Index i = 0; i <= count; ++i) {
    const double at = (begin + length * static_cast<double>(i) / static_cast<double>(count)) * scale + shift;
    nth(out, i) = static_cast<GLint>(std::lround(std::clamp(at, -1e6, 1e6)));
  }
}

}  // namespace

PixelTexture::PixelTexture(const Pixels& pixels) : kept_(pixels.rgba) {
  const Index longest = longest_texture();
  if (pixels.width > longest || pixels.height > longest)
    throw Error("picture", "at most " + std::to_string(longest) + " pixels on a side",
                std::to_string(pixels.width) + " × " + std::to_string(pixels.height), "a smaller picture");
  color_ = new_texture();
  upload(GL_RGBA8, pixels.width, pixels.height, GL_RGBA, GL_UNSIGNED_BYTE, pixels.rgba->data());
  if (!pixels.smooth) return;
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
}

std::vector<std::uint8_t> HeatmapLayer::read() const {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 4);
  if (!framebuffer_) return out;
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_.get());
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, width_, height_, GL_RGBA, GL_UNSIGNED_BYTE, out.data());
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  return out;
}

struct HeatmapPainter::State {
  GlHandle program, vertices, instances, edges, colors;
  std::vector<Instance> batch;
  std::vector<GLint> batch_edges;  ///< of its maps, two rows of `across` each
  Index across = 0;

  void add(const Heatmap& map, const HeatmapSheets::Map& held, const LayerView& view);
  void draw();
};

HeatmapPainter::HeatmapPainter() : state_(std::make_unique<State>()) {
  const GlHandle vertex = shader(GL_VERTEX_SHADER, vertex_source),
                 fragment = shader(GL_FRAGMENT_SHADER, fragment_source);
  state_->program = {glCreateProgram(), [](unsigned p) { glDeleteProgram(p); }};
  const unsigned program = state_->program.get();
  glAttachShader(program, vertex.get());
  glAttachShader(program, fragment.get());
  glLinkProgram(program);
  GLint good = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &good);
  if (!good) throw Error("heatmap shader", "OpenGL 3.3 to link it", "a failure", "a newer graphics driver");
  unsigned name = 0;
  glGenVertexArrays(1, &name);
  state_->vertices = {name, [](unsigned v) { glDeleteVertexArrays(1, &v); }};
  glGenBuffers(1, &name);
  state_->instances = {name, [](unsigned b) { glDeleteBuffers(1, &b); }};
  glBindVertexArray(state_->vertices.get());
  glBindBuffer(GL_ARRAY_BUFFER, name);
  GLuint location = 0;
  for (const auto& [size, whole, at] : attributes) {
    const void* const offset = reinterpret_cast<const void*>(at);  // as OpenGL wants it
    if (whole)
      glVertexAttribIPointer(location, size, GL_INT, sizeof(Instance), offset);
    else
      glVertexAttribPointer(location, size, GL_FLOAT, GL_FALSE, sizeof(Instance), offset);
    glEnableVertexAttribArray(location);
    glVertexAttribDivisor(location++, 1);
  }
  glBindVertexArray(0);
  glBindBuffer(GL_ARRAY_BUFFER, 0);
  state_->edges = new_texture();
  state_->colors = new_texture();
  std::vector<std::uint8_t> tables;
  for (const Colormap& each : colormaps())
    for (const auto& color : each.table) tables.insert(tables.end(), {color.r, color.g, color.b, color.a});
  upload(GL_RGBA8, Colormap::size, static_cast<Index>(colormaps().size()), GL_RGBA, GL_UNSIGNED_BYTE, tables.data());
  glUseProgram(program);
  int unit = 0;
  for (const char* sampler : {"data", "mask", "edges", "colors"})
    glUniform1i(glGetUniformLocation(program, sampler), unit++);
  glUseProgram(0);
}

HeatmapPainter::~HeatmapPainter() = default;

void HeatmapPainter::State::add(const Heatmap& map, const HeatmapSheets::Map& held, const LayerView& view) {
  if (map.rows() == 0 || map.columns() == 0) return;
  const std::size_t first = batch_edges.size();
  batch_edges.resize(first + 2 * static_cast<std::size_t>(across), 0);
  const auto axis = [&](int which) {
    return std::span(batch_edges).subspan(first + static_cast<std::size_t>(which * across));
  };
  put_edges(axis(0), map.rect.x, map.rect.w, map.columns(), view.scale, view.dx);
  put_edges(axis(1), map.rect.y, map.rect.h, map.rows(), view.scale, view.dy);
  const GLint x0 = axis(0)[0], x1 = nth(axis(0), map.columns());
  const GLint y0 = axis(1)[0], y1 = nth(axis(1), map.rows());
  const bool pooled = x1 - x0 < map.columns() || y1 - y0 < map.rows();
  const GLint right = pooled ? std::max(x1, x0 + 1) : x1, bottom = pooled ? std::max(y1, y0 + 1) : y1;
  if (right <= 0 || bottom <= 0 || x0 >= view.width || y0 >= view.height) return batch_edges.resize(first);

  const double wanted = map.gap * view.scale;
  const auto clip = [](GLint pixel, int size) {
    return 2.f * static_cast<GLfloat>(pixel) / static_cast<GLfloat>(size) - 1.f;
  };
  const auto whole = [](Index number) { return static_cast<GLint>(number); };
  const Color m = map.masked_color, n = map.missing_color;
  batch.push_back({{clip(x0, view.width), clip(y0, view.height), clip(right, view.width), clip(bottom, view.height)},
                   {whole(held.x), whole(held.y), whole(map.columns()), whole(map.rows())},
                   {wanted < 0.75 ? 0 : static_cast<GLint>(std::lround(wanted)),
                    map.norm.scale == Scale::linear ? 0
                    : map.norm.scale == Scale::log  ? 1
                                                    : 2,
                    pooled ? 1 : 0, whole(map.colormap - colormaps().data())},
                   {static_cast<GLfloat>(map.norm.low), static_cast<GLfloat>(map.norm.high),
                    map.colormap->diverging ? 0.5f : 0.f, 0},
                   {part(m.r), part(m.g), part(m.b)},
                   {part(n.r), part(n.g), part(n.b)}});
}

/// What was added, of one sheet, which is bound.
void HeatmapPainter::State::draw() {
  if (batch.empty()) return;
  glActiveTexture(GL_TEXTURE2);
  glBindTexture(GL_TEXTURE_2D, edges.get());
  upload(GL_R32I, across, 2 * static_cast<Index>(batch.size()), GL_RED_INTEGER, GL_INT, batch_edges.data());
  glBindBuffer(GL_ARRAY_BUFFER, instances.get());
  glBufferData(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(batch.size() * sizeof(Instance)), batch.data(), GL_STREAM_DRAW);
  glBindBuffer(GL_ARRAY_BUFFER, 0);
  glDrawArraysInstanced(GL_TRIANGLE_STRIP, 0, 4, static_cast<GLsizei>(batch.size()));
  batch.clear(), batch_edges.clear();
}

void HeatmapPainter::paint(HeatmapLayer& layer, std::span<const Heatmap* const> maps, const HeatmapSheets& sheets,
                           const LayerView& view) {
  if (view.width <= 0 || view.height <= 0) return;
  if (!layer.color_ || layer.width_ != view.width || layer.height_ != view.height) {
    layer.color_ = new_texture();
    upload(GL_RGBA8, view.width, view.height, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
    unsigned name = 0;
    glGenFramebuffers(1, &name);
    layer.framebuffer_ = {name, [](unsigned f) { glDeleteFramebuffers(1, &f); }};
    glBindFramebuffer(GL_FRAMEBUFFER, name);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, layer.color_.get(), 0);
    layer.width_ = view.width;
    layer.height_ = view.height;
  }
  glBindFramebuffer(GL_FRAMEBUFFER, layer.framebuffer_.get());
  glViewport(0, 0, view.width, view.height);
  glDisable(GL_SCISSOR_TEST);
  glDisable(GL_BLEND);
  glDisable(GL_CULL_FACE);
  glDisable(GL_DEPTH_TEST);
  glClearColor(0, 0, 0, 0);
  glClear(GL_COLOR_BUFFER_BIT);
  glUseProgram(state_->program.get());
  glBindVertexArray(state_->vertices.get());
  glActiveTexture(GL_TEXTURE3);
  glBindTexture(GL_TEXTURE_2D, state_->colors.get());
  state_->across = 1;
  for (const Heatmap* map : maps) state_->across = std::max({state_->across, map->rows() + 1, map->columns() + 1});
  const auto most = static_cast<std::size_t>(longest_texture() / 2);  // maps whose edges one texture holds
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const HeatmapSheets::Map& held = sheets.maps_[i];
    const bool another = i == 0 || held.sheet != sheets.maps_[i - 1].sheet;
    if (another || state_->batch.size() == most) state_->draw();
    if (another)
      for (const auto& [unit, texture] : {std::pair{GL_TEXTURE0, sheets.sheets_[held.sheet].data.get()},
                                          {GL_TEXTURE1, sheets.sheets_[held.sheet].mask.get()}}) {
        glActiveTexture(unit);
        glBindTexture(GL_TEXTURE_2D, texture);
      }
    state_->add(*maps[i], held, view);
  }
  state_->draw();
  glBindVertexArray(0);
  glUseProgram(0);
  glActiveTexture(GL_TEXTURE0);
  glBindTexture(GL_TEXTURE_2D, 0);
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
}

}  // namespace headscope
