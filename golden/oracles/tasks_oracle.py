#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lm-evaluation-harness makes of the made-up items in tasks/: tasks.json.

    python3 tasks_oracle.py --out tasks.json                        (lm-eval 0.4.13)
    python3 tasks_oracle.py --hash requests.jsonl                   (Python alone)
    python3 tasks_oracle.py --check FOLDER                          (lm-eval 0.4.13)

The first runs the harness itself on tasks/, brought into the Hugging Face form: its own
YAML, by include:, and a model of a few lines. Its tokenizer has pieces that cross
spaces, and its log-likelihoods are multiples of 1/8, so that other programs' equal them.
Also recorded: what Python's str does to every character.

The second reads what `//:evaluate --dump-requests` wrote and prints, for each task, the
number of requests and the SHA-256 that the harness's authors recorded for all of them in
2021 (tests/testdata): of the requests after the documents were shuffled by
random.Random(42). RECORDED has theirs.

The third reads what `//:evaluate --out FOLDER` wrote, has the harness score the same
documents with the log-likelihoods and is_greedy found there, and compares item by item.
"""
import argparse
import hashlib
import itertools
import json
import pathlib
import platform
import random
import sys
import tempfile
import unicodedata

HERE = pathlib.Path(__file__).parent
WINDOW = 96
PIECES = [": a", ": t", ": w", ": s", " a", " the ", "the ", ". ", " two", "er", "ing ", "s t",
          "\nA", "Question: ", "Answer: t", "  ", "é", "🎈", "水", "word ", "and so on "]
END_OF_DOCUMENT = 1
RECORDED = {
    "arc_easy": "ffa6e39a35a16299dcb015f17f986aaa598ad8b4840c4cebe0339a7042232741",
    "hellaswag": "abb808c97d6529eda6c11067837a132c62d25cba0394d720f80cca6df9f7196e",
}


def encode(text):
    """The longest piece that fits, from left to right, or a byte."""
    ids, data = [], text.encode()
    pieces = sorted(((p.encode(), 258 + i) for i, p in enumerate(PIECES)),
                    key=lambda piece: -len(piece[0]))
    at = 0
    while at < len(data):
        piece = next((p for p in pieces if data.startswith(p[0], at)), None)
        ids.append(piece[1] if piece else 2 + data[at])
        at += len(piece[0]) if piece else 1
    return ids


def loss(before, token):
    return ((before * 7 + token * 13) % 31 + 1) / 8


def cut(context, continuation):
    """Input and target ids within the window, and how many of them count."""
    return (context + continuation)[-(WINDOW + 1):], min(len(continuation), WINDOW)


def make_model(log_likelihood):
    """A model of the harness: log_likelihood(text, context ids, continuation ids), and
    whether each token of the continuation is the most likely one."""
    from lm_eval.api.model import TemplateLM

    class Model(TemplateLM):
        eot_token_id = END_OF_DOCUMENT
        seen = {}

        def tok_encode(self, string, add_special_tokens=None, **kwargs):
            return encode(string)

        def _loglikelihood_tokens(self, requests, **kwargs):
            for text, context, continuation in requests:
                self.seen[text] = cut(context, continuation)
            return [log_likelihood(*request) for request in requests]

        def loglikelihood_rolling(self, requests, disable_tqdm=False):
            raise NotImplementedError

        def generate_until(self, requests, disable_tqdm=False):
            raise NotImplementedError

    return Model()


def made_up_likelihood(_, context, continuation):
    ids, scored = cut(context, continuation)
    assert scored > 0
    return -sum(loss(a, b) for a, b in list(itertools.pairwise(ids))[-scored:]), False


def run_harness(documents, model):
    """{task: documents in the Hugging Face form} -> the harness's results."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    tasks = pathlib.Path(lm_eval.__file__).parent / "tasks"
    yamls = {"piqa": "piqa/piqa.yaml", "hellaswag": "hellaswag/hellaswag.yaml",
             "arc_easy": "arc/arc_easy.yaml"}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for task, docs in documents.items():
            data = folder / f"{task}.jsonl"
            data.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
            kind = next(k for k in yamls if task.startswith(k))
            metrics = "".join(f"\n  - metric: {metric}\n    aggregation: mean\n"
                              "    higher_is_better: true"
                              for metric in ("acc", "acc_norm", "acc_bytes"))
            (folder / f"{task}.yaml").write_text(
                f"include: {tasks / yamls[kind]}\ntask: made_{task}\ndataset_path: json\n"
                "dataset_name: null\ntraining_split: null\ntest_split: null\n"
                "validation_split: validation\ndataset_kwargs:\n  data_files:\n"
                f"    validation: {data}\nmetric_list:{metrics}\n")
        manager = TaskManager(include_path=str(folder), include_defaults=False)
        return lm_eval.simple_evaluate(
            model=model, tasks=[f"made_{task}" for task in documents], num_fewshot=0,
            task_manager=manager, bootstrap_iters=2, log_samples=True)


