"""Compares reference_model.py with results that others computed. Not part of the test run: it says why the expected values
that make_models.py writes can be believed.

    python3 check_reference.py --captures DIR     # DIR/models/NAME, DIR/captures/NAME/*.npz: real models, float64 results
    python3 check_reference.py --transformers     # torch and transformers (float32, eager) on the models checked in here

Last results: captures of four real models, every map, residual, logit, loss and metric: largest difference 5.4e-8 (their float32
rounding); torch 2.2.2 with transformers 4.48.3: 1.0e-6 (its float32 arithmetic).
"""

import argparse
import pathlib

import numpy as np

import reference_model as reference

HERE = pathlib.Path(__file__).parent


def relative(found, expected):
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))


def check_captures(folder):
    worst = 0.0
    for model in sorted((folder / "captures").iterdir()):
        config, weights = reference.read_folder(folder / "models" / model.name)
        for file in sorted(model.glob("*.npz")):
            if file.name.endswith(".stages.npz"):
                continue
            capture = np.load(file)
            ids = capture["ids"]
            sites = reference.forward(config, weights, ids)
            a = reference.patterns(sites)
            layers = a.shape[0]
            differences = {}
            if "attn" in capture:
                differences["attn"] = np.abs(a - capture["attn"]).max()
            else:
                chosen = capture["attn_sel_heads"]
                differences["attn"] = np.abs(a[chosen[:, 0], chosen[:, 1]] - capture["attn_sel"]).max()
            rows = capture["resid_pos"] if "resid_pos" in capture else slice(None)
            stream = [sites["blocks.0.hook_resid_pre"]] + [sites[f"blocks.{i}.hook_resid_post"] for i in range(layers)]
            differences["resid"] = relative(np.stack(stream)[:, rows], capture["resid"])
            differences["logits"] = relative(sites["logits"][-1], capture["logits_last"])
            if len(ids) > 1:
                differences["nll"] = np.abs(reference.losses(sites["logits"], ids) - capture["nll"]).max()
            if len(ids) <= 210:
                metrics = reference.all_head_metrics(a, ids)
                for name, value in metrics.items():
                    theirs = {"previous_token": "prev_token", "self_attention": "self_attn"}.get(name, name)
                    if theirs in capture:
                        differences[name] = np.nan_to_num(np.abs(value - capture[theirs])).max()
            worst = max(worst, *differences.values())
            print(model.name, file.stem, " ".join(f"{k}={v:.1e}" for k, v in differences.items()))
            assert max(differences.values()) < 1e-6, (model.name, file.name)
    print(f"largest difference {worst:.1e}")


def check_transformers():
    import torch
    import transformers

    worst = 0.0
    for folder in sorted(path.parent for path in HERE.glob("*/config.json")):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation="eager", torch_dtype=torch.float32)
        for file in sorted(folder.glob("expected*.safetensors")):
            expected = reference.read_safetensors(file)
            ids = torch.tensor(expected["tokens"][None].astype(np.int64))
            with torch.no_grad():
                out = model(ids, output_attentions=True, output_hidden_states=True)
            differences = {"logits": relative(out.logits[0].numpy(), expected["logits"])}
            for layer, attention in enumerate(out.attentions):
                pattern = expected[f"blocks.{layer}.attn.hook_pattern"]
                differences[f"pattern{layer}"] = np.abs(attention[0].numpy() - pattern).max()
                name = f"blocks.{layer}.hook_resid_pre"
                if name in expected:
                    differences[f"resid{layer}"] = relative(out.hidden_states[layer][0].numpy(), expected[name])
            worst = max(worst, *differences.values())
            print(folder.name, file.stem, " ".join(f"{k}={v:.1e}" for k, v in differences.items()))
            assert max(differences.values()) < 1e-5, (folder.name, file.name)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}: largest difference {worst:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=pathlib.Path)
    parser.add_argument("--transformers", action="store_true")
    options = parser.parse_args()
    if options.captures:
        check_captures(options.captures)
    if options.transformers:
        check_transformers()
