// The list of instruments. Each is a file of its own; here stands what it is called and where it is made.

#include "app/instruments/instrument.h"

namespace headscope {

std::unique_ptr<Instrument> make_head_ablation(Explorer&);
std::unique_ptr<Instrument> make_activation_patching(Explorer&);
std::unique_ptr<Instrument> make_head_circuit(Explorer&);
std::unique_ptr<Instrument> make_temperature_sweep(Explorer&);
std::unique_ptr<Instrument> make_detector(Explorer&);

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
  };
  return all;
}

}  // namespace headscope
