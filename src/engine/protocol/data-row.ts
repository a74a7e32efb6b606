/** Bytes of a DataRow message before its values: type `D`, length, number of columns. */
const HEAD = 7;

/** Takes a run of whole DataRow messages apart, without copying them. */
export function* eachDataRow(messages: Uint8Array): Generator<Buffer> {
  const bytes = Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    yield bytes.subarray(at, end);
    at = end;
  }
}

/** The values of one whole DataRow message in text format, in the order of its columns. */
export function textValuesOf(dataRow: Buffer): (string | null)[] {
  const values: (string | null)[] = [];
  for (let at = HEAD; at < dataRow.length; ) {
    const length = dataRow.readInt32BE(at);
    const start = at + 4;
    at = start + Math.max(length, 0);
    values.push(length < 0 ? null : dataRow.toString('utf8', start, at));
  }
  return values;
}
