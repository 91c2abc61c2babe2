"""Rows of a Parquet file for `ucas`, by pyarrow. Started by the program, as parquet_rows.py FILE PACKAGES (a folder, or ""): for each line of its
standard input it writes a line of JSON: a list of the next rows as objects, at the end []; {"warning"} for columns that are left out; {"error",
"kind"}, the last."""
import sys

if __name__ == "__main__":  # not the folder that it runs in; first what this Python has
    sys.path[:] = filter(None, [*sys.path, *sys.argv[2:]])

import collections
import json
import math
import os
import resource
import struct

os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # another would reserve what the limit allows
try:
    import pyarrow
    import pyarrow.parquet
    missing = ""
except ImportError as error:
    missing = str(error)

MEMORY, PER_BYTE = 1 << 30, 2  # bytes beyond those of the start, and as many more as this times the file
DEEPEST = 32                   # types within one another
BATCH_ROWS, REPLY, LONGEST = 256, 1 << 20, 16 << 20  # rows that pyarrow makes at once; bytes of a reply, of a row
PLAIN = {"null", "bool", "string", "large_string", "string_view"}


class Refused(Exception):
    pass


def shortest(value):
    """3.14 and not 3.140000104904175: the shortest text that is the same number of 32 bits."""
    for digits in range(6, 10):
        short = float(f"{value:.{digits}g}")
        if abs(short) < 3.4e38 and struct.pack("f", short) == struct.pack("f", value):
            return short
    return value


def converter(of, depth=0):
    """A function from pyarrow's value of a type to JSON's; None for a type that is not read."""
    types = pyarrow.types

    def within(inner):
        return converter(inner, depth + 1) if depth < DEEPEST else None

    convert = None
    if types.is_integer(of) or str(of) in PLAIN:
        convert = lambda value: value
    elif types.is_float32(of) or types.is_float64(of):
        narrow = shortest if types.is_float32(of) else float
        convert = lambda value: narrow(value) if math.isfinite(value) else None
    elif types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of):
        if item := within(of.value_type):
            convert = lambda value: [item(x) for x in value]
    elif types.is_struct(of):
        fields = {of.field(i).name: within(of.field(i).type) for i in range(of.num_fields)}
        if all(fields.values()):
            convert = lambda value: {name: field(value[name]) for name, field in fields.items()}
    elif types.is_map(of):
        item = within(of.item_type)
        if item and types.is_string(of.key_type):
            convert = lambda value: {key: item(x) for key, x in value}
    elif types.is_dictionary(of):
        convert = within(of.value_type)
    return convert and (lambda value: None if value is None else convert(value))


def replies(path):
    file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, page_checksum_verification=True, thrift_string_size_limit=64 << 20,
                                       thrift_container_size_limit=100_000)
    fields = list(file.schema_arrow)
    for name, count in collections.Counter(field.name for field in fields).items():
        if count > 1:
            raise Refused("schema", f'duplicate column "{name}"')
    columns = {field.name: converter(field.type) for field in fields}
    if left_out := [name for name, convert in columns.items() if not convert]:
        yield {"warning": "columns of types that are not read (only texts, numbers, booleans, lists and structs are): " + ", ".join(left_out)}
    columns = {name: convert for name, convert in columns.items() if convert}
    if not columns:
        raise Refused("schema", "no column of a type that is read")
    done, rows, size = 0, [], 0
    for batch in file.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=False):
        batch.validate(full=True)  # texts that are not UTF-8, offsets that a broken file could set
        values = [(name, columns[name], batch.column(batch.schema.names.index(name))) for name in columns]
        for i in range(batch.num_rows):
            row = json.dumps({name: convert(column[i].as_py()) for name, convert, column in values}, ensure_ascii=False)
            done += 1
            if len(row) > LONGEST:
                raise Refused("limit", f"row {done} is longer than {LONGEST >> 20} MiB, the limit")
            rows.append(row)
            size += len(row)
            if size > REPLY:
                yield rows
                rows, size = [], 0
    if rows:
        yield rows
    yield []


def answers(path):
    if missing:
        yield {"kind": "unsupported", "error": f"{sys.executable}: {missing}"}
        return
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY + PER_BYTE * os.path.getsize(path), resource.getrlimit(resource.RLIMIT_AS)[1]))
        yield from replies(path)
    except Refused as refused:
        yield dict(zip(("kind", "error"), refused.args))
    except MemoryError:
        yield {"kind": "limit", "error": "pyarrow needs more memory than a file of this size may take"}
    except Exception as error:
        yield {"kind": "parquet", "error": f"not a Parquet file that can be read: {error}"}


if __name__ == "__main__":
    for _, reply in zip(sys.stdin.buffer, answers(sys.argv[1])):
        text = "[" + ",".join(reply) + "]" if isinstance(reply, list) else json.dumps(reply)
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()
