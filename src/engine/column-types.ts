/** Types whose values have the same bytes as `text` (or `text[]`, `varbit`) in both formats. */
const SAME_BYTES: ReadonlyMap<number, number> = new Map([
  [19, 25], // name
  [1042, 25], // bpchar
  [1043, 25], // varchar
  [1003, 1009],
  [1014, 1009],
  [1015, 1009],
  [1560, 1562], // bit
  [1561, 1563],
]);

/** True if columns of the OIDs `described` can be sent as those of `promised`. */
export function sameOids(described: readonly number[], promised: readonly number[]): boolean {
  if (described === promised) return true;
  return (
    described.length === promised.length &&
    described.every((oid, i) => oid === promised[i] || SAME_BYTES.get(oid) === promised[i])
  );
}
