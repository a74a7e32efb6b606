import type { FacetStore } from '../../catalog/catalog.js';
import type { Legs } from '../../plan/runtime.js';
import type { BindContext } from '../context.js';
import { constantArgument, wordArgument } from './constant-argument.js';
import { locationOf, type NamedArguments } from './named-arguments.js';

/** The arguments of RETRIEVE that say by which leg of its facet it searches. */
export const LEG_ARGUMENTS = Object.freeze(['mode', 'fuse', 'weights']);

const MODES = ['hybrid', 'lexical', 'dense'] as const;

/** @throws QueryError E0511 for a leg that the facet has not, and for what only both legs take */
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
