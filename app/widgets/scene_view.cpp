#include "app/widgets/scene_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/picture_item.h"
#include "app/widgets/scene_hit.h"

namespace headscope {

namespace {

/// Words first, then, quieter, where the number comes from.
std::vector<std::string> lines_of(const std::string& tooltip) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; begin <= tooltip.size(); begin = end + 1) {
    end = std::min(tooltip.find('\n', begin), tooltip.size());
    lines.push_back(tooltip.substr(begin, end - begin));
  }
  return lines;
}

/// Whether a line from `a` leaves `b` for `c` by more than a right angle.
bool turns_back(Point a, Point b, Point c) {
  return (b.x - a.x) * (c.x - b.x) + (b.y - a.y) * (c.y - b.y) < 0;
}

/// Textures of a scene's pictures, by their pixels.
using PixelTextures = std::map<const std::vector<std::uint8_t>*, PixelTexture>;

/// Draws all marks but heatmaps' cells, which are in the layer already.
class Painter {
 public:
  Painter(const Ui& ui, ImDrawList& draw, ImVec2 origin, float pixels, const HeatmapLayer& layer, ImVec2 layer_at,
          const PixelTextures& pictures)
      : ui_(ui),
        draw_(draw),
        origin_(origin),
        pixels_(pixels),
        layer_(layer),
        layer_at_(layer_at),
        pictures_(pictures) {
    const ImVec2 low = draw.GetClipRectMin(), high = draw.GetClipRectMax();
    shown_ = {static_cast<double>((low.x - origin.x) / pixels), static_cast<double>((low.y - origin.y) / pixels),
              static_cast<double>((high.x - low.x) / pixels), static_cast<double>((high.y - low.y) / pixels)};
  }

  void operator()(const Box& box) {
    if (!overlaps(box.rect, box.stroke_width)) return;
    const ImVec2 a = at({box.rect.x, box.rect.y}), b = at({box.rect.right(), box.rect.bottom()});
    const float radius = static_cast<float>(box.radius) * pixels_;
    if (box.fill.a) draw_.AddRectFilled(a, b, col(box.fill), radius);
    if (box.stroke.a && box.stroke_width > 0) {
      draw_.PathRect(a, b, radius);
      draw_.PathStroke(col(box.stroke), ImDrawFlags_Closed, width(box.stroke_width));
    }
  }

  void operator()(const Line& line) {
    if (line.points.size() < 2 || !overlaps(bounds(line), line.width)) return;
    // Where a line turns back Dear ImGui draws the corner far beyond the point, below zero and above the largest value:
    // there one stroke ends and another begins.
    const std::vector<Point>& p = line.points;
    for (std::size_t i = 0; i < p.size(); ++i) {
      draw_.PathLineTo(at(p[i]));
      if (i == 0 || i + 1 == p.size() || !turns_back(p[i - 1], p[i], p[i + 1])) continue;
      draw_.PathStroke(col(line.color), 0, width(line.width));
      draw_.PathLineTo(at(p[i]));
    }
    draw_.PathStroke(col(line.color), 0, width(line.width));
  }

  void operator()(const Curve& c) {
    if (!overlaps(bounds(c), c.width)) return;
    draw_.AddBezierCubic(at(c.from), at(c.control_from), at(c.control_to), at(c.to), col(c.color), width(c.width));
  }

  void operator()(const Text& text) {
    // Room for the longest text at this size, whichever way it leans.
    const double reach = text.font.size * (1.0 + static_cast<double>(text.text.size()));
    if (!overlaps({text.at.x, text.at.y, 0, 0}, 2 * reach)) return;
    draw_text(ui_, draw_, text, origin_, static_cast<double>(pixels_ / ui_.scale));
  }

