#pragma once
// Which hub of models is asked, and as whom: what the environment says, in the words of huggingface_hub.

#include <filesystem>
#include <string>

namespace headscope {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  ///< HF_ENDPOINT; without a slash at its end
  /// HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or what the file HF_TOKEN_PATH holds (usually HF_HOME/token); "" = none. Goes to
  /// the endpoint alone, and into no message.
  std::string token;
  bool offline = false;         ///< HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set
  std::filesystem::path cache;  ///< the first of cache_folders() (core/io/model_location.h); empty when there is none

  /// Throws Error for an endpoint that is no address, or a token that cannot be sent.
  static HubSettings from_environment();
  /// Throws Error when the network may not be used.
  void need_network(const std::string& model) const;
  /// The endpoint's host, for people.
  std::string host() const;
};

}  // namespace headscope
