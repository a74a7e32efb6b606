import { MAX_SKIP, type Page } from '../../plan/runtime.js';
import type { BindContext } from '../context.js';
import { constantArgument, requiredCount, wordArgument } from './constant-argument.js';
import type { NamedArguments } from './named-arguments.js';

/** The arguments of RETRIEVE that say which of the permitted passages are the answer, beside `top_k`. */
export const PAGE_ARGUMENTS = Object.freeze(['min_score', 'skip', 'per', 'diversity']);

export function pageArguments(args: NamedArguments, ctx: BindContext): Page {
  const has = (name: string): boolean => args.byName.has(name);
  return Object.freeze({
    per: wordArgument(args, 'per', ['passage', 'document'], 'passage', ctx),
    skip: has('skip') ? requiredCount(args, 'skip', 0, MAX_SKIP, ctx) : null,
    minScore: has('min_score') ? constantArgument(args, 'min_score', 'float8', ctx) : null,
    diversity: has('diversity') ? constantArgument(args, 'diversity', 'float8', ctx) : null,
  });
}
