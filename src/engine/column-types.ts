/** Types whose values are, byte for byte in both formats, values of the model's `text`. */
const SAME_BYTES: ReadonlyMap<number, number> = new Map([
  [19, 25], // name
  [1042, 25], // bpchar
  [1043, 25], // varchar
  [1003, 1009],
  [1014, 1009],
  [1015, 1009],
]);

/** Whether columns described as `described` carry what a plan promises as `promised`. */
export function sameOids(described: readonly number[], promised: readonly number[]): boolean {
  if (described === promised) return true;
  return (
    described.length === promised.length &&
    described.every((oid, i) => oid === promised[i] || SAME_BYTES.get(oid) === promised[i])
  );
}

/** The type OIDs of a RowDescription body. */
export function columnOidsOf(body: Buffer): number[] {
  const oids: number[] = [];
  let at = 2;
  for (let n = body.readUInt16BE(0); n > 0; n--) {
    at = body.indexOf(0, at) + 1;
    oids.push(body.readUInt32BE(at + 6));
    at += 18;
  }
  return oids;
}
