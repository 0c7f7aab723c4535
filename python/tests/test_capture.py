"""Weights of transformers models: what kernels do not return is the same as what eager attention returns."""

import copy
import os

import numpy as np
import pytest

import headscope as hs

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=50, max_position_embeddings=64)
IDS = torch.tensor([[3, 7, 7, 1, 9, 4, 3, 7, 2, 8, 8]])


def both(config, kind=None):
    """The same random model twice: eager, and with PyTorch's kernel, in float64."""
    torch.manual_seed(0)
    make = kind or transformers.AutoModelForCausalLM
    models = []
    for how in ("eager", "sdpa"):
        # Of its own configuration: from_config writes the kernel into what it is given.
        model = make.from_config(copy.deepcopy(config), attn_implementation=how).double().eval()
        models.append(model)
    models[1].load_state_dict(models[0].state_dict())
    return models


CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=50, n_positions=64),
    "llama with shared keys": lambda: transformers.LlamaConfig(intermediate_size=48, num_key_value_heads=2, **SMALL),
    "mistral with a window": lambda: transformers.MistralConfig(intermediate_size=48, num_key_value_heads=1, sliding_window=4,
                                                                head_dim=16, **SMALL),
    "qwen3": lambda: transformers.Qwen3Config(intermediate_size=48, num_key_value_heads=2, head_dim=12, **SMALL),
    "bert": lambda: transformers.BertConfig(intermediate_size=48, **SMALL),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_sdpa_is_eager(name):
    kind = transformers.AutoModel if name == "bert" else transformers.AutoModelForCausalLM
    eager, sdpa = both(CONFIGS[name](), kind)
    told = eager(input_ids=IDS, output_attentions=True).attentions
    logits = sdpa(input_ids=IDS)[0]
    a, b = hs.capture(eager, input_ids=IDS), hs.capture(sdpa, input_ids=IDS)
    assert a.attn.shape == b.attn.shape == (2, 4, 11, 11)
    assert np.abs(a.attn - torch.stack(told)[:, 0].detach().numpy()).max() == 0
    assert np.abs(a.attn - b.attn).max() < 1e-6
    assert a.deviation is None and b.deviation < 1e-9
    assert "weights from q and k" in b.source and "weights from" not in a.source
    # The model is as it was, and still runs its own kernel.
    assert (sdpa(input_ids=IDS)[0] == logits).all() and sdpa.config._attn_implementation == "sdpa"
    assert list(b.ids) == IDS[0].tolist()


def test_a_wrong_weight_does_not_go_unnoticed(monkeypatch):
    from headscope import _capture

    _, sdpa = both(CONFIGS["gpt2"]())
    right = _capture._weights
    monkeypatch.setattr(_capture, "_weights", lambda torch, *rest: torch.softmax(3 * right(torch, *rest), -1))
    with pytest.warns(UserWarning, match="give another output than it does"):
        assert hs.capture(sdpa, input_ids=IDS).deviation > 0.05


