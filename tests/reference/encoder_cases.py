"""Of make_families.py: the encoders, asked for masked tokens; by the second of two texts too, where they have segments."""

encoder = dict(vocab_size=43, num_hidden_layers=2, max_position_embeddings=40, hidden_size=18, num_attention_heads=3,
               intermediate_size=22, pad_token_id=0)

# name → (config class, settings)
ENCODERS = {
    "bert": ("BertConfig", encoder | dict(type_vocab_size=3, num_hidden_layers=3, hidden_act="gelu_new")),
    "bert-untied": ("BertConfig", encoder | dict(hidden_act="relu", tie_word_embeddings=False, layer_norm_eps=0.01)),
    "distilbert": ("DistilBertConfig", dict(
        vocab_size=43, n_layers=3, dim=18, n_heads=3, hidden_dim=22, max_position_embeddings=40, pad_token_id=0,
        sinusoidal_pos_embds=True)),
    "roberta": ("RobertaConfig", encoder | dict(pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1)),
    "xlm_roberta": ("XLMRobertaConfig", encoder | dict(
        pad_token_id=4, bos_token_id=0, eos_token_id=2, type_vocab_size=2, hidden_act="silu")),
    "modernbert": ("ModernBertConfig", encoder | dict(
        num_hidden_layers=4, hidden_size=24, local_attention=6, global_attn_every_n_layers=3, norm_eps=1e-4,
        bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=300.0),
            sliding_attention=dict(rope_type="default", rope_theta=40.0)))),
    "modernbert-biased": ("ModernBertConfig", encoder | dict(
        num_hidden_layers=3, hidden_size=24, local_attention=4, global_attn_every_n_layers=2, norm_bias=True,
        attention_bias=True, mlp_bias=True, classifier_bias=True, decoder_bias=False, classifier_activation="silu",
        hidden_activation="relu", bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
        tie_word_embeddings=False, rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=300.0),
            sliding_attention=dict(rope_type="default", rope_theta=300.0)))),
}
