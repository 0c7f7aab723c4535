// Which class decodes a type of GGUF's blocks. Compiled once per instruction set.

#if defined(HEADSCOPE_GGUF_TYPES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_GGUF_TYPES_INL_H
#undef HEADSCOPE_GGUF_TYPES_INL_H
#else
#define HEADSCOPE_GGUF_TYPES_INL_H
#endif

#include "core/tensor/gguf_blocks-inl.h"
#include "core/tensor/gguf_grid_blocks-inl.h"

#undef HEADSCOPE_BLOCK_TYPE

HWY_BEFORE_NAMESPACE();
namespace headscope::stored {
namespace HWY_NAMESPACE {

/// body(type_identity of the class that decodes this type where Block says)
template <class Block, class Body>
HWY_INLINE void ByBlockType(Stored kind, const Body& body) {
  switch (kind) {
    case Stored::q4_0:
      return body(std::type_identity<Q4_0<Block>>());
    case Stored::q4_1:
      return body(std::type_identity<Q4_1<Block>>());
    case Stored::q5_0:
      return body(std::type_identity<Q5_0<Block>>());
    case Stored::q5_1:
      return body(std::type_identity<Q5_1<Block>>());
    case Stored::q8_0:
      return body(std::type_identity<Q8_0<Block>>());
    case Stored::q2_k:
      return body(std::type_identity<Q2K<Block>>());
    case Stored::q3_k:
      return body(std::type_identity<Q3K<Block>>());
    case Stored::q4_k:
      return body(std::type_identity<Q4K<Block>>());
    case Stored::q5_k:
      return body(std::type_identity<Q5K<Block>>());
    case Stored::q6_k:
      return body(std::type_identity<Q6K<Block>>());
    case Stored::iq1_s:
      return body(std::type_identity<Iq1S<Block>>());
    case Stored::iq1_m:
      return body(std::type_identity<Iq1M<Block>>());
    case Stored::iq2_xxs:
      return body(std::type_identity<Iq2Xxs<Block>>());
    case Stored::iq2_xs:
      return body(std::type_identity<Iq2Xs<Block>>());
    case Stored::iq2_s:
      return body(std::type_identity<Iq2S<Block>>());
    case Stored::iq3_xxs:
      return body(std::type_identity<Iq3Xxs<Block>>());
    case Stored::iq3_s:
      return body(std::type_identity<Iq3S<Block>>());
    case Stored::iq4_nl:
      return body(std::type_identity<Iq4Nl<Block>>());
    case Stored::iq4_xs:
      return body(std::type_identity<Iq4Xs<Block>>());
    case Stored::mxfp4:
      return body(std::type_identity<Mxfp4<Block>>());
    case Stored::nvfp4:
      return body(std::type_identity<Nvfp4<Block>>());
    case Stored::tq1_0:
      return body(std::type_identity<Tq1_0<Block>>());
    case Stored::tq2_0:
      return body(std::type_identity<Tq2_0<Block>>());
    case Stored::f32:
    case Stored::f16:
    case Stored::bf16:
      break;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headscope::stored
HWY_AFTER_NAMESPACE();

#endif
