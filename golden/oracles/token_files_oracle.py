#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the owners of our formats make of them: tokens.json and tokens/.

    python3 token_files_oracle.py --spm FOLDER --megatron FOLDER --out tokens.json

FOLDER of --spm has spm_encode and spm_decode of Debian's package `sentencepiece`, that of
--megatron the unpacked wheel megatron-core. Of the latter the files for token files and
tokenizers run alone: what they import of PyTorch is not used here, and stands in.

Megatron-core's IndexedDatasetBuilder writes tokens/{uint16,int32}.{bin,idx}, and its
IndexedDataset reads what our writer makes of documents of one sequence each: the bytes
are put together here by trainer/TOKEN_FILES.md, and the test holds our writer to them.

tokens/drawn.model is ours, made by `SOFTMOE_RENEW=1 ./bazelw run //property_tests:test`.
The text is drawn by a rule which the test repeats, draw(). Of it are recorded the ids of
whole documents by the newest sentencepiece, of lines by spm_encode, too, and what
decoding gives. Megatron-core's SentencePieceTokenizer and Hugging Face's AutoTokenizer
must give the same ids.
"""
import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import types

import numpy
import sentencepiece
import transformers  # before there is a stand-in for torch

from philox import words

HERE = pathlib.Path(__file__).parent
NUM_DOCUMENTS = 1800
TEST_DATA = 4  # core/philox.h, RandomStream
RANGES = [
    (ord("a"), 26), (ord("a"), 5), (ord("n"), 4), (ord("A"), 26), (ord("0"), 10),
    (ord("!"), 15), (0xC0, 64), (0x3B1, 25), (0x410, 64), (0x5D0, 27), (0x627, 36),
    (0x905, 53), (0xE01, 46), (0x3041, 83), (0x4E00, 60), (0xAC00, 60), (0x300, 20),
    (0x1F600, 40), (0x1F3FB, 5), (0x200B, 5), (1, 31), (0x7F, 33), (0x310, 96),
    (0x1F1E6, 26), (0xFE00, 16), (0x2580, 4), (0xFEFF, 1), (0xE000, 64), (0xFFF0, 16),
    (0x20000, 99), (0x2000, 48), (0xD7F0, 16), (0x10FFF0, 16)]
SPACES = [" "] * 7 + ["  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000",
                      "\u2003", "", ""]
# Documents as lists of sequences, with an id that needs the type.
SEQUENCES = {
    "uint16": [[[5, 6, 7, 1]], [[9, 10], [11, 1]], [], [[]], [[], [65498, 1], []],
               [[2, 3, 1]], []],
    "int32": [[], [[70000, 1]], [[3], [4], [], [5, 1]], [[]], [[], []], [[65536, 2, 1]]],
}
OURS = {"uint16": [[1, 2, 65498, 1], [], [7], []], "int32": [[], [65499, 0, 1], [65536 - 37]]}


def draw(step, ranges, count):
    documents = []
    for d in range(count):
        text = ""
        for i in range(64 * d, 64 * d + 64):
            a, b, c, e = words(30, TEST_DATA, step, 0, i)
            first, size = RANGES[a % ranges]
            text += SPACES[e % len(SPACES)] + "".join(
                chr(first + ((b + j * c) & 0xFFFFFFFF) % size)
                for j in range((a >> 16) % 6 + 1))
        documents.append(text)
    return documents


def lines_of(documents):
    """The lines of each; a line end ends a line and does not begin another."""
    return [line for document in documents
            for line in document.removesuffix("\n").split("\n")]


def hash_of(texts):
    return hashlib.sha256(b"".join(t.encode() + b"\0" for t in texts)).hexdigest()


def hash_of_ids(lists):
    return hashlib.sha256(b"".join(
        numpy.array([*ids, -1], numpy.int32).tobytes() for ids in lists)).hexdigest()


# ---- Megatron.

def load(megatron, name):
    """A module of megatron-core from its file alone."""
    path = megatron / (name.replace(".", "/") + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def load_megatron(megatron):
    torch = stand_in("torch", Tensor=type("Tensor", (), {}))
    torch.utils = stand_in("torch.utils")
    torch.utils.data = stand_in("torch.utils.data", Dataset=object)
    stand_in("megatron.core.utils", log_single_rank=lambda *_, **__: None)
    libraries = "megatron.core.tokenizers.text.libraries."
    for name in ("megatron", "megatron.core", "megatron.core.datasets",
                 "megatron.core.tokenizers", "megatron.core.tokenizers.text",
                 libraries[:-1]):
        stand_in(name, __path__=[])
    load(megatron, "megatron.core.msc_utils")
    load(megatron, "megatron.core.datasets.object_storage_utils")
    datasets = load(megatron, "megatron.core.datasets.indexed_dataset")
    load(megatron, libraries + "abstract_tokenizer")
    load(megatron, libraries + "chat_template")
    tokenizer = load(megatron, libraries + "sentencepiece_tokenizer")
    return datasets, tokenizer.SentencePieceTokenizer


class Ids:
    """The one thing that the builder wants of a tensor."""

    def __init__(self, ids):
        self.ids = ids

    def numpy(self):
        return numpy.array(self.ids)


def write_theirs(datasets, kind):
    prefix = str(HERE / "tokens" / kind)
    builder = datasets.IndexedDatasetBuilder(prefix + ".bin", getattr(numpy, kind))
    for document in SEQUENCES[kind]:
        for sequence in document:
            builder.add_item(Ids(sequence))
        builder.end_document()
    builder.finalize(prefix + ".idx")


def read_by_megatron(datasets, prefix):
    """Documents as lists of sequences."""
    dataset = datasets.IndexedDataset(prefix, mmap=True)
    sequences = [dataset[i].tolist() for i in range(len(dataset))]
    ends = dataset.document_indices.tolist()
    return [sequences[a:b] for a, b in zip(ends, ends[1:])]


def record_ours(datasets, kind, folder):
    """Our bytes, as trainer/TOKEN_FILES.md has them; Megatron must read the documents."""
    documents = OURS[kind]
    size = numpy.dtype(kind).itemsize
    lengths = [len(ids) for ids in documents]
    begins = [size * sum(lengths[:i]) for i in range(len(lengths))]
    data = b"".join(numpy.array(ids, kind).tobytes() for ids in documents)
    index = (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, {"uint16": 8, "int32": 4}[kind],
                                          len(lengths), len(lengths) + 1) +
             numpy.array(lengths, numpy.int32).tobytes() +
             numpy.array(begins, numpy.int64).tobytes() +
             numpy.arange(len(lengths) + 1, dtype=numpy.int64).tobytes())
    (folder / f"{kind}.bin").write_bytes(data)
    (folder / f"{kind}.idx").write_bytes(index)
    read = read_by_megatron(datasets, str(folder / kind))
    assert read == [[ids] for ids in documents], read
    return {"documents": documents, "bin_sha256": hashlib.sha256(data).hexdigest(),
            "idx_sha256": hashlib.sha256(index).hexdigest()}


# ---- SentencePiece.

def spm(program, arguments, lines, folder):
    source, made = folder / "in.txt", folder / "out.txt"
    source.write_bytes(b"".join(line.encode() + b"\n" for line in lines))
    subprocess.run([program, f"--model={HERE / 'tokens/drawn.model'}", *arguments,
                    f"--input={source}", f"--output={made}"], check=True)
    return made.read_bytes().decode().removesuffix("\n").split("\n")


def hugging_face(folder):
    """AutoTokenizer of a folder with the model and nothing else."""
    shutil.copy(HERE / "tokens/drawn.model", folder / "tokenizer.model")
    return transformers.AutoTokenizer.from_pretrained(str(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--spm", "--megatron", "--out"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    options = parser.parse_args()
    datasets, megatron_tokenizer = load_megatron(options.megatron)
    model = HERE / "tokens/drawn.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    documents = draw(1, len(RANGES), NUM_DOCUMENTS)
    lines = lines_of(documents)
    ids = processor.encode(documents)
    ids_of_lines = processor.encode(lines)
    decoded = processor.decode(ids)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        theirs = spm(options.spm / "spm_encode", ["--output_format=id"], lines, folder)
        theirs = [[int(i) for i in line.split()] for line in theirs]
        assert theirs == ids_of_lines
        texts = spm(options.spm / "spm_decode", ["--input_format=id"],
                    [" ".join(map(str, line)) for line in ids_of_lines], folder)
        assert texts == processor.decode(ids_of_lines)
        for kind in SEQUENCES:
            write_theirs(datasets, kind)
            assert read_by_megatron(datasets, str(HERE / "tokens" / kind)) == \
                SEQUENCES[kind]
        ours = {kind: record_ours(datasets, kind, folder) for kind in OURS}
        tokenizer = hugging_face(folder)

    assert tokenizer.eos_token_id == 1 and len(tokenizer) == processor.get_piece_size()
    assert [tokenizer.encode(text) for text in documents] == ids
    tokenizer = megatron_tokenizer(str(model))
    assert [tokenizer.text_to_ids(text) for text in documents] == ids
    assert [tokenizer.ids_to_text(line) for line in ids] == decoded
    assert decoded == [text.replace("\u2581", " ") for text in documents]
    wheel, = importlib.metadata.distributions(path=[str(options.megatron)])
    debian = subprocess.run([options.spm / "spm_encode", "--version"], check=True,
                            capture_output=True, text=True).stdout.strip()
    options.out.write_text(json.dumps({
        "recorded_by": f"megatron-core {wheel.version}, sentencepiece "
                       f"{sentencepiece.__version__}, {debian} (Debian), "
                       f"transformers {transformers.__version__}",
        "theirs": SEQUENCES, "ours": ours, "num_documents": NUM_DOCUMENTS,
        "text_sha256": hash_of(documents), "ids_sha256": hash_of_ids(ids),
        "ids_of_lines_sha256": hash_of_ids(ids_of_lines),
        "decoded_sha256": hash_of(decoded)}) + "\n")


if __name__ == "__main__":
    main()
