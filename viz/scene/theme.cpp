#include "viz/scene/theme.h"

#include <string>

#include "core/base/error.h"

namespace headscope {

namespace {

Theme dark() {
  Theme t;
  t.id = "dark";
  t.background = rgb(0x0F1115);
  t.text = rgb(0xE8EAEF);
  t.muted = rgb(0xA3A9B6);
  t.faint = rgb(0x6B7280);
  t.line = rgb(0x2A3040);
  t.accent = rgb(0x6AA9FF);
  t.query = rgb(0x6AA9FF);
  t.key = rgb(0xFF7B72);
  t.value = rgb(0x6FD08C);
  t.masked = rgb(0x1B1F27);
  t.missing = rgb(0x2FA8A0);
  t.dark_ink = rgb(0x140A1E);
  t.light_ink = rgb(0xF2EEF7);
  t.sequential = &colormap("inferno");
  t.diverging = &colormap("diverging-dark");
  return t;
}

Theme light() {
  Theme t;
  t.id = "light";
  t.background = rgb(0xFBFBFC);
  t.text = rgb(0x16181D);
  t.muted = rgb(0x545B68);
  t.faint = rgb(0x878E9B);
  t.line = rgb(0xD3D7DE);
  t.accent = rgb(0x1F6FD6);
  t.query = rgb(0x1F6FD6);
  t.key = rgb(0xCC3A31);
  t.value = rgb(0x1F8A47);
  t.masked = rgb(0xDFE3E9);
  t.missing = rgb(0x2FA8A0);
  t.dark_ink = rgb(0x16181D);
  t.light_ink = rgb(0xFFFFFF);
  t.sequential = &colormap("paper");
  t.diverging = &colormap("diverging-light");
  return t;
}

Theme projector() {
  Theme t = light();
  t.id = "projector";
  t.background = rgb(0xFFFFFF);
  t.text = rgb(0x000000);
  t.muted = rgb(0x2C313A);
  t.faint = rgb(0x5A616E);
  t.line = rgb(0x9AA1AD);
  t.masked = rgb(0xD9DEE4);
  t.text_scale = 1.3;
  return t;
}

Theme print() {
  Theme t = light();
  t.id = "print";
  t.background = rgb(0xFFFFFF);
  t.text = rgb(0x000000);
  t.muted = rgb(0x3C424C);
  t.faint = rgb(0x767D89);
  return t;
}

}  // namespace

const std::vector<Theme>& themes() {
  static const std::vector<Theme> all{dark(), light(), projector(), print()};
  return all;
}

const Theme& theme(std::string_view id) {
  std::string known;
  for (const Theme& t : themes()) {
    if (t.id == id) return t;
    known += (known.empty() ? "" : ", ") + std::string(t.id);
  }
  throw Error("theme", "one of " + known, "'" + std::string(id) + "'");
}

}  // namespace headscope
