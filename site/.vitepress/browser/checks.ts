/** Stands for `src/base/checks.ts`, which keeps compiled checks in files: here each is compiled when it is first used. */
import * as ajv from 'ajv';
import type { Dialect } from '../../../src/base/checks.js';

export function checkOf<T>(
  schema: ajv.AnySchemaObject,
  { options, keywords }: Dialect,
): ajv.ValidateFunction<T> {
  return new ajv.Ajv({ ...options, keywords: [...keywords(ajv)] }).compile<T>(schema);
}

export function buildCheck(): never {
  throw new TypeError('checks are not built in a browser');
}
