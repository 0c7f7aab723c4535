"""What stands in place of attention in hybrid models, by the functions of `transformers` in float64: a gated delta rule
(Qwen3-Next) and the short convolution of LFM2.

    python tests/reference/make_mixers.py      # needs torch and transformers

Writes tests/reference/mixers: what each is given, what it puts out, and the matrix that this amounts to (what comes out of
unit vectors in place of the values).
"""

import pathlib
import types

import torch
from make_families import in_doubles
from reference_model import write_safetensors
from transformers.models.lfm2 import modeling_lfm2
from transformers.models.qwen3_next import modeling_qwen3_next

HERE = pathlib.Path(__file__).parent / "mixers"
f4 = lambda tensor: tensor.detach().contiguous().numpy().astype("<f4")


def gated_delta():
    in_doubles(modeling_qwen3_next)
    torch.manual_seed(3)
    n, keys, heads, k, v = 37, 2, 4, 5, 3
    given = dict(query=torch.randn(n, keys, k), key=torch.randn(n, keys, k), value=torch.randn(n, heads, v),
                 a=torch.randn(n, heads), b=torch.randn(n, heads), A_log=torch.randn(heads), dt_bias=torch.randn(heads))
    given = {name: x.float().double() for name, x in given.items()}
    decay = -given["A_log"].exp() * torch.nn.functional.softplus(given["a"] + given["dt_bias"])
    rule = lambda values: modeling_qwen3_next.torch_recurrent_gated_delta_rule(
        given["query"][None], given["key"][None], values[None], g=decay[None], beta=given["b"].sigmoid()[None],
        output_final_state=True, use_qk_l2norm_in_kernel=True)
    output, state = rule(given["value"])
    units = torch.eye(n)[:, None].expand(n, heads, n)
    pattern = rule(units)[0][0].transpose(0, 1)  # (head, query, key)
    assert (torch.einsum("hts,shp->thp", pattern, given["value"]) - output[0]).abs().max() < 1e-12
    found = given | dict(output=output[0], state=state[0], pattern=pattern)
    write_safetensors(HERE / "gated_delta.safetensors", {name: f4(x) for name, x in found.items()})


def short_convolution():
    torch.manual_seed(4)
    n, channels, taps = 19, 6, 3
    config = types.SimpleNamespace(conv_L_cache=taps, conv_bias=True, hidden_size=channels, layer_types=["conv"])
    layer = modeling_lfm2.Lfm2ShortConv(config, 0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape).float())
        layer.out_proj.weight.copy_(torch.eye(channels))
        layer.out_proj.bias.zero_()
        x = torch.randn(1, n, channels).float().double()
        b, c, inner = layer.in_proj(x)[0].chunk(3, dim=-1)
        found = dict(b=b, c=c, x=inner, weight=layer.conv.weight[:, 0], bias=layer.conv.bias, output=layer(x)[0])
    write_safetensors(HERE / "short_convolution.safetensors", {name: f4(x) for name, x in found.items()})


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    HERE.mkdir(exist_ok=True)
    gated_delta()
    short_convolution()
