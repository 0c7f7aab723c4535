"""Of make_families.py: encoders that were made after those of encoder_cases.py, and the names that their files have."""

import numpy as np
from encoder_cases import encoder

ends = dict(pad_token_id=1, bos_token_id=0, eos_token_id=2)

# name → (config class, settings)
MORE_ENCODERS = {
    "camembert": ("CamembertConfig", encoder | ends | dict(type_vocab_size=1)),
    # Its files hold buffers of integers, which this model does not look at.
    "ibert": ("IBertConfig", encoder | ends | dict(type_vocab_size=2, layer_norm_eps=0.01)),
    # The half that reads text.
    "modernvbert": ("ModernVBertConfig", dict(
        image_token_id=42, pixel_shuffle_factor=1, vision_config=dict(
            model_type="siglip_vision_model", hidden_size=6, intermediate_size=5, num_hidden_layers=1, num_attention_heads=1,
            image_size=4, patch_size=4, vision_use_head=False),
        text_config=encoder | dict(
            model_type="modernbert", num_hidden_layers=3, hidden_size=24, local_attention=4, global_attn_every_n_layers=2,
            decoder_bias=True, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
            rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=300.0),
                                 sliding_attention=dict(rope_type="default", rope_theta=40.0))))),
    "data2vec_text": ("Data2VecTextConfig", encoder | ends | dict(pad_token_id=2, type_vocab_size=2, hidden_act="relu")),
    "roberta_prelayernorm": ("RobertaPreLayerNormConfig", encoder | ends | dict(type_vocab_size=2, hidden_act="gelu_new")),
    "xlm_roberta_xl": ("XLMRobertaXLConfig", encoder | ends | dict(
        num_hidden_layers=3, type_vocab_size=2, layer_norm_eps=0.01, hidden_act="silu")),
    # Embeddings narrower than the stream, wider, and as wide; the head has GELU, whatever the blocks have.
    "electra": ("ElectraConfig", encoder | dict(embedding_size=10, type_vocab_size=3, hidden_act="silu")),
    "electra-wide": ("ElectraConfig", encoder | dict(embedding_size=26, hidden_act="relu", tie_word_embeddings=False)),
    "electra-same": ("ElectraConfig", encoder | dict(embedding_size=18, hidden_act="gelu_new", layer_norm_eps=0.01)),
    # What goes in is narrower than the stream and what comes out wider, and the other way round.
    "rembert": ("RemBertConfig", encoder | dict(
        input_embedding_size=7, output_embedding_size=25, num_hidden_layers=3, type_vocab_size=3, hidden_act="gelu_new",
        layer_norm_eps=0.01, bos_token_id=2, eos_token_id=3)),
    "rembert-out": ("RemBertConfig", encoder | dict(
        input_embedding_size=23, output_embedding_size=11, hidden_act="relu", bos_token_id=2, eos_token_id=3)),
    # Three layers of two blocks: the first two are one. (Of many that are one, tokens end up alike.)
    "albert": ("AlbertConfig", encoder | dict(
        embedding_size=7, num_hidden_layers=3, num_hidden_groups=2, type_vocab_size=3, bos_token_id=2, eos_token_id=3)),
    "albert-one": ("AlbertConfig", encoder | dict(
        embedding_size=18, num_hidden_layers=3, hidden_act="relu", layer_norm_eps=0.01, tie_word_embeddings=False,
        bos_token_id=2, eos_token_id=3)),
    "mpnet": ("MPNetConfig", encoder | ends | dict(num_hidden_layers=3, hidden_act="gelu_new")),
    "ernie": ("ErnieConfig", encoder | dict(use_task_id=True, task_type_vocab_size=4, type_vocab_size=3, hidden_act="relu")),
    "nomic_bert": ("NomicBertConfig", encoder | dict(
        hidden_size=24, type_vocab_size=2, hidden_act="silu", layer_norm_eps=0.001,
        rope_parameters=dict(rope_type="default", rope_theta=50.0))),
    # As its makers' own code writes config.json (below).
    "nomic_bert-published": ("NomicBertConfig", encoder | dict(
        hidden_size=24, type_vocab_size=2, hidden_act="silu", layer_norm_eps=0.001, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=70.0))),
    "roformer": ("RoFormerConfig", encoder | dict(
        embedding_size=10, hidden_size=24, type_vocab_size=3, hidden_act="gelu_new")),
    "roformer-same": ("RoFormerConfig", encoder | dict(
        embedding_size=24, hidden_size=24, num_hidden_layers=3, layer_norm_eps=0.01, tie_word_embeddings=False)),
    "megatron_bert": ("MegatronBertConfig", encoder | dict(num_hidden_layers=3, type_vocab_size=3, hidden_act="relu")),
    "eurobert": ("EuroBertConfig", encoder | dict(
        num_key_value_heads=1, bos_token_id=1, eos_token_id=2, mask_token_id=3,
        rope_parameters=dict(rope_type="default", rope_theta=50.0))),
    "eurobert-biased": ("EuroBertConfig", encoder | dict(
        head_dim=8, num_key_value_heads=3, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, rms_norm_eps=0.01,
        bos_token_id=1, eos_token_id=2, mask_token_id=3, rope_parameters=dict(rope_type="default", rope_theta=80.0))),
    # The text has two tokens that were dropped (17), and one (33).
    "esm": ("EsmConfig", encoder | dict(
        hidden_size=24, position_embedding_type="rotary", token_dropout=True, mask_token_id=17, pad_token_id=1,
        layer_norm_eps=0.05, num_hidden_layers=3, rope_theta=70.0)),
    "esm-learned": ("EsmConfig", encoder | dict(
        position_embedding_type="absolute", token_dropout=True, mask_token_id=33, pad_token_id=1,
        emb_layer_norm_before=True, tie_word_embeddings=False)),
    "longformer": ("LongformerConfig", encoder | ends | dict(
        num_hidden_layers=3, attention_window=[4, 8, 4], type_vocab_size=2, hidden_act="relu", layer_norm_eps=0.01)),
    # Three distances on either side have vectors of their own, farther ones share; positions in the embeddings, too.
    "deberta": ("DebertaConfig", encoder | dict(
        hidden_size=24, num_hidden_layers=3, relative_attention=True, max_relative_positions=9, pos_att_type="p2c|c2p",
        type_vocab_size=3, position_biased_input=True, hidden_act="gelu_new", layer_norm_eps=0.01)),
    "deberta-published": ("DebertaConfig", encoder | dict(
        relative_attention=True, pos_att_type=["c2p"], position_biased_input=False, legacy=False)),
    "deberta_v2": ("DebertaV2Config", encoder | dict(
        num_hidden_layers=3, relative_attention=True, max_relative_positions=20, position_buckets=8, share_att_key=True,
        norm_rel_ebd="layer_norm", pos_att_type="p2c|c2p", position_biased_input=False, legacy=False)),
    "deberta_v2-apart": ("DebertaV2Config", encoder | dict(
        hidden_size=24, relative_attention=True, position_buckets=6, pos_att_type=["p2c", "c2p"], type_vocab_size=2,
        position_biased_input=True, tie_word_embeddings=False, hidden_act="relu", layer_norm_eps=0.01)),
    "deberta_v2-one": ("DebertaV2Config", encoder | dict(
        relative_attention=True, max_relative_positions=7, pos_att_type="p2c", position_biased_input=False)),
    # A convolution beside the first block, over five tokens in three groups.
    "deberta_v2-convolution": ("DebertaV2Config", encoder | dict(
        relative_attention=True, max_relative_positions=20, position_buckets=8, share_att_key=True, type_vocab_size=2,
        norm_rel_ebd="layer_norm", pos_att_type="p2c|c2p", position_biased_input=False, conv_kernel_size=5, conv_groups=3,
        conv_act="gelu_new", layer_norm_eps=0.01)),
    # Its activation as a file that does not say it has it: tanh.
    "deberta_v2-tanh": ("DebertaV2Config", encoder | dict(
        relative_attention=True, max_relative_positions=7, pos_att_type="c2p|p2c", position_biased_input=False,
        conv_kernel_size=3, layer_norm_eps=0.01)),
    # As transformers and as its makers write it, with NTK-aware rotation: s = 3 of base 40.
    "gte": ("GteConfig", encoder | dict(
        hidden_size=24, type_vocab_size=3, layer_norm_eps=0.01, hidden_act="silu",
        rope_parameters=dict(rope_type="default", rope_theta=60.0))),
    "new": ("GteConfig", encoder | dict(
        hidden_size=24, type_vocab_size=0, num_hidden_layers=3,
        rope_parameters=dict(rope_type="linear", rope_theta=120.0, factor=3 ** (2 / 8)))),
    "jina_embeddings_v3": ("JinaEmbeddingsV3Config", encoder | dict(
        hidden_size=24, num_hidden_layers=3, type_vocab_size=3, hidden_act="relu", layer_norm_eps=0.01,
        rope_parameters=dict(rope_type="default", rope_theta=30.0))),
    "layoutlm": ("LayoutLMConfig", encoder | dict(max_2d_position_embeddings=5, type_vocab_size=3, hidden_act="gelu_new")),
    "luke": ("LukeConfig", encoder | ends | dict(
        entity_vocab_size=5, entity_emb_size=6, type_vocab_size=2, hidden_act="relu", tie_word_embeddings=False)),
    "big_bird": ("BigBirdConfig", encoder | dict(
        attention_type="original_full", use_bias=False, rescale_embeddings=True, type_vocab_size=3, bos_token_id=1,
        eos_token_id=2, sep_token_id=3)),
    # Texts of up to 33 tokens are seen whole.
    "big_bird-sparse": ("BigBirdConfig", encoder | dict(
        block_size=3, num_random_blocks=3, num_hidden_layers=3, layer_norm_eps=0.01, bos_token_id=1, eos_token_id=2,
        sep_token_id=3)),
    "squeezebert": ("SqueezeBertConfig", encoder | dict(
        hidden_size=24, embedding_size=24, intermediate_size=36, q_groups=4, k_groups=2, v_groups=3, post_attention_groups=2,
        intermediate_groups=6, output_groups=3, type_vocab_size=3, hidden_act="gelu_new")),
    # One of the few here that writes.
    "bert_generation": ("BertGenerationConfig", encoder | dict(is_decoder=True, hidden_act="relu", layer_norm_eps=0.01)),
    "esm-undropped": ("EsmConfig", encoder | dict(
        hidden_size=18, position_embedding_type="rotary", token_dropout=False, mask_token_id=17, pad_token_id=1)),
}

