#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns Parquet files of a text corpus into lines of JSON, packed by zstd.

    python3 parquet_to_jsonl.py FOLDER OUT.jsonl.zst [--text-key text]

Reads all *.parquet below FOLDER in the order of their names (as Hugging Face
publishes OpenWebText: plain_text/train-00000-of-00080.parquet ...), and writes
{"text": ...} for each row. Needs pyarrow; nothing else here does.
"""

import argparse
import json
import os
import pathlib
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--text-key", default="text")
    arguments = parser.parse_args()
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        sys.exit("pyarrow is missing: python3 -m venv V; V/bin/pip install "
                 "pyarrow; V/bin/python parquet_to_jsonl.py ...")
    files = sorted(arguments.folder.rglob("*.parquet"))
    if not files:
        sys.exit(f"{arguments.folder}: no *.parquet files")
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
          f"--place owt={arguments.out} --normalise hf_openwebtext, which "
          "data.normalise of a run says, too")


if __name__ == "__main__":
    main()
