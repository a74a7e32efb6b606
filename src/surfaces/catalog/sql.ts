import { quoteIdentifier } from 'osl-compiler/sql-text';

/** The name of something in the schema that has the caller's tables. */
export function inEntities(name: string): string {
  return `entities.${quoteIdentifier(name)}`;
}

/** An escape string, so that no setting changes what it means. NUL is in no manifest and in no token. */
export function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
