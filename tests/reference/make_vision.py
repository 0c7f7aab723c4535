"""A tiny random vision transformer of every family, what it computes, and pictures in the size that it reads.

    python tests/reference/make_vision.py [name …]      # needs torch, transformers and Pillow

Writes tests/reference/vision/NAME: config.json, preprocessor_config.json, model.safetensors (float32, every weight
drawn) and expected.safetensors: the picture tests/reference/vision/picture.png in the model's size (`image`, by Pillow),
its patches, patterns, the stream behind the blocks and class scores by `transformers` in float64. Sizes are odd on
purpose: grids of 3 × 3 and of 3 × 4, two classes and five, a head width that is no power of two.
"""

import json
import pathlib
import struct
import sys
import tempfile
import zlib

import numpy as np
import safetensors.numpy
import torch
import transformers
from make_families import drawn, in_doubles
from PIL import Image
from reference_model import write_safetensors

HERE = pathlib.Path(__file__).parent / "vision"
FILTERS = {2: Image.Resampling.BILINEAR, 3: Image.Resampling.BICUBIC, 0: Image.Resampling.NEAREST}

usual = dict(hidden_size=18, num_hidden_layers=2, num_attention_heads=3, intermediate_size=22, patch_size=4, image_size=12)
scaled = {key: value for key, value in usual.items() if key != "intermediate_size"}
plain = dict(do_resize=True, size=dict(height=12, width=12), resample=2, do_rescale=True, rescale_factor=1 / 255,
             do_normalize=True, image_mean=[0.5, 0.5, 0.5], image_std=[0.5, 0.5, 0.5])
names = lambda *all: dict(id2label={i: name for i, name in enumerate(all)}, label2id={name: i for i, name in enumerate(all)})

# name → (config class, model class, settings, preprocessor_config.json)
MODELS = {
    "vit": ("ViTConfig", "ViTForImageClassification", usual | names("tabby, tabby cat", "lighthouse", "bee", "boat", "tree"), plain),
    "vit-wide": ("ViTConfig", "ViTForImageClassification", usual | names("day", "night") | dict(
        image_size=(12, 16), qkv_bias=False, hidden_act="gelu_new", num_hidden_layers=3),
        plain | dict(size=dict(height=12, width=16), resample=3, image_mean=[0.1, 0.2, 0.3], image_std=[0.4, 0.5, 0.7])),
    "vit-bare": ("ViTConfig", "ViTModel", usual, plain),
    "deit": ("DeiTConfig", "DeiTForImageClassification", usual | names("left", "right", "up"),
             plain | dict(size=dict(height=14, width=14), do_center_crop=True, crop_size=dict(height=12, width=12), resample=3)),
    "deit-teacher": ("DeiTConfig", "DeiTForImageClassificationWithTeacher", usual | names("left", "right", "up"),
                     plain | dict(resample=0)),
    "clip_vision_model": ("CLIPVisionConfig", "CLIPVisionModel", usual, plain | dict(
        size=dict(shortest_edge=12), do_center_crop=True, crop_size=dict(height=12, width=12), resample=3)),
    "metaclip_2_vision_model": ("MetaClip2VisionConfig", "MetaClip2VisionModel", usual | dict(
        hidden_act="gelu", num_hidden_layers=3), plain | dict(
        size=dict(shortest_edge=12), do_center_crop=True, crop_size=dict(height=12, width=12), resample=3)),
    "dinov2": ("Dinov2Config", "Dinov2Model", scaled | dict(mlp_ratio=2), plain | dict(
        size=dict(shortest_edge=14), do_center_crop=True, crop_size=dict(height=12, width=12), resample=3)),
    # Positions of 5 × 5 patches, read for 3 × 4.
    "dinov2-interpolated": ("Dinov2Config", "Dinov2Model", scaled | dict(
        image_size=20, mlp_ratio=3, use_swiglu_ffn=True, qkv_bias=False, use_mask_token=False), plain | dict(
        size=dict(shortest_edge=16), do_center_crop=True, crop_size=dict(height=12, width=16), resample=3)),
    "dinov2_with_registers": ("Dinov2WithRegistersConfig", "Dinov2WithRegistersModel", scaled | dict(
        mlp_ratio=2, num_register_tokens=3), plain | dict(
        size=dict(shortest_edge=14), do_center_crop=True, crop_size=dict(height=12, width=12), resample=3)),
    # Positions of 8 × 8 patches, read for 3 × 4, and of 2 × 2.
    "dinov2_with_registers-interpolated": ("Dinov2WithRegistersConfig", "Dinov2WithRegistersModel", scaled | dict(
        image_size=32, mlp_ratio=3, use_swiglu_ffn=True, num_register_tokens=2), plain | dict(
        size=dict(shortest_edge=16), do_center_crop=True, crop_size=dict(height=12, width=16), resample=3)),
    "dinov2_with_registers-larger": ("Dinov2WithRegistersConfig", "Dinov2WithRegistersModel", scaled | dict(
        image_size=8, mlp_ratio=2, num_register_tokens=1, qkv_bias=False), plain | dict(
        size=dict(shortest_edge=16), do_center_crop=True, crop_size=dict(height=12, width=16), resample=3)),
    "dinov3_vit": ("DINOv3ViTConfig", "DINOv3ViTModel", usual | dict(
        hidden_size=24, image_size=(12, 16), num_register_tokens=2, rope_theta=30.0), plain | dict(size=dict(height=12, width=16))),
    "dinov3_vit-gated": ("DINOv3ViTConfig", "DINOv3ViTModel", usual | dict(
        hidden_size=16, num_attention_heads=4, num_register_tokens=1, use_gated_mlp=True, hidden_act="silu", key_bias=True,
        query_bias=False, proj_bias=False, mlp_bias=False), plain),
    # The whole picture, its patches in their order.
    "vit_mae": ("ViTMAEConfig", "ViTMAEModel", usual | dict(mask_ratio=0.0, layer_norm_eps=1e-3), plain),
    "ijepa": ("IJepaConfig", "IJepaModel", usual | dict(image_size=(12, 16)), plain | dict(size=dict(height=12, width=16))),
    "siglip_vision_model": ("SiglipVisionConfig", "SiglipVisionModel", usual, plain | dict(resample=3)),
    "vit_msn": ("ViTMSNConfig", "ViTMSNForImageClassification", usual | names("one", "two", "three") | dict(hidden_act="relu"), plain),
    "vit_msn-bare": ("ViTMSNConfig", "ViTMSNModel", usual | dict(qkv_bias=False), plain),
    # Several CLS tokens; positions of 5 × 5 patches, read for 3 × 4.
    "pixio": ("PixioConfig", "PixioModel", scaled | dict(mlp_ratio=2, n_cls_tokens=3), plain | dict(resample=3)),
    "pixio-interpolated": ("PixioConfig", "PixioModel", scaled | dict(
        image_size=20, mlp_ratio=1, n_cls_tokens=2, qkv_bias=False), plain | dict(size=dict(height=12, width=16))),
    # Ways from patch to patch, of every layer and of all; classes read at CLS; neither ways nor scales.
    "beit": ("BeitConfig", "BeitModel", usual | dict(
        use_relative_position_bias=True, layer_norm_eps=1e-3), plain | dict(resample=3)),
    "beit-shared": ("BeitConfig", "BeitForImageClassification", usual | names("up", "down", "left", "right") | dict(
        use_shared_relative_position_bias=True, use_mean_pooling=False, use_absolute_position_embeddings=True,
        use_mask_token=True, patch_size=3, hidden_act="gelu_new", layer_scale_init_value=0.0), plain),
    "data2vec_vision": ("Data2VecVisionConfig", "Data2VecVisionModel", usual | dict(
        use_shared_relative_position_bias=True, num_hidden_layers=3), plain),
    # Three pixels on the right and at the bottom belong to no patch.
    "siglip_vision_model-rest": ("SiglipVisionConfig", "SiglipVisionModel", usual | dict(image_size=15),
                                 plain | dict(size=dict(height=15, width=15), resample=3)),
}


