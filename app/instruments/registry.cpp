// The list of instruments. Each is a file of its own; here stands what it is called and where it is made.

#include "app/instruments/instrument.h"

namespace headscope {

std::unique_ptr<Instrument> make_head_ablation(Explorer&);
std::unique_ptr<Instrument> make_activation_patching(Explorer&);
std::unique_ptr<Instrument> make_head_circuit(Explorer&);
std::unique_ptr<Instrument> make_temperature_sweep(Explorer&);
std::unique_ptr<Instrument> make_detector(Explorer&);
std::unique_ptr<Instrument> make_masks(Explorer&);
std::unique_ptr<Instrument> make_key_sharing(Explorer&);

const std::vector<InstrumentEntry>& instrument_registry() {
  static const std::vector<InstrumentEntry> all = {
      {{"ablate", "Head ablation", "Cause and effect", "Michel et al. 2019",
        "Which heads does this text need? Every head is taken out in turn, and the prediction is compared with the "
        "whole model's.",
        "knock out remove heads effect atlas zero mean resample importance J7"},
       make_head_ablation},
      {{"patch", "Activation patching", "Cause and effect", "Meng et al. 2022",
        "Where does the answer come from? The model reads a corrupted prompt; one activation at a time is taken from a "
        "clean one.",
        "causal tracing mediation layer position resid attention MLP z q k v pattern clean corrupted"},
       make_activation_patching},
      {{"circuit", "Smallest circuit", "Cause and effect", "Wang et al. 2022",
        "How few heads are enough for the answer? Heads go one by one, each time the one that is missed least.",
        "minimal set of heads faithfulness greedy prune knock out"},
       make_head_circuit},
      {{"temperature", "Temperature sweep", "Cause and effect", "",
        "How sharp does each head have to look? Entropy and loss against the softmax temperature.",
        "tau softmax entropy loss sharpness"},
       make_temperature_sweep},
      {{"detector", "Detector", "Patterns", "",
        "Which heads look where you say? A rule or painted cells; every head ranked by its attention there, beside "
        "chance.",
        "rule user-defined class paint pattern match rank previous token induction duplicate"},
       make_detector},
      {{"masks", "Masks", "Sparse attention", "",
        "Who may see whom? Masks are chosen, joined by and, or, not, and painted by hand; numbers say what they save, "
        "the model what they cost.",
        "sparse bidirectional full causal padding random MLM prefix-LM sliding window local dilated atrous strided "
        "Sparse Transformer Longformer BigBird Reformer LSH dual chunk document sink StreamingLLM painted B1 B15"},
       make_masks},
      {{"sharing", "Shared keys and values", "Heads share K, V", "Ainslie et al. 2023; DeepSeek-V2 2024",
        "What would fewer keys and values cost this model, and what would its cache save? Heads are pooled into "
        "groups, "
        "or all read from one latent.",
        "MHA MQA GQA MLA latent KV cache size multi-query grouped-query multi-head C1 C5"},
       make_key_sharing},
  };
  return all;
}

}  // namespace headscope
