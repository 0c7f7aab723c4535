#include "viz/gl/gl_handle.h"

#include <utility>

#include "viz/gl/gl.h"

namespace headscope {

GlHandle::GlHandle(GlHandle&& other) noexcept : name_(std::exchange(other.name_, 0)), remove_(other.remove_) {}

GlHandle& GlHandle::operator=(GlHandle&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(remove_, other.remove_);
  return *this;
}

GlHandle::~GlHandle() {
  if (name_ != 0) remove_(name_);
}

GlHandle new_texture() {
  unsigned name = 0;
  glGenTextures(1, &name);
  glBindTexture(GL_TEXTURE_2D, name);
  for (const auto& [parameter, value] : {std::pair{GL_TEXTURE_MIN_FILTER, GL_NEAREST},
                                         {GL_TEXTURE_MAG_FILTER, GL_NEAREST},
                                         {GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE},
                                         {GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE}})
    glTexParameteri(GL_TEXTURE_2D, parameter, value);
  return {name, [](unsigned t) { glDeleteTextures(1, &t); }};
}

void upload(int internal, Index width, Index height, unsigned format, unsigned type, const void* data) {
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage2D(GL_TEXTURE_2D, 0, internal, static_cast<GLsizei>(width), static_cast<GLsizei>(height), 0, format, type,
               data);
}

Index longest_texture() {
  GLint longest = 0;
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &longest);
  return longest;
}

}  // namespace headscope