def picture():
    """Waves, an edge and noise: 37 × 29 pixels, none of them alike."""
    y, x = np.mgrid[0:29, 0:37]
    noise = np.random.default_rng(3).integers(0, 60, (29, 37, 3))
    rgb = np.stack([120 + 60 * np.sin(x / 5), 3 * x + 2 * y, np.where(x + y > 30, 190, 20)], axis=-1) + noise
    return Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8))


def prepared(image, how):
    size, crop = how["size"], how.get("crop_size")
    if "shortest_edge" in size:
        short = min(image.size)
        width, height = (size["shortest_edge"] if side == short else int(size["shortest_edge"] * side / short) for side in image.size)
    else:
        width, height = size["width"], size["height"]
    image = np.asarray(image.resize((width, height), FILTERS[how["resample"]]))
    if crop:
        top, left = (image.shape[0] - crop["height"]) // 2, (image.shape[1] - crop["width"]) // 2
        image = image[top:top + crop["height"], left:left + crop["width"]]
    return image


def published(model):
    """The parameters under the names that files of these families have, whatever the library calls them today."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return safetensors.numpy.load_file(pathlib.Path(folder) / "model.safetensors")


def make(name):
    config_class, model_class, settings, how = MODELS[name]
    torch.set_default_dtype(torch.float64)
    if name.startswith("dinov3"):  # its angles would be of float32
        in_doubles(sys.modules[transformers.DINOv3ViTModel.__module__])
    config = getattr(transformers, config_class)(**settings)
    config._attn_implementation = "eager"
    model = getattr(transformers, model_class)(config).eval().to(torch.float64)
    drawn(model, seed=sum(map(ord, name)), gain_around=0.7)
    image = prepared(picture(), how)
    pixels = (image.astype(np.float64) * how["rescale_factor"] - np.array(how["image_mean"])) / np.array(how["image_std"])
    softmax = torch.nn.functional.softmax
    torch.nn.functional.softmax = lambda x, dim, dtype=None: softmax(x, dim=dim)  # SigLIP's would be of float32
    with torch.no_grad():
        out = model(torch.tensor(pixels).permute(2, 0, 1)[None], output_attentions=True, output_hidden_states=True,
                    **(dict(noise=torch.arange(9.0)[None]) if name == "vit_mae" else {}))

    torch.nn.functional.softmax = softmax

    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    written = {key: value for key, value in config.to_dict().items()
               if key not in ("dtype", "torch_dtype", "transformers_version", "_name_or_path", "architectures")}
    written |= dict(model_type=config.model_type, architectures=[model_class])
    (folder / "config.json").write_text(json.dumps(written, indent=1) + "\n")
    (folder / "preprocessor_config.json").write_text(json.dumps(how, indent=1) + "\n")
    f4 = lambda tensor: tensor.detach().numpy().astype("<f4")
    write_safetensors(folder / "model.safetensors", {key: value.astype("<f4") for key, value in published(model).items()})
    side = config.patch_size
    rows, columns = image.shape[0] // side, image.shape[1] // side
    patches = pixels[:rows * side, :columns * side].reshape(rows, side, columns, side, 3).transpose(0, 2, 4, 1, 3).reshape(rows * columns, -1)
    expected = {"image": image.astype("<i4"), "patches": patches.astype("<f4")}
    if hasattr(out, "logits"):
        expected["logits"] = f4(out.logits)
    for layer, pattern in enumerate(out.attentions):
        expected[f"blocks.{layer}.attn.hook_pattern"] = f4(pattern[0])
        expected[f"blocks.{layer}.hook_resid_pre"] = f4(out.hidden_states[layer][0])
    write_safetensors(folder / "expected.safetensors", expected)
    print(name, sum(file.stat().st_size for file in folder.iterdir()), "bytes")


def interlaced(rgb):
    """A PNG whose rows come in Adam7's seven passes, which Pillow reads and does not write."""
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = rgb.shape[:2]
    passes = ((0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1))
    rows = b"".join(b"\0" + row.tobytes() for y, dy, x, dx in passes for row in rgb[y::dy, x::dx] if row.size)
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1))
            + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


