#include "viz/gl/heatmap_painter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "viz/gl/gl.h"

namespace headscope {

namespace {

constexpr const char* vertex_source = R"(#version 330 core
uniform vec4 box;  // of the map, clip space: left, top, right, bottom
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(mix(box.xy, box.zw, corner), 0.0, 1.0);
}
)";

// Follows paint_cells() and paint_pooled() of viz/export/raster.cpp.
constexpr const char* fragment_source = R"(#version 330 core
uniform sampler2D data;
uniform usampler2D mask;      // 0 shown, 1 masked, 2 missing
uniform sampler2D high;       // one per row
uniform isampler2D edges;     // row 0: left edges of columns, row 1: top edges of rows; pixels of the layer
uniform sampler2D colors;     // the colormap
uniform ivec2 cells;          // columns, rows
uniform int gap;
uniform int scale;            // 0 linear, 1 log, 2 per row
uniform vec2 range;
uniform float neutral;
uniform bool pooled;
uniform vec3 masked_color, missing_color;
out vec4 color;

uint state(ivec2 c) { return texelFetch(mask, c, 0).r; }
bool masked(ivec2 c) { return c.x < cells.x && c.y < cells.y && state(c) == 1u; }

float unit(ivec2 c) {
  float v = texelFetch(data, c, 0).r, t = 0.0;
  if (scale == 0) {
    if (range.y > range.x) t = (v - range.x) / (range.y - range.x);
  } else if (scale == 1) {
    if (v > range.x && range.y > range.x) t = log(v / range.x) / log(range.y / range.x);
  } else {
    float top = texelFetch(high, ivec2(0, c.y), 0).r;
    if (top > 0.0) t = v / top;
  }
  return clamp(t, 0.0, 1.0);
}

vec3 shade(ivec2 c) {
  uint s = state(c);
  if (s == 1u) return masked_color;
  if (s == 2u) return missing_color;
  return texelFetch(colors, ivec2(int(unit(c) * 255.0 + 0.5), 0), 0).rgb;
}

int edge(int axis, int i) { return texelFetch(edges, ivec2(i, axis), 0).r; }

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
  ivec2 size = max(ivec2(edge(0, cells.x), edge(1, cells.y)) - first, ivec2(1));
  ivec2 begin = (p - first) * cells / size;
  ivec2 end = min(max(begin + 1, (p + 1 - first) * cells / size), cells);
  vec3 found = masked_color;
  float best = -1.0;
  for (int y = begin.y; y < end.y; ++y)
    for (int x = begin.x; x < end.x; ++x) {
      uint s = state(ivec2(x, y));
      if (s == 1u) continue;
      float strength = s == 2u ? 2.0 : abs(unit(ivec2(x, y)) - neutral);
      if (strength > best) best = strength, found = shade(ivec2(x, y));
    }
  return found;
}

void main() {
  // Row 0 of the layer is the top of the picture, so window coordinates are the picture's own.
  ivec2 p = ivec2(gl_FragCoord.xy);
  if (pooled) {
    color = vec4(strongest(p), 1.0);
    return;
  }
  ivec2 c = ivec2(cell_of(0, p.x, cells.x), cell_of(1, p.y, cells.y));
  bool right = p.x >= max(edge(0, c.x + 1) - gap, edge(0, c.x));
  bool below = p.y >= max(edge(1, c.y + 1) - gap, edge(1, c.y));
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

GlHandle texture() {
  unsigned name = 0;
  glGenTextures(1, &name);
  glBindTexture(GL_TEXTURE_2D, name);
  for (const auto& [parameter, value] : {std::pair<GLenum, GLint>{GL_TEXTURE_MIN_FILTER, GL_NEAREST},
                                         {GL_TEXTURE_MAG_FILTER, GL_NEAREST},
                                         {GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE},
                                         {GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE}})
    glTexParameteri(GL_TEXTURE_2D, parameter, value);
  return {name, [](unsigned t) { glDeleteTextures(1, &t); }};
}

void upload(GLint internal, Index width, Index height, GLenum format, GLenum type, const void* data) {
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage2D(GL_TEXTURE_2D, 0, internal, static_cast<GLsizei>(width), static_cast<GLsizei>(height), 0, format, type,
               data);
}

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
void edges(std::vector<GLint>& out, double begin, double length, Index count, double scale, double shift) {
  for (Index i = 0; i <= count; ++i) {
    const double at = (begin + length * static_cast<double>(i) / static_cast<double>(count)) * scale + shift;
    nth(out, i) = static_cast<GLint>(std::lround(std::clamp(at, -1e6, 1e6)));
  }
}

}  // namespace

