#include "core/hub/file_choice.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/memory.h"
#include "core/base/nearest_names.h"
#include "core/base/words.h"

namespace headscope {

namespace {

/// Small, and read by Headscope or by transformers beside it.
constexpr std::string_view companions[] = {"config.json",
                                           "generation_config.json",
                                           "tokenizer.json",
                                           "tokenizer_config.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "vocab.txt",
                                           "tokenizer.model",
                                           "spiece.model",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "chat_template.jinja",
                                           "chat_template.json",
                                           "tokenizer.bin",
                                           "adapter_config.json",
                                           "preprocessor_config.json",
                                           "source.spm",
                                           "target.spm",
                                           "spm.model"};
constexpr std::string_view tokenizers[] = {"tokenizer.json", "vocab.json", "vocab.txt",    "tokenizer.model",
                                           "spiece.model",   "spm.model",  "tokenizer.bin"};

std::string listed(const std::vector<HubFile>& files) {
  std::string text;
  for (std::size_t i = 0; i < files.size() && i < 12; ++i) {
    text += (i ? ", " : "") + excerpt(files[i].name, 80);
    if (files[i].size) text += " (" + memory_text(static_cast<double>(*files[i].size)) + ")";
  }
  return files.size() > 12 ? fmt::format("{} and {} more", text, files.size() - 12) : text;
}

FileChoice chosen_by(const HubModel& model, const std::vector<std::string>& patterns) {
  FileChoice choice;
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (const HubFile& file : model.files) {
      if (::fnmatch(pattern.c_str(), file.name.c_str(), 0) != 0) continue;
      any = true;
      if (std::ranges::find(choice.files, file.name, &HubFile::name) == choice.files.end())
        choice.files.push_back(file);
    }
    if (any) continue;
    std::vector<std::string> names;
    for (const HubFile& file : model.files) names.push_back(file.name);
    throw Error(model.name, "a file '" + excerpt(pattern, 100) + "'", fmt::format("{} others", names.size()),
                nearest_names_hint(pattern, names));
  }
  return choice;
}

/// A shard of "model.safetensors.index.json": "model-00001-of-00003.safetensors".
bool is_shard(const std::string& name, std::string_view ending) {
  return name.ends_with(ending) && name.find("-of-") != std::string::npos;
}

std::vector<HubFile> weights_of(const HubModel& model, const std::vector<HubFile>& own) {
  const auto with = [&](auto&& fits) {
    std::vector<HubFile> found;
    std::ranges::copy_if(own, std::back_inserter(found), [&](const HubFile& file) { return fits(file.name); });
    return found;
  };
  const auto named = [&](std::string_view name) { return with([&](const std::string& each) { return each == name; }); };
  const auto ending = [&](std::string_view end) {
    return with([&](const std::string& each) { return each.ends_with(end); });
  };
  for (const auto& [whole, index, start, end] :
       {std::tuple("model.safetensors", "model.safetensors.index.json", "model-", ".safetensors"),
        std::tuple("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-", ".bin")}) {
    if (auto found = named(whole); !found.empty()) return found;
    if (auto found = named(index); !found.empty()) {
      const auto shards = with([&](const std::string& each) { return each.starts_with(start) && is_shard(each, end); });
      found.insert(found.end(), shards.begin(), shards.end());
      return found;
    }
    // Mistral's own names are a second copy; an adapter is one of few files and has no other name.
    if (end == std::string_view(".safetensors"))
      if (auto found = with([](const std::string& each) {
            return each.ends_with(".safetensors") && !each.starts_with("consolidated");
          });
          !found.empty())
        return found;
  }
  if (auto found = with([](const std::string& each) { return each.ends_with(".gguf") && !each.starts_with("mmproj"); });
      !found.empty()) {
    if (found.size() > 1)
      throw Error(model.name, "one file of weights", fmt::format("{} GGUF files", found.size()),
                  "name one with --file: " + listed(found));
    return found;
  }
  if (auto found = ending(".pth"); found.size() == 1) return found;
  return {};
}

}  // namespace

FileChoice choose_files(const HubModel& model, const std::vector<std::string>& patterns) {
  if (!patterns.empty()) return chosen_by(model, patterns);
  std::vector<HubFile> own;  // beside config.json, not in folders of other frameworks
  for (const HubFile& file : model.files)
    if (file.name.find('/') == std::string::npos) own.push_back(file);
  const std::vector<HubFile> weights = weights_of(model, own);
  if (weights.empty())
    throw Error(model.name, "weights: *.safetensors, pytorch_model.bin or *.gguf",
                own.empty() ? "no files" : "none among " + listed(own), "name files with --file");
  FileChoice choice;
  for (const HubFile& file : own)
    if (std::ranges::find(companions, file.name) != std::end(companions)) choice.files.push_back(file);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(choice.files, name, &HubFile::name) != choice.files.end();
  };
  if (!weights.front().name.ends_with(".gguf")) {
    if (!has("config.json") && !has("adapter_config.json"))
      choice.remarks.push_back(said("It has no config.json: its shape is not known, and it will not open by itself."));
    else if (std::ranges::none_of(tokenizers, has) && !has("adapter_config.json"))
      choice.remarks.push_back(
          said("It has no tokenizer: to type text, put the tokenizer.json that it was trained with beside its "
               "config.json."));
  }
  choice.files.insert(choice.files.end(), weights.begin(), weights.end());
  return choice;
}

}  // namespace headscope
