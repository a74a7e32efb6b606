import { quoteLiteral } from 'osl-compiler';
import type { RightsSetting } from '../../engine/index.js';

/** The schema of what `osl row-security` makes beside the tables. */
export const SCHEMA = 'osl_row_security';
/** The setting that carries the rights of a statement's caller. */
export const SETTING: RightsSetting = 'osl.rights';

/** Call of a function of the schema, evaluated once for each statement regardless of its rows. */
export function call(name: string, ...args: readonly string[]): string {
  return `(select ${SCHEMA}.${name}(${args.join(', ')}))`;
}

export function texts(values: readonly string[]): string {
  return `array[${values.map(quoteLiteral).join(', ')}]::text[]`;
}