def pictures():
    """The picture in many forms, what Pillow reads in each (what is transparent over white), and in other sizes."""
    HERE.mkdir(exist_ok=True)
    image = picture()
    image.save(HERE / "picture.png")
    image.save(HERE / "picture.jpg", quality=95, subsampling=0)
    image.save(HERE / "halved.jpg", quality=75, subsampling=2)
    image.save(HERE / "progressive.jpg", quality=75, subsampling=1, progressive=True)
    image.convert("L").save(HERE / "grey.jpg", quality=75)
    image.convert("CMYK").save(HERE / "inks.jpg", quality=75)
    image.convert("1").save(HERE / "bits.png")
    (HERE / "interlaced.png").write_bytes(interlaced(np.asarray(image)))
    image.convert("L").save(HERE / "grey.png")
    image.quantize(16).save(HERE / "palette.png")
    y, x = np.mgrid[0:29, 0:37]
    clear = image.copy()
    clear.putalpha(Image.fromarray(((x * 7 + y * 3) % 256).astype(np.uint8)))
    clear.save(HERE / "alpha.png")
    Image.fromarray((np.asarray(image.convert("L")).astype(np.uint16) * 256 + 77)).save(HERE / "grey16.png")
    i4 = lambda picture: np.asarray(picture.convert("RGB")).astype("<i4")
    white = Image.new("RGBA", image.size, "white")
    jpegs = ("picture.jpg", "halved.jpg", "progressive.jpg", "grey.jpg", "inks.jpg")
    known = {"picture.png": i4(image), "bits.png": i4(image.convert("1")), "interlaced.png": i4(Image.open(HERE / "interlaced.png")),
             **{name: i4(Image.open(HERE / name)) for name in jpegs}, "grey.png": i4(image.convert("L")),
             "palette.png": i4(Image.open(HERE / "palette.png")), "alpha.png": i4(Image.alpha_composite(white, clear)),
             "grey16.png": i4(image.convert("L"))}
    for name, how in (("nearest", 0), ("bilinear", 2), ("bicubic", 3)):
        for height, width in ((12, 12), (12, 16), (64, 50), (29, 11), (7, 37), (96, 96), (1, 1)):
            if (height, width) != (96, 96) or how == 3:
                known[f"{name}.{height}.{width}"] = i4(image.resize((width, height), FILTERS[how]))
    write_safetensors(HERE / "pictures.safetensors", {key: value.astype("|u1") for key, value in known.items()})


if __name__ == "__main__":
    pictures()
    for each in sys.argv[1:] or MODELS:
        make(each)