def read_lines(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def hugging_face_form():
    """The authors' files in tasks/, as the Hub has them."""
    labels = (HERE / "tasks/valid-labels.lst").read_text().split()
    piqa = [item | {"label": int(label)} for item, label in
            zip(read_lines(HERE / "tasks/valid.jsonl"), labels, strict=True)]
    order = ["ind", "activity_label", "ctx_a", "ctx_b", "ctx", "endings", "source_id",
             "split", "split_type", "label"]
    hellaswag = [{key: str(item[key]) if key == "label" else item[key] for key in order}
                 for item in read_lines(HERE / "tasks/hellaswag_val.jsonl")]
    arc = [{"id": item["id"], "question": item["question"]["stem"],
            "choices": {key: [choice[key] for choice in item["question"]["choices"]]
                        for key in ("text", "label")},
            "answerKey": item["answerKey"]}
           for item in read_lines(HERE / "tasks/ARC-Easy-Test.jsonl")]
    return {"piqa": piqa, "hellaswag": hellaswag, "arc_easy": arc}


def recorded_item(sample, model):
    requests = [tuple(argument) for argument in sample["arguments"]]
    return {
        "context": requests[0][0],
        "continuations": [continuation for _, continuation in requests],
        "gold": sample["target"],
        "doc_hash": sample["doc_hash"],
        "prompt_hash": sample["prompt_hash"],
        "target_hash": sample["target_hash"],
        "ids": [model.seen[request][0] for request in requests],
        "scored": [model.seen[request][1] for request in requests],
        "log_likelihoods": [response[0] for response in sample["filtered_resps"]],
        **{metric: int(sample[metric]) for metric in ("acc", "acc_norm", "acc_bytes")},
    }


def hash_over_characters(method):
    """SHA-256 of what a method of str gives for every code point, with words around."""
    digest = hashlib.sha256()
    for point in range(sys.maxunicode + 1):
        if 0xD800 <= point < 0xE000 or point == 0:
            continue
        c = chr(point)
        for text in (c, "x" + c, c + c, "a" + c + "Σ", "aΣ" + c, "aΣ" + c + "a"):
            digest.update(method(text).encode() + b"\n")
    return digest.hexdigest()


def record(out):
    import lm_eval

    model = make_model(made_up_likelihood)
    results = run_harness(hugging_face_form(), model)
    made = {
        "recorded_by": f"Python {platform.python_version()} (Unicode "
                       f"{unicodedata.unidata_version}), lm-eval {lm_eval.__version__}",
        "window": WINDOW, "pieces": PIECES, "end_of_document": END_OF_DOCUMENT,
        "capitalize": hash_over_characters(str.capitalize),
        "strip": hash_over_characters(str.strip),
    }
    tasks = []
    for name, samples in results["samples"].items():
        samples.sort(key=lambda sample: sample["doc_id"])
        numbers = {key.removesuffix(",none"): value
                   for key, value in results["results"][name].items()
                   if key.startswith("acc")}
        items = ",\n".join(json.dumps(recorded_item(sample, model), ensure_ascii=False)
                           for sample in samples)
        tasks.append(f'"{name.removeprefix("made_")}": {{"accuracies": '
                     f'{json.dumps(numbers)}, "items": [\n{items}\n]}}')
    head = json.dumps(made, ensure_ascii=False)[:-1]
    out.write_text(head + ', "tasks": {\n' + ",\n".join(tasks) + "}}\n",
                   encoding="utf-8")


def print_hashes(path):
    rows = read_lines(path)
    for task, group in itertools.groupby(rows, key=lambda row: row["task"]):
        documents = [list(requests) for _, requests in
                     itertools.groupby(group, key=lambda row: row["doc_id"])]
        random.Random(42).shuffle(documents)
        requests = [[row["context"], row["continuation"]]
                    for document in documents for row in document]
        found = hashlib.sha256(json.dumps(requests).encode()).hexdigest()
        known = RECORDED.get(task)
        verdict = "" if known is None else "  as in 2021" if known == found else \
            f"  not that of all items in 2021, {known}"
        print(f"{task}: {len(requests)} requests, {found}{verdict}")


def check(folder):
    """Compares the samples that evaluate wrote with the harness's on its numbers."""
    samples, answers, wrong = {}, {}, 0
    for path in sorted(folder.glob("samples_*.jsonl")):
        task = path.stem.removeprefix("samples_")
        samples[task] = read_lines(path)
        for sample in samples[task]:
            for argument, (likelihood, greedy) in zip(
                    sample["arguments"].values(), sample["filtered_resps"], strict=True):
                request = argument["arg_0"], argument["arg_1"]
                if greedy not in ("True", "False"):
                    sys.exit(f"{path}: is_greedy is {greedy}; let //:evaluate answer again")
                answer = float(likelihood), greedy == "True"
                if answers.setdefault(request, answer) != answer:
                    wrong += 1
                    print(f"{task}, item {sample['doc_id']}: {request} has two answers")
    added = ("query", "choices", "gold")  # by the harness, to HellaSwag's documents
    documents = {task: [{key: value for key, value in sample["doc"].items()
                         if task != "hellaswag" or key not in added}
                        for sample in of] for task, of in samples.items()}
    model = make_model(lambda text, *_: answers[text])
    theirs = run_harness(documents, model)
    keys = ("doc_hash", "prompt_hash", "target_hash", "acc", "acc_norm", "acc_bytes")
    for task, ours in samples.items():
        made = sorted(theirs["samples"][f"made_{task}"], key=lambda one: one["doc_id"])
        for our, their in zip(ours, made, strict=True):
            for key in keys:
                if our[key] != their[key]:
                    wrong += 1
                    print(f"{task}, item {our['doc_id']}: {key} is {our[key]}, in the "
                          f"harness {their[key]}")
            responses = [[str(part) for part in response]
                         for response in their["filtered_resps"]]
            if [[str(float(a)), b] for a, b in our["filtered_resps"]] != responses:
                wrong += 1
                print(f"{task}, item {our['doc_id']}: log-likelihoods and is_greedy are "
                      f"{our['filtered_resps']}, in the harness {responses}")
        print(f"{task}: {len(ours)} items", theirs["results"][f"made_{task}"])
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=pathlib.Path)
    what.add_argument("--hash", type=pathlib.Path)
    what.add_argument("--check", type=pathlib.Path)
    options = parser.parse_args()
    if options.out:
        record(options.out)
    elif options.hash:
        print_hashes(options.hash)
    else:
        sys.exit(check(options.check))


if __name__ == "__main__":
    main()
