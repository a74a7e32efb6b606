import { ASKED_COLUMNS, type AskedColumn } from '../../plan/runtime.js';
import type { BindContext } from '../context.js';
import { flagArgument, type NamedArguments } from './named-arguments.js';

/** The arguments of RETRIEVE that ask for one more column each. */
export const ASKING_ARGUMENTS = Object.freeze(Object.keys(ASKED_COLUMNS));

export function askedColumns(args: NamedArguments, ctx: BindContext): readonly AskedColumn[] {
  return Object.freeze(
    Object.entries(ASKED_COLUMNS).flatMap(([argument, column]) =>
      flagArgument(args, argument, ctx) ? [column] : [],
    ),
  );
}
