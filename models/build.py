"""Make the two shipped models again from the published weights they come from.

Input is a folder with the files of the repository ``sentence-transformers/all-MiniLM-L6-v2``
(``config.json``, ``model.safetensors``, ``tokenizer.json`` and ``tokenizer_config.json``). Nothing is
downloaded.
"""

import argparse
import hashlib
import logging
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ONNX = "all-minilm-l6-v2-int8"
STATIC = "minilm-static-256"
EXPECTED = {
    f"{ONNX}/model.onnx": "03f24f66ef20920feaeed29d0c8bd21b3bc1088229426152f40a497e891150b1",
    f"{ONNX}/tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    f"{STATIC}/config.json": "e13266c6aa4c3d3956a95a9eb4f6c1d5af7c20b4ca91bd0c40335bb844310ba5",
    f"{STATIC}/model.safetensors": "dcbaf948f0bc607de63678c2db8e798e2b1869f840b3d768fdcec0ff1d44c8e1",
    f"{STATIC}/tokenizer.json": "dd33465341c98889c3338356b6200c8b232b89af5f1b7aa8e6ee1d4d7a699631",
}
EPILOG = """\
needs: pip install torch==2.13.0 transformers==5.3.0 onnx==1.23.2 onnxruntime==1.32.0 \\
                   'model2vec[distill,quantization]==0.10.0'
Other versions make files that work as well but differ in their bytes; then the SHA-256 in the model's
card has to be changed too, and every index made with the old file is embedded again.
The table of the static model may differ even so: its principal components round differently with another
linear algebra library or number of threads (seen: one entry in 1200, by one step of 255).
"""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_source(source: Path) -> None:
    """Raise SystemExit unless ``source`` holds the pinned weights."""
    weights = source / "model.safetensors"
    if not weights.is_file():
        raise SystemExit(f"no model.safetensors in {source}: give the folder of all-MiniLM-L6-v2")
    found = sha256(weights)
    if found != SOURCE_SHA256:
        raise SystemExit(f"{weights} has SHA-256 {found}, expected {SOURCE_SHA256}: take the original file")


def export(source: Path, target: Path) -> None:
    """Write the float32 network as ONNX: token ids, mask and types in, ``last_hidden_state`` out."""
    import torch
    from transformers import AutoModel

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.m = AutoModel.from_pretrained(source, attn_implementation="eager")

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            output = self.m(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
            return output.last_hidden_state

    sample = (torch.ones(2, 16, dtype=torch.long),) * 2 + (torch.zeros(2, 16, dtype=torch.long),)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "seq"} for name in [*names, "last_hidden_state"]}
    torch.onnx.export(
        Network().eval(),
        sample,
        str(target),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )


def quantise(source: Path, target: Path) -> None:
    """Write an ONNX network with weights of signed 8 bits per channel, one bit spared for AVX2."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = source.with_name("prepared.onnx")
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    quantize_dynamic(
        str(prepared), str(target), weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
    )


def build_onnx(source: Path, out: Path) -> None:
    """Make the default model in ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        network = Path(scratch) / "network.onnx"
        export(source, network)
        quantise(network, out / "model.onnx")
    shutil.copyfile(source / "tokenizer.json", out / "tokenizer.json")


def build_static(source: Path, out: Path) -> None:
    """Make the static model in ``out``: one vector per token, 256 principal components, 8 bits."""
    from model2vec.distill import distill

    model = distill(str(source), pca_dims=256, quantize_to="int8", device="cpu")
    model.config["tokenizer_name"] = "sentence-transformers/all-MiniLM-L6-v2"
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        out.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            shutil.copyfile(Path(scratch) / name, out / name)


def report(out: Path, model: str) -> None:
    """Print SHA-256 and size in bytes of each file made, and whether it is the shipped one."""
    for name, expected in EXPECTED.items():
        if name.startswith(model):
            found = sha256(out / name)
            verdict = "as shipped" if found == expected else f"differs from the shipped {expected[:12]}"
            sys.stdout.write(f"{found}  {(out / name).stat().st_size:>9}  {name}  {verdict}\n")


def main(arguments: list[str] | None = None) -> None:
    """Build what is asked for and report it."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, help="folder with the files of all-MiniLM-L6-v2")
    parser.add_argument("out", type=Path, help="folder to write to; a folder per model is made in it")
    parser.add_argument("--only", choices=[ONNX, STATIC], help="make this one model (default: both)")
    options = parser.parse_args(arguments)
    check_source(options.source)
    logging.getLogger().setLevel(logging.ERROR)
    builders = {ONNX: build_onnx, STATIC: build_static}
    for model in [options.only] if options.only else builders:
        builders[model](options.source, options.out / model)
        report(options.out, model)


if __name__ == "__main__":
    main()