GlHandle::GlHandle(GlHandle&& other) noexcept : name_(std::exchange(other.name_, 0)), remove_(other.remove_) {}

GlHandle& GlHandle::operator=(GlHandle&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(remove_, other.remove_);
  return *this;
}

GlHandle::~GlHandle() {
  if (name_ != 0) remove_(name_);
}

HeatmapTexture::HeatmapTexture(const Heatmap& map) : values_(map.values), masked_(map.masked), row_high_(map.row_high) {
  GLint longest = 0;
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &longest);
  if (map.rows() >= longest || map.columns() >= longest)  // one more is needed for the edges
    throw Error("heatmap", "fewer than " + std::to_string(longest) + " cells on a side",
                std::to_string(map.rows()) + " × " + std::to_string(map.columns()), "a pooled map");
  if (map.rows() == 0 || map.columns() == 0) return;
  const Tensor packed = map.values.packed();
  std::vector<float> shown(packed.values().begin(), packed.values().end());
  std::vector<std::uint8_t> state(shown.size(), 0);
  if (!masked_.empty()) std::copy(masked_.begin(), masked_.end(), state.begin());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (state[i] != 0) state[i] = 1;
    if (state[i] == 0 && std::isnan(shown[i])) state[i] = 2;
    // Not every device keeps what is no number apart.
    if (!std::isfinite(shown[i]))
      shown[i] = std::isnan(shown[i]) ? 0.f : std::copysign(std::numeric_limits<float>::max() / 4, shown[i]);
  }
  data_ = texture();
  upload(GL_R32F, map.columns(), map.rows(), GL_RED, GL_FLOAT, shown.data());
  mask_ = texture();
  upload(GL_R8UI, map.columns(), map.rows(), GL_RED_INTEGER, GL_UNSIGNED_BYTE, state.data());
  high_ = texture();
  const std::vector<float> ones(row_high_.empty() ? static_cast<std::size_t>(map.rows()) : 0, 1.f);
  upload(GL_R32F, 1, map.rows(), GL_RED, GL_FLOAT, row_high_.empty() ? ones.data() : row_high_.data());
}

bool HeatmapTexture::holds(const Heatmap& map) const {
  if (map.values.data() != values_.data() || map.values.shape() != values_.shape()) return false;
  for (int axis = 0; axis < values_.rank(); ++axis)
    if (map.values.stride(axis) != values_.stride(axis)) return false;
  return map.masked == masked_ && map.row_high == row_high_;
}

PixelTexture::PixelTexture(const Pixels& pixels) : kept_(pixels.rgba) {
  GLint longest = 0;
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &longest);
  if (pixels.width > longest || pixels.height > longest)
    throw Error("picture", "at most " + std::to_string(longest) + " pixels on a side",
                std::to_string(pixels.width) + " × " + std::to_string(pixels.height), "a smaller picture");
  color_ = texture();
  upload(GL_RGBA8, pixels.width, pixels.height, GL_RGBA, GL_UNSIGNED_BYTE, pixels.rgba->data());
  if (!pixels.smooth) return;
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
}

