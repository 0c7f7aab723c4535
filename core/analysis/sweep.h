#pragma once
// A long computation over one model that is taken in small steps: whoever runs it decides when the next one comes,
// shows what is there already, and stops between any two. Owned by whoever steps it, one thread at a time; results come
// out as immutable values.

#include "core/model/model.h"

namespace headscope {

class Sweep {
 public:
  virtual ~Sweep() = default;
  /// Takes the next step: the first prepares (the text as it is, unedited), each further one computes a cell. Throws
  /// Error, or Cancelled once ctx.stop asks for it; a step that was stopped can be taken again. REQUIRES !finished().
  virtual void step(const Ctx& ctx) = 0;
  virtual int done() const = 0;   ///< cells
  virtual int total() const = 0;  ///< 0 before the first step, when it is not known yet
  virtual bool finished() const = 0;
  /// The part of the whole work that is done, 0 … 1: blocks computed, since an edit high up costs fewer of them.
  virtual double share() const = 0;
};

}  // namespace headscope
