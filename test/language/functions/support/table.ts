import type * as Functions from '../../../../compiler/src/functions/index.js';
import type * as Types from '../../../../compiler/src/types/types.js';

async function compiled(file: string): Promise<unknown> {
  return import(new URL(`../../../../../compiler/dist/${file}`, import.meta.url).href);
}

// The table is internal to the compiler, so its package does not export it: it is loaded by path, as tsc built it.
export const functions = (await compiled('functions/index.js')) as typeof Functions;
export const types = (await compiled('types/types.js')) as typeof Types;
