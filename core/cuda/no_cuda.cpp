#include "core/cuda/cuda_backend.h"

namespace headscope {

std::vector<CudaDevice> cuda_devices(bool) {
  return {};
}

std::string why_no_cuda() {
  return "this program was built without CUDA";
}

std::string cuda_versions() {
  return {};
}

std::unique_ptr<Backend> make_cuda_backend(int, int, Precision) {
  throw CardError("device cuda", "a program built with CUDA", "one built without",
                  "cmake --preset cuda && cmake --build --preset cuda, with the CUDA toolkit installed");
}

}  // namespace headscope