  void operator()(const Heatmap& map) {
    if (layer_.texture() == 0 || !overlaps(map.rect, 2)) return;
    const float w = static_cast<float>(layer_.width()), h = static_cast<float>(layer_.height());
    const float density = ImGui::GetIO().DisplayFramebufferScale.x;
    ImVec2 a = at({map.rect.x, map.rect.y}), b = at({map.rect.right(), map.rect.bottom()});
    // Whole pixels of the layer round the map, never outside it.
    const auto inside = [](float value, float most) { return std::clamp(value, 0.f, most); };
    a = {inside(std::floor((a.x - layer_at_.x) * density), w), inside(std::floor((a.y - layer_at_.y) * density), h)};
    b = {inside(std::ceil((b.x - layer_at_.x) * density), w), inside(std::ceil((b.y - layer_at_.y) * density), h)};
    if (b.x <= a.x || b.y <= a.y) return;
    draw_.AddImage(ImTextureRef(static_cast<ImTextureID>(layer_.texture())),
                   {layer_at_.x + a.x / density, layer_at_.y + a.y / density},
                   {layer_at_.x + b.x / density, layer_at_.y + b.y / density}, {a.x / w, a.y / h}, {b.x / w, b.y / h});
  }

  void operator()(const Pixels& picture) {
    const auto texture = pictures_.find(picture.rgba.get());
    if (texture == pictures_.end() || !overlaps(picture.rect, 2)) return;
    draw_.AddImage(ImTextureRef(static_cast<ImTextureID>(texture->second.name())), at({picture.rect.x, picture.rect.y}),
                   at({picture.rect.right(), picture.rect.bottom()}));
  }

 private:
  ImVec2 at(Point p) const {
    return {origin_.x + static_cast<float>(p.x) * pixels_, origin_.y + static_cast<float>(p.y) * pixels_};
  }
  float width(double logical) const { return std::max(static_cast<float>(logical) * pixels_, 0.5f); }
  bool overlaps(const Rect& r, double more) const {
    return r.x - more < shown_.right() && r.right() + more > shown_.x && r.y - more < shown_.bottom() &&
           r.bottom() + more > shown_.y;
  }

  const Ui& ui_;
  ImDrawList& draw_;
  ImVec2 origin_;
  float pixels_;
  Rect shown_;  ///< part of the scene inside the clip rectangle
  const HeatmapLayer& layer_;
  ImVec2 layer_at_;
  const PixelTextures& pictures_;
};

}  // namespace

void draw_marks(const Ui& ui, const Scene& scene, ImVec2 origin) {
  const HeatmapLayer none;
  const PixelTextures no_pictures;
  Painter painter(ui, *ImGui::GetWindowDrawList(), origin, ui.scale, none, origin, no_pictures);
  for (const Mark& mark : scene.marks) std::visit(painter, mark.shape);
}

struct SceneView::State {
  std::shared_ptr<const Scene> scene;
  std::vector<const Heatmap*> maps;  ///< of the scene
  HeatmapSheets sheets;
  PixelTextures pictures;
  HeatmapLayer layer;
  LayerView painted;
  const Scene* uploaded = nullptr;
  bool stale = true;
  std::optional<SceneStop>
      stop;             ///< where the keyboard is, or was last; of the scene shown. nullopt = nothing to reach
  std::string stop_id;  ///< its mark's, to find it in the next scene

  void upload() {
    maps.clear();
    PixelTextures before = std::exchange(pictures, {});
    for (std::size_t i = 0; scene && i < scene->marks.size(); ++i) {
      const auto* picture = std::get_if<Pixels>(&scene->marks[i].shape);
      if (!picture || !picture->rgba || pictures.contains(picture->rgba.get())) continue;
      if (auto known = before.extract(picture->rgba.get()))
        pictures.insert(std::move(known));
      else
        pictures.emplace(picture->rgba.get(), PixelTexture(*picture));
    }
    for (std::size_t i = 0; scene && i < scene->marks.size(); ++i)
      if (const auto* map = std::get_if<Heatmap>(&scene->marks[i].shape)) maps.push_back(map);
    sheets.show(maps);
    uploaded = scene.get();
    stale = true;
  }

