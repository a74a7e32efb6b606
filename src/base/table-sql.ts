import { quoteIdentifier } from 'osl-compiler';

/** A table as a statement names it: with its schema, both in quotes. */
export function tableSql({ schema, table }: { readonly schema: string; readonly table: string }): string {
  return `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`;
}
