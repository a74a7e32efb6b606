/** One DataRow message of text values: type `D`, length, column count, then each value with its length. */
export function dataRow(values: readonly (string | null)[]): Uint8Array {
  const encoded = values.map((v) => (v === null ? null : Buffer.from(v, 'utf8')));
  const size = 7 + encoded.reduce((sum, v) => sum + 4 + (v?.length ?? 0), 0);
  const row = Buffer.allocUnsafe(size);
  row.write('D', 0, 'latin1');
  row.writeInt32BE(size - 1, 1);
  row.writeUInt16BE(values.length, 5);
  let at = 7;
  for (const value of encoded) {
    at = row.writeInt32BE(value?.length ?? -1, at);
    if (value !== null) at += value.copy(row, at);
  }
  return row;
}