NOMIC = {".layers.": ".encoder.layers.", "embeddings.LayerNorm": "emb_ln", "self_attn.o_proj": "attn.out_proj",
         "up_proj": "fc11", "gate_proj": "fc12", "down_proj": "fc2", "post_attention_layernorm": "norm1",
         "post_mlp_layernorm": "norm2"}


def as_published(name, weights):
    """The tensors under the names that files of this family have, where the library of today has others."""
    if name == "camembert":  # the library lists what is tied under the other of its names
        return {key.replace("lm_head.decoder", "roberta.embeddings.word_embeddings"): value for key, value in weights.items()}
    if name == "new":
        return as_new(weights)
    if name == "jina_embeddings_v3":
        return as_jina(weights)
    if not name.startswith("nomic_bert"):
        return weights
    out = {}
    for key, value in weights.items():
        for today, then in NOMIC.items():
            key = key.replace(today, then)
        if ".self_attn." not in key:
            out[key] = value
    for key in weights:
        if key.endswith("self_attn.q_proj.weight"):
            at = key.removesuffix("q_proj.weight")
            own = at.replace(".layers.", ".encoder.layers.").replace("self_attn.", "attn.Wqkv.weight")
            out[own] = np.concatenate([weights[f"{at}{part}_proj.weight"] for part in "qkv"])
    return out


