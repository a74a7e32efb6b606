#!/usr/bin/env python3
"""Checks receipts of OSL Gateway. Needs Python 3.9 and nothing else.

    osl_receipt.py RECEIPT --key CHECKPOINT.VKEY [--salt FILE] [--rows ANSWER] [--question FILE] [--witnessed NOTES]

ANSWER is the answer as REST sent it, in JSON or NDJSON. NOTES is a file with the checkpoints of a witness of the log,
one after the other. The formats are defined in docs/receipts.md.
Exit status: 0 valid, 1 wrong.
"""

import argparse
import base64
import hashlib
import json
import re
import sys

# ---- Ed25519 signatures (RFC 8032, section 5.1), in extended coordinates x = X/Z, y = Y/Z, xy = T/Z

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, -1, PRIME) % PRIME
NEUTRAL = (0, 1, 1, 0)


def point_sum(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % PRIME
    b = (p[1] + p[0]) * (q[1] + q[0]) % PRIME
    c = 2 * p[3] * q[3] * CURVE % PRIME
    d = 2 * p[2] * q[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME)


def point_multiple(factor, p):
    total = NEUTRAL
    while factor:
        if factor & 1:
            total = point_sum(total, p)
        p = point_sum(p, p)
        factor >>= 1
    return total


def point_in(data):
    """Returns the point encoded by 32 bytes; None if the encoding is invalid."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= PRIME:
        return None
    square = (y * y - 1) * pow(CURVE * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    if (x * x - square) % PRIME or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = PRIME - x
    return (x, y, 1, x * y % PRIME)


BASE = point_in((4 * pow(5, -1, PRIME) % PRIME).to_bytes(32, "little"))


def is_signed(key, message, signature):
    public, other = point_in(key), point_in(signature[:32])
    factor = int.from_bytes(signature[32:], "little")
    if public is None or other is None or len(signature) != 64 or factor >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    left = point_multiple(factor, BASE)
    right = point_sum(other, point_multiple(int.from_bytes(digest, "little") % ORDER, public))
    return (left[0] * right[2] - right[0] * left[2]) % PRIME == 0 and (
        left[1] * right[2] - right[1] * left[2]
    ) % PRIME == 0


# ---- proofs: C2SP tlog-proof, tlog-checkpoint and signed-note


class Wrong(Exception):
    """Raised for an invalid receipt; the message states the reason."""


PROOF = re.compile(
    r"c2sp\.org/tlog-proof@v1\nextra (?P<extra>[A-Za-z0-9+/]+={0,2})\nindex (?P<index>0|[1-9]\d{0,15})\n"
    r"(?P<path>(?:[A-Za-z0-9+/]{43}=\n)*)\n(?P<note>.+)",
    re.DOTALL | re.ASCII,
)
NOTE = re.compile(
    r"(?P<body>(?P<origin>[^\n]+)\n(?P<size>0|[1-9]\d{0,15})\n(?P<root>[A-Za-z0-9+/]{43}=)\n(?P<more>(?:[^\n]+\n)*))\n"
    "\u2014 (?P<signature>[^\n]+)\n",
    re.ASCII,
)


def decode_base64(text, what):
    """Decodes base64; accepts only the canonical spelling."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise Wrong(f"{what} is not base64") from None
    if base64.b64encode(data).decode() != text:
        raise Wrong(f"{what} is not base64 as an encoder writes it")
    return data


def verifier_keys(text):
    """Keys by name, from the lines of checkpoint.vkey files: `<name>+<hash>+<base64 of 0x01 and the key>`."""
    keys = {}
    for line in text.split():
        name, key_hash, encoded = line.split("+", 2)
        typed = base64.b64decode(encoded)
        if len(typed) != 33 or hashlib.sha256(f"{name}\n".encode() + typed).digest()[:4].hex() != key_hash:
            raise Wrong("the verifier key is not well formed")
        keys.setdefault(name, []).append((bytes.fromhex(key_hash), typed[1:]))
    return keys


def require_signed(match, keys):
    """Requires that one of the keys made the only signature of a note, which is a match of NOTE."""
    name, _, encoded = match["signature"].partition(" ")
    blob = decode_base64(encoded, "the signature") if name == match["origin"] else b""
    for key_hash, key in keys.get(name, []):
        if blob[:4] == key_hash and is_signed(key, match["body"].encode(), blob[4:]):
            return
    raise Wrong("the checkpoint is not signed by the given key")


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def root_of(index, size, leaf, path):
    """Computes the root from an inclusion path (RFC 9162, section 2.1.3.2)."""
    if index >= size:
        raise Wrong("the index is beyond the tree")
    node, last, root = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            raise Wrong("the path is too long")
        if node & 1 or node == last:
            root = node_hash(sibling, root)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        node, last = node >> 1, last >> 1
    if last:
        raise Wrong("the path is too short")
    return root


def proven_record(text, keys):
    """Returns the record in a proof, and the checkpoint that covers it."""
    match = PROOF.fullmatch(text)
    if match is None:
        raise Wrong("the text is not an inclusion proof")
    checkpoint = NOTE.fullmatch(match["note"])
    if checkpoint is None:
        raise Wrong("the checkpoint is not a signed note")
    record = decode_base64(match["extra"], "the record")
    path = [decode_base64(line, f"line {n} of the path") for n, line in enumerate(match["path"].split("\n")[:-1], 1)]
    leaf = hashlib.sha256(b"\x00" + record).digest()
    root = root_of(int(match["index"]), int(checkpoint["size"]), leaf, path)
    if root != decode_base64(checkpoint["root"], "the root"):
        raise Wrong("the path does not lead to the signed root")
    require_signed(checkpoint, keys)
    return json.loads(record), checkpoint


def witness_warning(checkpoint, seq, notes, keys):
    """Returns a warning if no note of the witness covers record `seq`; otherwise an empty text."""
    own_notes = []
    for note in NOTE.finditer(notes):
        try:
            require_signed(note, keys)
        except Wrong:
            continue  # a note of another log
        if note["origin"] == checkpoint["origin"]:
            own_notes.append(note)
    if any(n["size"] == checkpoint["size"] and n["root"] != checkpoint["root"] for n in own_notes):
        raise Wrong("the witness has another log with as many records")
    newest = max(own_notes, key=lambda note: int(note["size"]), default=None)
    if newest is None or int(newest["size"]) <= seq:
        time = re.search(r"^time (\S+)$", newest["more"], re.MULTILINE) if newest else None
        return ", but not witnessed" + (f" since {time[1]}" if time else "")
    return ""


# ---- digests of the question and of the rows


def field(data):
    return b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data


def question_digest(salt, kind, text, parameters=()):
    """Digest of a question. `parameters` are texts, or None for NULL, as in a REST body."""
    parts = [b"osl-receipt question v1\n", salt, field(kind.encode()), field(text.encode())]
    for value in parameters:
        parts += [b"\x00", field(None if value is None else value.encode())]
    return hashlib.sha256(b"".join(parts)).digest()


def data_row(values):
    """Encodes a DataRow message of the Postgres protocol, with values in text format."""
    body = len(values).to_bytes(2, "big") + b"".join(
        field(None if value is None else value.encode("utf-8", "surrogatepass")) for value in values
    )
    return b"D" + (len(body) + 4).to_bytes(4, "big") + body


LANES = int.from_bytes(b"\xff\xff\x00\x00" * 512, "little")


def started_digest(name, salt, columns):
    """Starts a digest of its name, the salt, and the columns, which are pairs of name and type."""
    fields = b"".join(field(text.encode()) for column in columns for text in column)
    return hashlib.sha256(f"osl-receipt {name} v1\n".encode() + salt + len(columns).to_bytes(4, "big") + fields)


def rows_digest(order, salt, columns, rows):
    """Digest of columns and rows, in constant memory. A row is a list of texts, with None for NULL."""
    if order == "sequence":
        total = started_digest("rows", salt, columns)
        for row in rows:
            total.update(data_row(row))
        return total.digest()
    even, odd, count = 0, 0, 0
    for row in rows:
        expanded = hashlib.shake_128(b"osl-receipt row v1\n" + salt + data_row(row)).digest(2048)
        number = int.from_bytes(expanded, "little")
        even, odd = (even + (number & LANES)) & LANES, (odd + (number >> 16 & LANES)) & LANES
        count += 1
    if count > 65535:
        raise Wrong("there are more rows than a digest without order takes")
    total = started_digest("multiset", salt, columns)
    total.update(count.to_bytes(4, "big") + (even | odd << 16).to_bytes(2048, "little"))
    return total.digest()


DECODER = json.JSONDecoder()
BLANK = re.compile(r"[ \t\n\r]*")


def members(text, at, close):
    """Yields the members of an object, or the elements of an array, that begins at `at`: key, and text as written."""
    at = BLANK.match(text, at + 1).end()
    while text[at] != close:
        key = None
        if close == "}":
            key, at = DECODER.raw_decode(text, at)
            at = BLANK.match(text, BLANK.match(text, at).end() + 1).end()
        _, end = DECODER.raw_decode(text, at)
        yield key, text[at:end]
        at = BLANK.match(text, end).end()
        if text[at] == ",":
            at = BLANK.match(text, at + 1).end()


DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(.*)")


def value_text(raw, kind):
    """Converts a value from its JSON text to Postgres' text format."""
    if raw == "null":
        return None
    if kind.endswith("[]"):
        return array_text(raw, kind[:-2])
    if kind in ("json", "jsonb"):
        return raw
    if kind == "bool":
        return raw[0]
    text = json.loads(raw) if raw[0] == '"' else raw
    if kind == "bytea":
        return "\\x" + decode_base64(text, "a value of type bytea").hex()
    if kind in ("timestamp", "timestamptz") and DATE_TIME.fullmatch(text):
        text = DATE_TIME.fullmatch(text).expand(r"\1 \2")
        return text[:-1] + "+00" if text.endswith("Z") else text
    return text


def array_text(raw, kind):
    items = []
    for _, item in members(raw, 0, "]"):
        if item[0] == "[" and kind not in ("json", "jsonb"):
            items.append(array_text(item, kind))
            continue
        text = value_text(item, kind)
        bare = text is None or (text and not re.search(r'["\\{}, \t\n\r\v\f]', text) and text.upper() != "NULL")
        items.append("NULL" if text is None else text if bare else '"' + re.sub(r'(["\\])', r"\\\1", text) + '"')
    return "{" + ",".join(items) + "}"


def read_answer(file):
    """Reads the head, columns and rows of an answer; of NDJSON, only one row is in memory at a time."""
    count, last = 0, ""
    with open(file, encoding="utf-8", newline="\n") as lines:
        for last in lines:
            count += 1
    whole = json.loads(last or "null")
    is_lines = isinstance(whole, dict) and list(whole) == ["trailer"]
    head = whole["trailer"] if is_lines else whole
    if not isinstance(head, dict) or not isinstance(head.get("columns"), list) or not (is_lines or count == 1):
        raise Wrong("the file is not an answer in JSON or NDJSON, as REST sent it")
    columns = [(column["name"], column["type"]) for column in head["columns"]]

    def rows():
        if not is_lines:
            for _, row in members(dict(members(last, 0, "}"))["rows"], 0, "]"):
                yield row_texts(row, columns)
            return
        with open(file, encoding="utf-8", newline="\n") as lines:
            for _, line in zip(range(count - 1), lines):
                json.loads(line)
                yield row_texts(line, columns)

    return head, columns, rows()


def row_texts(row, columns):
    pairs = list(members(row, 0, "}"))
    if [name for name, _ in pairs] != [name for name, _ in columns]:
        raise Wrong("a row does not have the columns of the answer")
    return [value_text(raw, kind) for (_, raw), (_, kind) in zip(pairs, columns)]


def number_text(value):
    """Formats a number as JavaScript does, which is how the server reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e21):
        return str(int(value))
    text = repr(value)
    if 1e-6 <= abs(value) < 1e-4:
        digits, _, power = text.partition("e-")
        sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
        return f"{sign}0.{'0' * (int(power) - 1)}{digits.replace('.', '')}"
    return re.sub(r"e([+-])0", r"e\1", text)


# ---- the command


def check_receipt(text, keys, salt=None, answer=None, question=None):
    """Checks a receipt and returns its record and checkpoint. Raises Wrong."""
    record, checkpoint = proven_record(text, keys)
    receipt = record.get("receipt")
    if receipt is None:
        raise Wrong("the record has no digests: it is not that of an answer with a receipt")
    expected = lambda name: base64.urlsafe_b64decode(receipt[name] + "=")
    if answer is not None:
        head, columns, rows = answer
        if head.get("request_id") != record["request_id"] or head.get("row_count") != record["rows"]:
            raise Wrong("the answer is that of another request, or has another number of rows")
        if rows_digest(receipt["order"], salt, columns, rows) != expected("rows"):
            raise Wrong("the rows are not those of the answer")
    if question is not None and question_digest(salt, *question) != expected("question"):
        raise Wrong("the question is not the one that was answered")
    return record, checkpoint


def read(file):
    with open(file, encoding="utf-8", newline="") as content:
        return content.read()


def question_in(file):
    body = json.loads(read(file))
    kind = next((kind for kind in ("osql", "sql") if kind in body), None)
    if kind is None:
        raise Wrong("only questions in OSL-SQL and SQL can be compared")
    values = body.get("parameters", [])
    return kind, body[kind], [v if v is None or isinstance(v, str) else number_text(v) for v in values]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("receipt")
    parser.add_argument("--key", required=True, help="the log's checkpoint.vkey, kept elsewhere")
    parser.add_argument("--salt", metavar="FILE", help="what only the caller got; for --rows and --question")
    parser.add_argument("--rows", help="the answer, in JSON or NDJSON")
    parser.add_argument("--question", help="the body of the request, in JSON")
    parser.add_argument("--witnessed", help="checkpoints that a witness keeps")
    args = parser.parse_args()
    if (args.rows or args.question) and not args.salt:
        parser.error("--rows and --question need --salt")
    salt = base64.urlsafe_b64decode(read(args.salt).strip() + "==") if args.salt else None
    try:
        question = question_in(args.question) if args.question else None
        answer = read_answer(args.rows) if args.rows else None
        keys = verifier_keys(read(args.key))
        record, checkpoint = check_receipt(read(args.receipt), keys, salt, answer, question)
        warning = witness_warning(checkpoint, record["seq"], read(args.witnessed), keys) if args.witnessed else ""
    except (Wrong, ValueError, KeyError, IndexError) as error:
        sys.exit(f"wrong: {error}")
    print(f"valid{warning}: record {record['seq']} of {checkpoint['origin']}, under a checkpoint of {checkpoint['size']} records")
    print(json.dumps(record, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
