import type * as Conversions from '../../../../compiler/src/functions/conversions.js';
import type * as Operators from '../../../../compiler/src/functions/operators.js';
import type * as Resolve from '../../../../compiler/src/functions/resolve.js';
import type * as Scalar from '../../../../compiler/src/functions/scalar.js';
import type * as SetReturning from '../../../../compiler/src/functions/set-returning.js';
import type * as SpecialTypes from '../../../../compiler/src/functions/special-types.js';
import type * as Types from '../../../../compiler/src/types/types.js';

async function compiled(file: string): Promise<unknown> {
  return import(new URL(`../../../../../compiler/dist/${file}`, import.meta.url).href);
}

type FunctionTables = typeof Conversions &
  typeof Operators &
  typeof Resolve &
  typeof Scalar &
  typeof SetReturning &
  typeof SpecialTypes;

// Internal to the compiler, so its package does not export them: they are loaded by path, as tsc built them.
export const functions: FunctionTables = {
  ...((await compiled('functions/conversions.js')) as typeof Conversions),
  ...((await compiled('functions/operators.js')) as typeof Operators),
  ...((await compiled('functions/resolve.js')) as typeof Resolve),
  ...((await compiled('functions/scalar.js')) as typeof Scalar),
  ...((await compiled('functions/set-returning.js')) as typeof SetReturning),
  ...((await compiled('functions/special-types.js')) as typeof SpecialTypes),
};
export const types = (await compiled('types/types.js')) as typeof Types;
