#pragma once
// Names of OpenGL objects. Thread rule: the thread that owns the GL context, with that context current, destructors
// included.

#include "core/tensor/tensor.h"

namespace headscope {

/// An OpenGL object's name, deleted with it.
class GlHandle {
 public:
  using Delete = void (*)(unsigned);
  GlHandle() = default;
  GlHandle(unsigned name, Delete remove) : name_(name), remove_(remove) {}
  GlHandle(GlHandle&& other) noexcept;
  GlHandle& operator=(GlHandle&& other) noexcept;
  ~GlHandle();
  unsigned get() const { return name_; }
  explicit operator bool() const { return name_ != 0; }

 private:
  unsigned name_ = 0;
  Delete remove_ = nullptr;
};

/// A texture, bound to the active unit, whose cells are read as they are: nothing between them.
GlHandle new_texture();
/// Numbers of the bound texture, row by row without gaps, null = room for them. `internal`, `format` and `type` are
/// OpenGL's.
void upload(int internal, Index width, Index height, unsigned format, unsigned type, const void* data);
/// The longest side of a texture of this device.
Index longest_texture();

}  // namespace headscope
