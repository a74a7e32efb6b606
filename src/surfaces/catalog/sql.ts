import { quoteIdentifier } from 'osl-compiler/sql-text';

/** Qualifies a name with the schema of the caller's tables. */
export function inEntities(name: string): string {
  return `entities.${quoteIdentifier(name)}`;
}

/** Escape string literal, whose meaning does not depend on settings. Manifests and tokens contain no NUL. */
export function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
