#include "core/run/cross_pass.h"

namespace headscope {

namespace {
EditScene cross_scene(const EditScene& decoder, const ModelDims& dims, const Trace& encoder) {
  EditScene scene = decoder;
  scene.dims = dims;
  for (auto& [text, trace] : scene.sources) trace = trace->cross;
  scene.model = nullptr;  // its weights and positions are not those of cross-attention
  scene.stack = Stack::cross;
  scene.source_ids = encoder.ids();
  return scene;
}

std::vector<Tap*> both(InterventionTap& edits, Tap* recorder) {
  std::vector<Tap*> taps;
  if (!edits.empty()) taps.push_back(&edits);
  if (recorder) taps.push_back(recorder);
  return taps;
}
}  // namespace

CrossPass::CrossPass(const std::vector<Intervention>& edits, const EditScene& scene, const ModelDims& dims,
                     const Encoded& encoded, Tap* recorder)
    : scene_(cross_scene(scene, dims, *encoded.trace)), edits_(edits, scene_), chain_(both(edits_, recorder)) {
  source.memory = encoded.memory;
  source.tap = &chain_;
}

}  // namespace headscope
