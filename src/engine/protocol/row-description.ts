/** A column of a RowDescription. */
export interface DescribedColumn {
  readonly name: string;
  readonly typeOid: number;
  /** Bytes, or −1 for a variable-length type. */
  readonly typeLength: number;
  /** −1 if there is none. */
  readonly typeModifier: number;
}

/** The columns of a RowDescription body. */
export function describedColumns(body: Buffer): DescribedColumn[] {
  let at = 2;
  return Array.from({ length: body.readUInt16BE(0) }, () => {
    const end = body.indexOf(0, at);
    const name = body.toString('utf8', at, end);
    const type = end + 7; // past the table's OID and attribute number
    at = type + 12;
    return {
      name,
      typeOid: body.readUInt32BE(type),
      typeLength: body.readInt16BE(type + 4),
      typeModifier: body.readInt32BE(type + 6),
    };
  });
}