std::size_t HeatmapTexture::bytes() const {
  return static_cast<std::size_t>(values_.size()) * (sizeof(float) + 1);
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
  GlHandle program, vertices, edges;
  std::map<const Colormap*, GlHandle> colors;

  GLint at(const char* name) const { return glGetUniformLocation(program.get(), name); }

  unsigned lookup(const Colormap& map) {
    GlHandle& handle = colors[&map];
    if (!handle) {
      handle = texture();
      upload(GL_RGBA8, Colormap::size, 1, GL_RGBA, GL_UNSIGNED_BYTE, map.table.data());
    }
    return handle.get();
  }

  void draw(const Item& item, const LayerView& view);
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
  state_->edges = texture();
  glUseProgram(program);
  int unit = 0;
  for (const char* sampler : {"data", "mask", "high", "edges", "colors"}) glUniform1i(state_->at(sampler), unit++);
  glUseProgram(0);
}

HeatmapPainter::~HeatmapPainter() = default;

void HeatmapPainter::State::draw(const Item& item, const LayerView& view) {
  const Heatmap& map = *item.map;
  if (map.rows() == 0 || map.columns() == 0) return;
  const auto across = static_cast<std::size_t>(std::max(map.rows(), map.columns()) + 1);
  std::vector<GLint> x(across, 0), y(across, 0);
  headscope::edges(x, map.rect.x, map.rect.w, map.columns(), view.scale, view.dx);
  headscope::edges(y, map.rect.y, map.rect.h, map.rows(), view.scale, view.dy);
  const GLint x0 = x.front(), x1 = nth(x, map.columns());
  const GLint y0 = y.front(), y1 = nth(y, map.rows());
  const bool pooled = x1 - x0 < map.columns() || y1 - y0 < map.rows();
  const GLint right = pooled ? std::max(x1, x0 + 1) : x1, bottom = pooled ? std::max(y1, y0 + 1) : y1;
  if (right <= 0 || bottom <= 0 || x0 >= view.width || y0 >= view.height) return;

  const double wanted = map.gap * view.scale;
  glUniform1i(at("gap"), wanted < 0.75 ? 0 : static_cast<GLint>(std::lround(wanted)));
  glUniform1i(at("pooled"), pooled);
  glUniform2i(at("cells"), static_cast<GLint>(map.columns()), static_cast<GLint>(map.rows()));
  glUniform1i(at("scale"), map.norm.scale == Scale::linear ? 0 : map.norm.scale == Scale::log ? 1 : 2);
  glUniform2f(at("range"), static_cast<GLfloat>(map.norm.low), static_cast<GLfloat>(map.norm.high));
  glUniform1f(at("neutral"), map.colormap->diverging ? 0.5f : 0.f);
  const auto color = [&](const char* name, Color c) { glUniform3f(at(name), part(c.r), part(c.g), part(c.b)); };
  color("masked_color", map.masked_color);
  color("missing_color", map.missing_color);
  const auto clip = [](GLint pixel, int size) {
    return 2.f * static_cast<GLfloat>(pixel) / static_cast<GLfloat>(size) - 1.f;
  };
  glUniform4f(at("box"), clip(x0, view.width), clip(y0, view.height), clip(right, view.width),
              clip(bottom, view.height));

  glActiveTexture(GL_TEXTURE3);
  glBindTexture(GL_TEXTURE_2D, edges.get());
  x.insert(x.end(), y.begin(), y.end());
  upload(GL_R32I, static_cast<Index>(across), 2, GL_RED_INTEGER, GL_INT, x.data());
  glActiveTexture(GL_TEXTURE4);
  glBindTexture(GL_TEXTURE_2D, lookup(*map.colormap));
  GLenum unit = GL_TEXTURE0;
  for (const GlHandle* handle : {&item.data->data_, &item.data->mask_, &item.data->high_}) {
    glActiveTexture(unit++);
    glBindTexture(GL_TEXTURE_2D, handle->get());
  }
  glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
}

void HeatmapPainter::paint(HeatmapLayer& layer, std::span<const Item> items, const LayerView& view) {
  if (view.width <= 0 || view.height <= 0) return;
  if (!layer.color_ || layer.width_ != view.width || layer.height_ != view.height) {
    layer.color_ = texture();
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
  for (const Item& item : items) state_->draw(item, view);
  glBindVertexArray(0);
  glUseProgram(0);
  glActiveTexture(GL_TEXTURE0);
  glBindTexture(GL_TEXTURE_2D, 0);
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
}

}  // namespace headscope