NEW = {"gte.": "new.", "layers.": "encoder.layer.", "self_attn.o_proj": "attention.o_proj", "lm_head.layer_norm": "lm_head.norm",
       "post_attention_layernorm": "attn_ln", "post_mlp_layernorm": "mlp_ln"}


def as_new(weights):
    out = {}
    for key, value in weights.items():
        at, joined = key, None
        if key.endswith(("q_proj.weight", "q_proj.bias")):
            joined = [weights[key.replace("q_proj", part + "_proj")] for part in "qkv"]
            at = key.replace("self_attn.q_proj", "attention.qkv_proj")
        elif key.endswith("up_proj.weight"):
            joined = [value, weights[key.replace("up_proj", "gate_proj")]]
            at = key.replace("up_proj", "up_gate_proj")
        elif any(part in key for part in ("k_proj", "v_proj", "gate_proj")):
            continue
        for today, then in NEW.items():
            at = at.replace(today, then)
        out[at] = value if joined is None else np.concatenate(joined)
    return out


JINA = {"lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "embeddings.LayerNorm": "emb_ln", "roberta.layers": "roberta.encoder.layers", "self_attn.o_proj": "mixer.out_proj",
        "post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"}


def as_jina(weights):
    out = {}
    for key, value in weights.items():
        at = key.replace("self_attn.q_proj", "mixer.Wqkv")
        if any(part in key for part in ("self_attn.k_proj", "self_attn.v_proj")):
            continue
        for today, then in JINA.items():
            at = at.replace(today, then)
        parts = [weights[key.replace("q_proj", part + "_proj")] for part in "qkv"]
        out[at] = np.concatenate(parts) if at != key and "Wqkv" in at else value
    return out


def as_configured(name, config):
    """config.json as the makers of the family write it, where that is another than the library's."""
    if name == "deberta":
        return config | dict(pos_att_type="p2c|c2p")
    if name == "bert_generation":
        return config | dict(architectures=["BertGenerationDecoder"])
    if name == "new":
        rope = config.pop("rope_parameters")
        assert rope["rope_type"] == "linear"
        return config | dict(
            model_type="new", architectures=["NewForMaskedLM"], rope_theta=40.0, rope_scaling=dict(type="ntk", factor=3.0),
            position_embedding_type="rope", layer_norm_type="layer_norm", pack_qkv=True, unpad_inputs=False,
            logn_attention_scale=False, logn_attention_clip1=False, use_memory_efficient_attention=False)
    if name != "nomic_bert-published":
        return config
    own = dict(n_embd="hidden_size", n_head="num_attention_heads", n_layer="num_hidden_layers", n_inner="intermediate_size",
               n_positions="max_position_embeddings", layer_norm_epsilon="layer_norm_eps", vocab_size="vocab_size",
               type_vocab_size="type_vocab_size", model_type="model_type", tie_word_embeddings="tie_word_embeddings")
    return {theirs: config[ours] for theirs, ours in own.items()} | dict(
        activation_function="swiglu", causal=False, prenorm=False, parallel_block=False, use_rms_norm=False,
        qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False, rotary_emb_base=70, rotary_emb_fraction=1.0,
        rotary_emb_interleaved=False, rotary_emb_scale_base=None, rotary_scaling_factor=None, scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False)
