import { quoteLiteral } from 'osl-compiler';
import type { RightsSetting } from '../../engine/index.js';

/** Schema of the objects that `osl row-security` creates. */
export const SCHEMA = 'osl_row_security';
/** Setting with the rights of a statement's caller. */
export const SETTING: RightsSetting = 'osl.rights';

/** Call of a function of the schema, evaluated once per statement and not per row. */
export function call(name: string, ...args: readonly string[]): string {
  return `(select ${SCHEMA}.${name}(${args.join(', ')}))`;
}

export function texts(values: readonly string[]): string {
  return `array[${values.map(quoteLiteral).join(', ')}]::text[]`;
}
