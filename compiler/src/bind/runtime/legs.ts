import type { FacetReranker, FacetStore } from '../../catalog/catalog.js';
import { castTo } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import {
  ASKED_COLUMNS,
  type AskedColumn,
  type Legs,
  MAX_SKIP,
  type PassagePage,
} from '../../plan/runtime.js';
import { nearest } from '../../text/text.js';
import type { TypeName } from '../../types/types.js';
import { constantText, integerOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { type BindEnvironment, plainEnvironment } from '../environment.js';
import { coerce } from '../expressions/coerce.js';
import { bindExpression } from '../expressions/expression.js';
import { innerScope } from '../scope.js';
import {
  flagArgument,
  locationOf,
  type NamedArguments,
  refuseComputed,
  requiredArgument,
} from './named-arguments.js';

/** Arguments of RETRIEVE that choose the search legs. */
export const LEG_ARGUMENTS = Object.freeze(['mode', 'fuse', 'weights']);

const MODES = ['hybrid', 'lexical', 'dense'] as const;

/** @throws QueryError E0511 for a leg that the facet lacks, or arguments that need both legs */
export function legArguments(args: NamedArguments, facet: FacetStore, ctx: BindContext): Legs {
  const own = facet.lexicalLeg === undefined ? facet.lane : 'hybrid';
  const mode = wordArgument(args, 'mode', MODES, own, ctx);
  const at = (name: string) => {
    const node = args.byName.get(name);
    return node === undefined ? args.location : locationOf(node, args);
  };
  if (facet.lexicalLeg === undefined && mode !== own) {
    const detail = `facet \`${facet.name}\` has one leg, which is ${own}`;
    throw ctx.mismatch(detail, at('mode'), 'leave `mode` out');
  }
  if (mode === 'hybrid') {
    const fuse = wordArgument(args, 'fuse', ['rank', 'score'], 'rank', ctx);
    const has = args.byName.has('weights');
    return Object.freeze({
      mode,
      fuse,
      weights: has ? constantArgument(args, 'weights', 'float8[]', ctx) : null,
    });
  }
  const name = ['fuse', 'weights'].find((n) => args.byName.has(n));
  if (name !== undefined) throw ctx.mismatch(`\`${name}\` is for two legs`, at(name), "mode => 'hybrid'");
  return Object.freeze({ mode });
}

export const ASKING_ARGUMENTS = Object.freeze(Object.keys(ASKED_COLUMNS));

export function askedColumns(args: NamedArguments, ctx: BindContext): readonly AskedColumn[] {
  return Object.freeze(
    Object.entries(ASKED_COLUMNS).flatMap(([argument, column]) =>
      flagArgument(args, argument, ctx) ? [column] : [],
    ),
  );
}

/** Arguments of RETRIEVE, besides `top_k`, that select among the permitted passages. */
export const PAGE_ARGUMENTS = Object.freeze(['min_score', 'skip', 'per', 'diversity']);

export function pageArguments(args: NamedArguments, ctx: BindContext): PassagePage {
  const has = (name: string): boolean => args.byName.has(name);
  return Object.freeze({
    per: wordArgument(args, 'per', ['passage', 'document'], 'passage', ctx),
    skip: has('skip') ? requiredCount(args, 'skip', 0, MAX_SKIP, ctx) : null,
    minScore: has('min_score') ? constantArgument(args, 'min_score', 'float8', ctx) : null,
    diversity: has('diversity') ? constantArgument(args, 'diversity', 'float8', ctx) : null,
  });
}

export const RERANK = 'rerank';

/**
 * Resolves `rerank => true` to the facet's first reranker and `rerank => 'name'` to that one; null if absent or false.
 *
 * @throws QueryError E0511 for an unknown reranker, or together with `diversity`
 */
export function rerankArgument(
  args: NamedArguments,
  facet: FacetStore,
  ctx: BindContext,
): FacetReranker | null {
  if (!args.byName.has(RERANK)) return null;
  const named = wanted(args, ctx);
  if (named === false) return null;
  const { rerankers = [] } = facet;
  const found = named === true ? rerankers[0] : rerankers.find((r) => r.name === named);
  const at = locationOf(requiredArgument(args, RERANK, ctx), args);
  if (found === undefined) {
    const what = named === true ? 'reranker' : `reranker \`${named}\``;
    const known = rerankers.map((r) => r.name);
    const near = named === true ? null : nearest(named, known);
    const hint = known.length === 0 ? 'leave `rerank` out' : `it has \`${near ?? known.join('`, `')}\``;
    throw ctx.mismatch(`facet \`${facet.name}\` has no ${what}`, at, hint);
  }
  if (args.byName.has('diversity')) {
    const hint = 'ask for one of the two; `min_score`, `skip` and `per` go with either';
    throw ctx.mismatch('`rerank` and `diversity` each say the order of the passages', at, hint);
  }
  return found;
}

/** Name of a reranker, or true for the default, false for none. */
function wanted(args: NamedArguments, ctx: BindContext): string | boolean {
  const node = requiredArgument(args, RERANK, ctx);
  const name = constantText(node);
  if (name !== null) return name;
  if ('A_Const' in node && node.A_Const.boolval !== undefined) return node.A_Const.boolval.boolval ?? false;
  throw ctx.mismatch(
    '`rerank` is true, or the name of a reranker in quotes',
    locationOf(node, args),
    'rerank => true',
  );
}

function constantEnvironment(ctx: BindContext): BindEnvironment {
  return plainEnvironment(ctx, innerScope(null, [], new Map()), 'an argument');
}

/** A literal or `$n` of type `type`. */
export function constantArgument(args: NamedArguments, name: string, type: TypeName, ctx: BindContext): Expr {
  const node = requiredArgument(args, name, ctx);
  const at = locationOf(node, args);
  const value = coerce(bindExpression(node, constantEnvironment(ctx)), type, ctx, at);
  refuseComputed(value, name, at, ctx);
  return value;
}

/** An integer literal from `least` to `most`, or `$n`, whose value is checked at execution. */
export function requiredCount(
  args: NamedArguments,
  name: string,
  least: number,
  most: number,
  ctx: BindContext,
): Expr {
  const node = requiredArgument(args, name, ctx);
  if ('ParamRef' in node) return countParameter(args, name, ctx);
  const value = integerOf(node) ?? Number.NaN;
  if (!Number.isInteger(value) || value < least || value > most) {
    const detail = `\`${name}\` is a whole number from ${least} to ${most}`;
    throw ctx.mismatch(detail, locationOf(node, args));
  }
  return ctx.constant(String(value), 'int4');
}

/** `$n` as int4; drivers may declare other integer types. */
function countParameter(args: NamedArguments, name: string, ctx: BindContext): Expr {
  const bound = bindExpression(requiredArgument(args, name, ctx), constantEnvironment(ctx));
  if (bound.kind === 'untyped' || (bound.type !== 'int2' && bound.type !== 'int8'))
    return constantArgument(args, name, 'int4', ctx);
  return castTo(bound, 'int4');
}

function wordArgument<W extends string>(
  args: NamedArguments,
  name: string,
  words: readonly W[],
  fallback: W,
  ctx: BindContext,
): W {
  const node = args.byName.get(name);
  if (node === undefined) return fallback;
  const text = constantText(node);
  const word = words.find((w) => w === text);
  if (word !== undefined) return word;
  const listed = words.map((w) => `'${w}'`).join(', ');
  throw ctx.mismatch(`\`${name}\` is one of ${listed}`, locationOf(node, args));
}
