"""Reads an Arrow stream from standard input; prints its schema, then its rows, then the trailer, a JSON line each."""
import base64
import json
import math
import sys

import pyarrow as pa
import pyarrow.ipc

WHOLE = (pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)


def plain(value):
    """Extension types (uuid, json) as what they are stored in."""
    return value.storage if isinstance(value, pa.ExtensionArray) else value


def shown(array):
    array = plain(array)
    kind = array.type
    if pa.types.is_list(kind):
        items = shown(array.values)
        spans = zip(array.offsets.to_pylist(), array.offsets.to_pylist()[1:], array.is_valid().to_pylist())
        return [items[start:end] if there else None for start, end, there in spans]
    if pa.types.is_date(kind):
        array = array.view(pa.int32())
    elif pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        array = array.view(pa.int64())
    return [None if v is None else scalar(kind, v) for v in array.to_pylist()]


def scalar(kind, value):
    if any(check(kind) for check in WHOLE) or pa.types.is_int64(kind):
        return str(value)
    if pa.types.is_interval(kind):
        return f"{value.months} {value.days} {value.nanoseconds}"
    if pa.types.is_binary(kind):
        return base64.b64encode(value).decode()
    if pa.types.is_fixed_size_binary(kind):
        return value.hex()
    if pa.types.is_floating(kind) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


reader = pa.ipc.open_stream(sys.stdin.buffer)
print(json.dumps({f.name: str(f.type) for f in reader.schema}))
trailer = None
while True:
    try:
        batch, metadata = reader.read_next_batch_with_custom_metadata()
    except StopIteration:
        break
    batch.validate(full=True)
    trailer = None if metadata is None else metadata[b"osl.trailer"].decode()
    columns = [shown(column) for column in batch.columns]
    for row in zip(*columns):
        print(json.dumps(dict(zip(reader.schema.names, row))))
print(trailer)