def test_caps_sinks_windows_and_padding_as_flash_attention_takes_them():
    from headscope._capture import _weights

    torch.manual_seed(1)
    q, k = torch.randn(1, 4, 5, 8, dtype=torch.float64), torch.randn(1, 2, 5, 8, dtype=torch.float64)
    sinks = torch.randn(4, dtype=torch.float64)
    module = torch.nn.Module()
    module.is_causal = True
    found = _weights(torch, module, q, k, torch.tensor([[0, 1, 1, 1, 1]]), "flash_attention_2",
                     dict(scaling=0.5, softcap=2.0, s_aux=sinks, sliding_window=3))
    for h in range(4):
        for i in range(5):
            seen = [j for j in range(1, i + 1) if i - j < 3]
            if not seen:
                assert (found[0, h, i] == 0).all()
                continue
            scores = np.array([2 * np.tanh(float(q[0, h, i] @ k[0, h // 2, j]) * 0.5 / 2) for j in seen])
            total = np.exp(scores).sum() + np.exp(float(sinks[h]))
            assert np.abs(found[0, h, i, seen].numpy() - np.exp(scores) / total).max() < 1e-12


def test_other_kernels_are_recorded_by_name():
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as known

    eager, other = both(CONFIGS["llama with shared keys"]())
    known["kernel_of_a_test"] = known["sdpa"]  # stands for FlashAttention: an output and no weights
    try:
        other.config._attn_implementation = "kernel_of_a_test"
        found = hs.capture(other, input_ids=IDS)
    finally:
        known.pop("kernel_of_a_test", None)
    assert np.abs(found.attn - hs.capture(eager, input_ids=IDS).attn).max() < 1e-6


def test_encoder_and_decoder_give_three(tmp_path):
    small = dict(d_model=32, vocab_size=50, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                 decoder_attention_heads=4, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64)
    eager, sdpa = both(transformers.BartConfig(**small, decoder_start_token_id=2), transformers.AutoModelForSeq2SeqLM)
    written = torch.tensor([[2, 5, 6]])
    a = hs.capture(eager, input_ids=IDS, decoder_input_ids=written)
    b = hs.capture(sdpa, input_ids=IDS, decoder_input_ids=written, path=tmp_path / "x.npz")
    assert {kind: each.attn.shape for kind, each in b.items()} == {
        "encoder": (2, 4, 11, 11), "decoder": (2, 4, 3, 3), "cross": (2, 4, 3, 11)}
    for kind in a:
        assert np.abs(a[kind].attn - b[kind].attn).max() < 1e-6
    assert sorted(os.listdir(tmp_path)) == ["x.cross.npz", "x.decoder.npz", "x.encoder.npz"]
    values = hs.metrics(tmp_path / "x.cross.npz")[3]["values"]
    assert values["max_weight"] == pytest.approx(b["cross"].attn[0, 3].max(-1).mean(), abs=1e-5)
    assert values["mean_distance"] is None


@pytest.mark.parametrize("padded", [False, True])
def test_t5_whose_scores_have_a_bias_by_distance(padded):
    config = transformers.T5Config(d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4, vocab_size=50, decoder_start_token_id=0,
                                   relative_attention_num_buckets=8, relative_attention_max_distance=6)
    eager, sdpa = both(config, transformers.AutoModelForSeq2SeqLM)
    with torch.no_grad():
        for model in (eager, sdpa):
            for name, parameter in model.named_parameters():
                if "relative_attention_bias" in name:  # large enough to be missed
                    parameter.copy_(torch.linspace(-2, 2, parameter.numel()).reshape(parameter.shape))
    inputs = dict(input_ids=IDS, decoder_input_ids=torch.tensor([[0, 5, 6, 9]]))
    if padded:
        inputs["attention_mask"] = torch.tensor([[1] * 8 + [0] * 3])
    a, b = hs.capture(eager, **inputs), hs.capture(sdpa, **inputs)
    assert {kind: each.attn.shape for kind, each in b.items()} == {
        "encoder": (2, 4, 11, 11), "decoder": (2, 4, 4, 4), "cross": (2, 4, 4, 11)}
    for kind in a:
        assert np.abs(a[kind].attn - b[kind].attn).max() < 1e-6, kind
        assert b[kind].deviation is None or b[kind].deviation < 1e-9
    assert np.allclose(b["cross"].attn.sum(-1), 1, atol=1e-5)


def test_a_picture_has_grid_and_pixels(tmp_path):
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32, image_size=24,
                                    patch_size=8)
    eager, sdpa = both(config, transformers.AutoModel)
    pixels = torch.linspace(-1, 1, 3 * 24 * 24, dtype=torch.float64).reshape(1, 3, 24, 24)

    class Processor:  # what of it is asked
        image_mean, image_std = [0.5] * 3, [0.5] * 3

    found = hs.capture(sdpa, Processor(), pixel_values=pixels, path=tmp_path / "vit.npz")
    assert found.attn.shape == (2, 4, 10, 10) and found.grid == (3, 3, 1)
    assert np.abs(found.attn - hs.capture(eager, pixel_values=pixels).attn).max() < 1e-6
    assert found.image.shape == (24, 24, 3)
    assert found.image[0, 0, 0] == 0 and found.image[-1, -1, 2] == 255
    assert found.tokens[:2] == ["CLS", "0,0"]
    assert 'id="patch.2.2"' in hs.patches(tmp_path / "vit.npz", "1.3").svg


def test_tokens_keep_their_spaces():
    tokenizers = pytest.importorskip("tokenizers")
    words = ["<pad>", "<s>", "When", "ĠMary", "Ġand", "ĠJohn"]
    made = tokenizers.Tokenizer(tokenizers.models.BPE({w: i for i, w in enumerate(words)}, [], unk_token=None))
    made.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", pad_token="<pad>")
    from headscope._capture import _tokens

    assert _tokens(fast, torch.tensor([[1, 2, 3, 4]])) == ["<s>", "When", " Mary", " and"]
    assert _tokens(None, torch.tensor([[5]])) == ["#5"]


def test_what_cannot_be_captured_is_refused_by_name():
    _, model = both(CONFIGS["gpt2"]())
    with pytest.raises(ValueError, match="input_ids: expected one text, a batch axis of 1, found 2"):
        hs.capture(model, input_ids=IDS.repeat(2, 1))
    with pytest.raises(ValueError, match="expected one of text, image and tensors"):
        hs.capture(model)
    with pytest.raises(ValueError, match="expected a tokenizer"):
        hs.capture(model, None, "text")


def test_heads_of_a_tensor_parallel_job_are_put_together(monkeypatch):
    from headscope import _capture

    class Distributed:  # two ranks, of which the other computed twice as much
        is_available = is_initialized = staticmethod(lambda: True)
        get_world_size = staticmethod(lambda: 2)

        @staticmethod
        def all_gather(parts, mine):
            parts[0].copy_(mine)
            parts[1].copy_(2 * mine)

    class Torch:
        distributed, empty_like, cat = Distributed, torch.empty_like, torch.cat

    class Config:
        num_attention_heads = 4

    mine = torch.rand(2, 3, 3)
    assert (_capture._all_heads(Torch, mine, Config) == torch.cat([mine, 2 * mine])).all()
    Config.num_attention_heads = 2  # each rank has all
    assert _capture._all_heads(Torch, mine, Config) is mine
