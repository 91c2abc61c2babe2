"""Parquet files as pyarrow writes them, into a folder: make_parquet.py FOLDER [FOLDER OF PACKAGES]. Exits with 77 where pyarrow is not there."""
import datetime
import json
import sys

sys.path += sys.argv[2:]

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    sys.exit(77)

FOLDER = sys.argv[1]


def verl(i):
    """A row of verl's schema."""
    prompt = [{"role": "system", "content": "Be brief."}] if i % 3 == 0 else []
    if i % 5 == 0:
        prompt += [{"role": "user", "content": "0+0?"}, {"role": "assistant", "content": "0"}]
    prompt.append({"role": "user", "content": f"{i}+{i}? \u00e9"})
    return {"data_source": "sums", "prompt": prompt, "ability": "math",
            "reward_model": {"ground_truth": str(2 * i), "style": "rule"}, "extra_info": {"index": i, "split": "train"}}


def main():
    rows = [verl(i) for i in range(1000)]
    table = pa.Table.from_pylist(rows)
    for codec in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        pq.write_table(table, f"{FOLDER}/verl_{codec}.parquet", compression=codec, row_group_size=300, write_page_checksum=True)
    pq.write_table(table.slice(0, 3), f"{FOLDER}/small.parquet", compression="zstd")
    plain = pa.table({
        "problem": pa.array(["1+1?", "2+2?", "3+3?"], pa.large_string()), "answer": pa.array([2, 4, 6], pa.int32()),
        "id": pa.array(["a", "b", "a"]).dictionary_encode(), "choices": pa.array([["1", "2"], None, ["6", "7"]], pa.list_(pa.string())),
        "share": [0.5, float("nan"), None], "width": pa.array([3.14, 72.0, float("inf")], pa.float32()), "known": [True, False, None], "n": pa.array([1, 2, 3], pa.uint8()),
        "scores": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2)), "made": [datetime.datetime(2026, 1, 1)] * 3,
        "tags": pa.array([[("k", "v")], [], None], pa.map_(pa.string(), pa.string()))})
    pq.write_table(plain, f"{FOLDER}/plain.parquet", version="2.6", data_page_version="2.0")
    pq.write_table(pa.table({"made": [datetime.datetime(2026, 1, 1)]}), f"{FOLDER}/dates.parquet")
    pq.write_table(pa.table({"problem": pa.array([], pa.string())}), f"{FOLDER}/empty.parquet")
    broken = pa.array([b"1\xff?"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"problem": broken, "answer": ["1"]}), f"{FOLDER}/bytes.parquet")
    deep = pa.string()
    for _ in range(40):
        deep = pa.list_(deep)
    pq.write_table(pa.table({"problem": ["1?"], "answer": ["1"], "deep": pa.array([None], deep)}), f"{FOLDER}/deep.parquet")
    for name, text, n in (("same", "a" * 1000, 150_000), ("rows", "a", 600_000), ("text", "a" * (17 << 20), 1)):  # small files, much in them
        pq.write_table(pa.table({"problem": pa.array([text] * n), "answer": pa.array(["1"] * n)}), f"{FOLDER}/bomb_{name}.parquet",
                       compression="zstd", row_group_size=n)
    responses = [{"id": str(i // 2), "question": f"{i // 2}+1?", "answer": str(i // 2 + 1), "response": f"\\boxed{{{i}}}"}
                 for i in range(10)]
    pq.write_table(pa.Table.from_pylist(responses), f"{FOLDER}/responses.parquet")
    with open(f"{FOLDER}/verl.jsonl", "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


main()
