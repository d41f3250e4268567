#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns Parquet files of a text corpus into lines of JSON, packed by zstd.

    python3 parquet_to_jsonl.py FOLDER OUT.jsonl.zst [--text-key text]

Reads all *.parquet below FOLDER, and below folders that links there name, in
the order of their names (as Hugging Face publishes OpenWebText:
plain_text/train-00000-of-00080.parquet ...), and writes {"text": ...} for each
row. Two files of one content, and names such as x.PARQUET, are refused. Needs
pyarrow; nothing else here does.
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys


def refuse_equal(files):
    """Exits if two files have one content: only those of one size may."""
    sizes = [path.stat().st_size for path in files]
    seen = {}
    for path, size in zip(files, sizes):
        if sizes.count(size) == 1:
            continue
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        other = seen.setdefault(digest.digest(), path)
        if other is not path:
            sys.exit(f"{other} and {path} hold the same text, which would be "
                     "read twice; move one of them out of the folder")


def refuse_unread(error):
    sys.exit(f"cannot read {error.filename}: {error.strerror}")


def find_files(folder):
    files = []
    seen = set()  # links may go round
    for place, folders, names in os.walk(folder, onerror=refuse_unread,
                                         followlinks=True):
        folders.sort()
        own = os.path.realpath(place)
        if own in seen:
            folders.clear()
            continue
        seen.add(own)
        for path in (pathlib.Path(place, name) for name in names):
            if path.name.endswith(".parquet"):
                files.append(path)
            elif path.name.lower().endswith(".parquet"):
                sys.exit(f"{path}: a file with this name would be ignored; "
                         "rename it to *.parquet, or move it out of the folder")
    if not files:
        sys.exit(f"{folder}: no *.parquet files")
    files.sort()
    refuse_equal(files)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--text-key", default="text")
    arguments = parser.parse_args()
    files = find_files(arguments.folder)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        sys.exit("pyarrow is missing: python3 -m venv V; V/bin/pip install "
                 "pyarrow; V/bin/python parquet_to_jsonl.py ...")
    documents = 0
    partial = arguments.out.with_name(arguments.out.name + ".partial")
    with pyarrow.CompressedOutputStream(str(partial), "zstd") as out:
        for path in files:
            parquet = pyarrow.parquet.ParquetFile(path)
            for batch in parquet.iter_batches(columns=[arguments.text_key]):
                texts = batch.column(0).to_pylist()
                lines = [json.dumps({"text": text or ""}, ensure_ascii=False)
                         for text in texts]
                out.write(("\n".join(lines) + "\n").encode())
                documents += len(texts)
            print(f"{path.name}: {documents} documents so far", file=sys.stderr)
    os.replace(partial, arguments.out)
    print(f"{arguments.out}: {documents} documents; read it with --corpus "
          f"jsonl:{arguments.out}; if it is OpenWebText, with --corpus owt "
          f"--place owt={arguments.out} --normalise hf_openwebtext, and set "
          "data.normalise of a run accordingly")


if __name__ == "__main__":
    main()