  void find_stop(const TextMeasure& measure) {
    if (!scene)
      stop.reset();
    else if (stop)
      stop = same_stop(*scene, stop_id, stop->cell, stop->rect, measure);
    else
      stop = first_stop(*scene, measure);
  }

  void paint(HeatmapPainter& painter, const LayerView& view) {
    if (maps.empty() || view.width <= 0 || view.height <= 0) return;
    if (!stale && view == painted) return;
    painter.paint(layer, maps, sheets, view);
    painted = view;
    stale = false;
  }
};

SceneView::SceneView() : state_(std::make_unique<State>()) {}
SceneView::~SceneView() = default;
SceneView::SceneView(SceneView&&) noexcept = default;
SceneView& SceneView::operator=(SceneView&&) noexcept = default;

void SceneView::show(std::shared_ptr<const Scene> scene) {
  if (scene == state_->scene) return;
  state_->scene = std::move(scene);
  state_->uploaded = nullptr;
}

const std::shared_ptr<const Scene>& SceneView::scene() const {
  return state_->scene;
}

SceneTouch SceneView::draw(Ui& ui, const char* id, SceneCamera& camera, const SceneViewOptions& options, double width,
                           double height) {
  State& s = *state_;
  SceneTouch touch;
  if (!s.scene) return touch;
  if (s.scene->width <= 0 || s.scene->height <= 0) {  // no room for it, in a very narrow window: still an item
    ImGui::Dummy({0, 0});
    return touch;
  }
  if (s.uploaded != s.scene.get()) {
    if (ui.heatmaps)
      s.upload();
    else
      s.uploaded = s.scene.get();
    s.find_stop(ui.fonts);
  }
  const Scene& scene = *s.scene;

  const ImVec2 room = ImGui::GetContentRegionAvail();
  const double across = width > 0 ? width : static_cast<double>(room.x / ui.scale);
  double fit = options.largest;
  if (options.fit_width) fit = std::min(fit, across / scene.width);
  double down = height > 0 ? height : static_cast<double>(room.y / ui.scale);
  if (options.fit_height)
    fit = std::min(fit, down / scene.height);
  else if (height <= 0)
    down = scene.height * fit;
  fit = std::max(fit, 0.01);
  const ImVec2 size{std::max(ui.px(across), 1.f), std::max(ui.px(down), 1.f)};
  ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 place = corner;
  // A picture narrower than its view stands in the middle; the camera moves it from there.
  if (options.centered)
    corner.x += std::floor(std::max(0.f, size.x - static_cast<float>(scene.width * fit) * ui.scale) / 2);
  const auto scale_now = [&] { return fit * camera.zoom; };
  const auto keep_place = [&] {
    touch.pixels = static_cast<float>(scale_now()) * ui.scale;
    touch.origin = {corner.x + std::round(static_cast<float>(camera.offset.x) * ui.scale),
                    corner.y + std::round(static_cast<float>(camera.offset.y) * ui.scale)};
  };
  keep_place();
  const PictureItem item = picture_item(ui, id, size, scene, s.stop, touch.origin, touch.pixels);
  if (s.stop) s.stop_id = s.stop->mark->id;
  touch.hovered = ImGui::IsItemHovered();
  const bool active = ImGui::IsItemActive();
  if (options.zoomable) ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);  // the wheel zooms, the column stays
  const ImGuiIO& io = ImGui::GetIO();
  touch.held = active && ImGui::IsMouseDown(ImGuiMouseButton_Left);
  touch.pressed = touch.held && ImGui::IsItemActivated();

  const auto scene_point = [&](ImVec2 p) {
    return Point{(static_cast<double>((p.x - corner.x) / ui.scale) - camera.offset.x) / scale_now(),
                 (static_cast<double>((p.y - corner.y) / ui.scale) - camera.offset.y) / scale_now()};
  };
  if (options.zoomable) {
    if (touch.hovered && io.MouseWheel != 0) {
      const Point fixed = scene_point(io.MousePos);
      camera.zoom = std::clamp(camera.zoom * std::pow(1.2, static_cast<double>(io.MouseWheel)), 1.0, options.most_zoom);
      camera.offset = {static_cast<double>((io.MousePos.x - corner.x) / ui.scale) - fixed.x * scale_now(),
                       static_cast<double>((io.MousePos.y - corner.y) / ui.scale) - fixed.y * scale_now()};
    }
    if (options.pannable && active && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) {
      const ImVec2 moved = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 4);
      camera.offset.x += static_cast<double>(moved.x / ui.scale);
      camera.offset.y += static_cast<double>(moved.y / ui.scale);
      ImGui::ResetMouseDragDelta(ImGuiMouseButton_Left);
    }
    // The scene may not be lost out of sight: some of it stays in the middle of the view.
    const auto kept = [](double offset, double view, double length) {
      return std::clamp(offset, view / 2 - length, view / 2);
    };
    if (camera.zoom <= 1) camera = {};
    camera.offset.x = kept(camera.offset.x, across, scene.width * scale_now());
    camera.offset.y = kept(camera.offset.y, down, scene.height * scale_now());
  }
  keep_place();

  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImGui::PushClipRect(place, {place.x + size.x, place.y + size.y}, true);
  const ImVec2 clip_min = draw.GetClipRectMin(), clip_max = draw.GetClipRectMax();
  const ImVec2 layer_at{std::floor(clip_min.x), std::floor(clip_min.y)};
  const float density = io.DisplayFramebufferScale.x;
  LayerView view;
  view.width = static_cast<int>(std::ceil((clip_max.x - layer_at.x) * density));
  view.height = static_cast<int>(std::ceil((clip_max.y - layer_at.y) * density));
  view.scale = static_cast<double>(touch.pixels * density);
  view.dx = static_cast<double>((touch.origin.x - layer_at.x) * density);
  view.dy = static_cast<double>((touch.origin.y - layer_at.y) * density);
  if (ui.heatmaps && view.width > 0 && view.height > 0) {
    s.paint(*ui.heatmaps, view);
    Painter painter(ui, draw, touch.origin, touch.pixels, s.layer, layer_at, s.pictures);
    for (const Mark& mark : scene.marks) std::visit(painter, mark.shape);
  }
  ImGui::PopClipRect();

  if (ui.items)
    for (const Mark& mark : scene.marks)
      if (!mark.id.empty()) {
        const Rect r = bounds(mark, ui.fonts);
        ui.name(std::string(id) + "/" + mark.id, touch.window({r.x, r.y}), touch.window({r.right(), r.bottom()}));
      }

  if (item.at_keys) {
    frame_stop(ui, id, *s.stop, touch.origin, touch.pixels);
    touch.hovered = true;
    touch.at = s.stop->rect.center();
    touch.mark = s.stop->mark;
    touch.cell = s.stop->cell;
    touch.clicked = item.pressed;
  } else if (touch.hovered || active) {
    touch.at = scene_point(io.MousePos);
    touch.mark = mark_at(scene, touch.at, 4 / scale_now(), ui.fonts);
    if (touch.mark)
      if (const auto* map = std::get_if<Heatmap>(&touch.mark->shape)) touch.cell = cell_at(*map, touch.at);
  }
  // A click is a press and a release in one place; a drag pans instead.
  const bool still = io.MouseDragMaxDistanceSqr[0] < 16;
  touch.clicked |=
      touch.hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Left) && ImGui::IsItemDeactivated() && still;
  touch.right_clicked = touch.hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Right) && ImGui::IsItemDeactivated();
  touch.double_clicked = touch.hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
  if (options.zoomable && touch.double_clicked && !touch.mark) camera = {};
  if (options.tooltips && touch.hovered && touch.mark && !touch.mark->tooltip.empty() && !active)
    tooltip(ui, lines_of(touch.mark->tooltip));
  return touch;
}

}  // namespace headscope
